// Which nodes of several meta-trees hold the same rows for any data: those with the same set of
// conditions.
//
// A region is the set of codes that the conditions on a path allow, by feature; the order of the path does not matter,
// and `code <= 5` followed by `code <= 3` is `code <= 3`. Regions are compared by a 128-bit hash that is a
// sum over features, so that a child's follows from its parent's in constant time.
#pragma once
#include <algorithm>
#include <unordered_map>
#include <vector>

#include "core/scramble.hpp"
#include "core/tree.hpp"

namespace everytree {

// The codes of one feature that are still possible: an interval, and whether the missing code is among them.
struct Allowed {
    std::int32_t feature = -1, low = 0, high = 65535;
    bool missing = true;
    bool own_branch = false;  // whether the tree has a branch for the missing code, or treats it as a large one
};

struct RegionKey {
    std::uint64_t first = 0, second = 0;
    bool operator==(const RegionKey&) const = default;
};
struct RegionKeyHash {
    std::size_t operator()(const RegionKey& key) const { return static_cast<std::size_t>(key.first); }
};

inline RegionKey key_of(const Allowed& allowed) {
    const std::uint64_t codes = (static_cast<std::uint64_t>(allowed.low) << 32) |
                                (static_cast<std::uint64_t>(allowed.high) << 1) | (allowed.missing ? 1u : 0u) |
                                (allowed.own_branch ? std::uint64_t{1} << 63 : 0u);
    const std::uint64_t first = scramble(scramble(static_cast<std::uint64_t>(allowed.feature)) ^ codes);
    return {first, scramble(first ^ 0x6a09e667f3bcc908ULL ^ (codes << 7))};
}

// The codes of the node's feature that lead to child `offset` of a node.
inline Allowed answer(const RouteNode& node, std::int32_t offset) {
    Allowed said{node.feature, 1, 0, offset == node.missing, node.missing != no_missing_branch};
    if (node.mask) {
        if (!said.missing) said.low = said.high = offset;
    } else if (offset == 0) {
        said.low = 0, said.high = node.threshold;
    } else if (offset == 1) {
        said.low = node.threshold + 1, said.high = 65535;
    }
    return said;
}

// The region of every node of one tree.
inline std::vector<RegionKey> region_keys(const TreeView& tree) {
    std::vector<RegionKey> keys(static_cast<std::size_t>(tree.n_nodes));
    std::vector<Allowed> last(keys.size());  // of the feature that the node's parent splits on
    for (std::int64_t node = 1; node < tree.n_nodes; ++node) {
        const std::int32_t parent = tree.parent[node];
        Allowed now = answer(tree.route(parent), static_cast<std::int32_t>(node) - tree.first_child[parent]);
        keys[node] = keys[parent];
        for (std::int32_t up = parent; up > 0; up = tree.parent[up]) {
            const Allowed& before = last[up];
            if (before.feature != now.feature) continue;
            const RegionKey old = key_of(before);
            keys[node].first -= old.first;
            keys[node].second -= old.second;
            now.low = std::max(now.low, before.low);
            now.high = std::min(now.high, before.high);
            now.missing = now.missing && before.missing;
            if (now.low > now.high) now.low = 1, now.high = 0;  // no code at all, in one form
            break;
        }
        const RegionKey fresh = key_of(now);
        keys[node].first += fresh.first;
        keys[node].second += fresh.second;
        last[node] = now;
    }
    return keys;
}

struct Member {
    std::int32_t tree, node;
};

// Many trees over each other. Depends on their shapes alone.
class SharedPlan {
  public:
    explicit SharedPlan(const std::vector<TreeView>& trees) {
        number_regions(trees);
        list_terminals(trees);
        choose_guides(trees);
    }

    // Regions that occur more than once are numbered: their evidence is remembered.
    std::vector<std::vector<std::int32_t>> shared;  // of every node of every tree; -1 where it is the only one
    std::int64_t n_shared = 0;
    // Those among them that are terminals in some tree: counted by the first tree in which they are (the
    // owner), for all trees.
    std::vector<std::int32_t> owner;          // of a shared region; -1 where it is nowhere a terminal
    std::vector<Member> terminals;            // those of region r are terminals[first_terminal[r]] ..
    std::vector<std::size_t> first_terminal;  // .. terminals[first_terminal[r + 1]]
    std::vector<bool> counts,
        counts_alone;  // of a tree: has rows to count; shares no terminal with any other
    // Where to start looking for a row's terminal, given its terminal in an earlier tree.
    std::vector<std::int32_t> guide;  // the earlier tree, or -1
    std::vector<std::vector<std::int32_t>>
        start;                      // for each node of the guide, the deepest node known to hold its rows
    std::vector<int> levels_known;  // depth that every start has at least
    std::int64_t n_nodes = 0, n_regions = 0;

  private:
    std::vector<std::vector<std::int32_t>> region_;  // of every node of every tree
    std::vector<Member> first_;                      // where each region occurred first

    void number_regions(const std::vector<TreeView>& trees) {
        for (const TreeView& tree : trees) n_nodes += tree.n_nodes;
        std::unordered_map<RegionKey, std::int32_t, RegionKeyHash> ids;
        ids.reserve(static_cast<std::size_t>(n_nodes));
        for (std::size_t t = 0; t < trees.size(); ++t) {
            const std::vector<RegionKey> keys = region_keys(trees[t]);
            std::vector<std::int32_t>& regions = region_.emplace_back(keys.size());
            for (std::size_t node = 0; node < keys.size(); ++node) {
                const auto [found, is_new] = ids.try_emplace(keys[node], static_cast<std::int32_t>(ids.size()));
                regions[node] = found->second;
                if (is_new) first_.push_back({static_cast<std::int32_t>(t), static_cast<std::int32_t>(node)});
            }
        }
        n_regions = static_cast<std::int64_t>(ids.size());
        std::vector<std::int32_t> times(static_cast<std::size_t>(n_regions), 0), number(times.size(), -1);
        for (const auto& regions : region_)
            for (const std::int32_t r : regions)
                if (++times[r] == 2) number[r] = static_cast<std::int32_t>(n_shared++);
        for (const auto& regions : region_) {
            std::vector<std::int32_t>& numbers = shared.emplace_back();
            for (const std::int32_t r : regions) numbers.push_back(number[r]);
        }
    }

    void list_terminals(const std::vector<TreeView>& trees) {
        const auto n = static_cast<std::size_t>(n_shared);
        owner.assign(n, -1);
        first_terminal.assign(n + 1, 0);
        for (std::size_t t = 0; t < trees.size(); ++t) {
            bool some = false, alone = true;
            for (std::size_t node = 0; node < shared[t].size(); ++node) {
                if (trees[t].n_children[node] != 0) continue;
                const std::int32_t r = shared[t][node];
                if (r >= 0) {
                    alone = false;
                    ++first_terminal[r + 1];
                    if (owner[r] < 0) owner[r] = static_cast<std::int32_t>(t);
                }
                some |= r < 0 || owner[r] == static_cast<std::int32_t>(t);
            }
            counts.push_back(some);
            counts_alone.push_back(alone);
        }
        for (std::size_t r = 0; r < n; ++r) first_terminal[r + 1] += first_terminal[r];
        terminals.resize(first_terminal.back());
        std::vector<std::size_t> next(first_terminal.begin(), first_terminal.end() - 1);
        for (std::size_t t = 0; t < trees.size(); ++t)
            for (std::size_t node = 0; node < shared[t].size(); ++node)
                if (trees[t].n_children[node] == 0 && shared[t][node] >= 0)
                    terminals[next[shared[t][node]]++] = {static_cast<std::int32_t>(t),
                                                          static_cast<std::int32_t>(node)};
    }

    void choose_guides(const std::vector<TreeView>& trees) {
        start.resize(trees.size());
        levels_known.assign(trees.size(), 0);
        std::vector<std::int32_t> node_of(static_cast<std::size_t>(n_regions), -1);
        for (std::size_t t = 0; t < trees.size(); ++t) {
            std::vector<std::int64_t> in_common(t, 0);
            for (const std::int32_t r : region_[t])
                if (first_[r].tree < static_cast<std::int32_t>(t)) ++in_common[first_[r].tree];
            std::int32_t best = -1;
            for (std::size_t other = 0; other < t; ++other)
                if (counts[other] && in_common[other] > (best < 0 ? 1 : in_common[best]))  // the root alone is no help
                    best = static_cast<std::int32_t>(other);
            guide.push_back(best);
            if (best < 0) continue;
            for (std::size_t node = 0; node < region_[t].size(); ++node)
                node_of[region_[t][node]] = static_cast<std::int32_t>(node);
            int known = trees[t].deepest_terminal;
            for (std::size_t node = 0; node < region_[best].size(); ++node) {
                const std::int32_t here = node_of[region_[best][node]];
                start[t].push_back(here >= 0 ? here : start[t][trees[best].parent[node]]);
                if (trees[best].n_children[node] == 0)
                    known = std::min(known, static_cast<int>(trees[t].depth[start[t].back()]));
            }
            levels_known[t] = known;
            for (const std::int32_t r : region_[t]) node_of[r] = -1;
        }
    }
};

}  // namespace everytree
