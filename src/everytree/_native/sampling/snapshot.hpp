// A structure as flat arrays in level order, with the probabilities of its prunings, and what follows from them.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/sweep.hpp"
#include "sampling/replica.hpp"

namespace everytree::sampling {

struct Snapshot {
    std::vector<std::int32_t> feature, code, first_child, n_children, parent;
    std::vector<double> split_prior;  // 0 at terminals
    std::vector<double> split_prob;   // a posteriori, given that the node is in the tree
    std::vector<double> reach;        // probability that the node is in the tree
    std::vector<std::uint8_t> has_rows;

    std::size_t size() const { return feature.size(); }
    std::int32_t add(std::int32_t above, double probability, bool rows) {
        feature.push_back(-1);
        code.push_back(-1);
        first_child.push_back(-1);
        n_children.push_back(0);
        parent.push_back(above);
        split_prior.push_back(0.0);
        split_prob.push_back(0.0);
        reach.push_back(probability);
        has_rows.push_back(rows ? 1 : 0);
        return static_cast<std::int32_t>(feature.size()) - 1;
    }
};

// Takes snapshots. Nodes that are in the tree with a probability below `negligible` are terminals. A region with one
// point may be split too: its splits are drawn here, from the prior.
template <class Family>
class Photographer {
  public:
    Photographer(const Points<Family>& points, const SamplerOptions& options, double negligible)
        : points_(points), options_(options), negligible_(negligible) {}

    Snapshot take(Replica<Family>& replica, ChainRandom random) {
        const NodeArena& nodes = replica.nodes();
        Snapshot out;
        queue_.clear();
        queue_.push_back({0, points_.n_points() > 0 ? *replica.points_of(nodes[0]) : -1, 0, {}});
        out.add(-1, 1.0, points_.n_points() > 0);
        for (std::size_t i = 0; i < queue_.size(); ++i) {  // in step with the nodes of the snapshot
            const Entry entry = queue_[i];
            if (out.reach[i] < negligible_ || !out.has_rows[i]) continue;
            if (entry.node >= 0 && nodes[entry.node].n_points() > 1)
                follow(replica, entry, static_cast<std::int32_t>(i), out);
            else if (entry.point >= 0 && !options_.only_nontrivial && entry.depth < options_.max_depth)
                go_on(replica, static_cast<std::int32_t>(i), out, random);
        }
        return out;
    }

  private:
    struct Entry {
        std::int32_t node;  // of the structure, -1 below it
        Point point;        // one of its points, -1 without
        std::int32_t depth;
        std::vector<std::pair<std::int32_t, CodeSet>> drawn;  // conditions below the structure's last node
    };

    // A split node of the structure.
    void follow(Replica<Family>& replica, const Entry& entry, std::int32_t at, Snapshot& out) {
        const StructureNode& own = replica.nodes()[entry.node];
        if (!own.is_inner()) return;
        double product = 0.0;
        for (std::int32_t c = 0; c < own.n_children; ++c) product += replica.nodes()[own.first_child + c].evidence;
        const bool is_summed = options_.is_summed(own.depth);
        const double log_stop = options_.log_stop[own.depth] + replica.power() * own.leaf;
        const double prob = is_summed ? weigh(log_stop, options_.log_split[own.depth] + product).split_prob : 1.0;
        split(at, own.split, own.n_children, is_summed ? std::exp(options_.log_split[own.depth]) : 1.0, prob, out);
        for (std::int32_t c = 0; c < own.n_children; ++c) {
            const StructureNode& child = replica.nodes()[own.first_child + c];
            const bool has_rows = child.n_points() > 0;
            out.add(at, out.reach[at] * prob, has_rows);
            queue_.push_back({own.first_child + c, has_rows ? *replica.points_of(child) : -1, child.depth, {}});
        }
    }

    // A region with one point: a split from the prior, which its one child with rows may continue.
    void go_on(Replica<Family>& replica, std::int32_t at, Snapshot& out, ChainRandom& random) {
        const Entry entry = queue_[static_cast<std::size_t>(at)];
        const bool is_summed = options_.is_summed(entry.depth);
        const double prior = std::exp(options_.log_split[entry.depth]);
        if (!is_summed && random.uniform() >= prior) return;
        replica.enter_region(entry.node >= 0 ? entry.node : node_above(at, out));
        Region region = replica.region();
        for (const auto& [column, set] : entry.drawn)
            region.enter(points_.kind(column), column, set, points_.all_codes()[column]);
        if (region.n_possible < 1.0) return;
        Candidates candidates;
        candidates.list(points_, region, nullptr, nullptr, false);
        const Split chosen = candidates.pick(points_, random.below(static_cast<std::int64_t>(region.n_possible)));
        const ColumnKind kind = points_.kind(chosen.column);
        std::vector<CodeSet> sets;
        child_sets(kind, region.codes[chosen.column], chosen.code, sets);
        split(at, chosen, static_cast<std::int32_t>(sets.size()), is_summed ? prior : 1.0, is_summed ? prior : 1.0,
              out);
        const std::size_t own = child_of(kind, chosen.code, points_.codes(chosen.column)[entry.point]);
        for (std::size_t c = 0; c < sets.size(); ++c) {
            const double reach = out.reach[at] * out.split_prob[at];
            out.add(at, reach, c == own);
            Entry next{-1, c == own ? entry.point : -1, entry.depth + 1, entry.drawn};
            next.drawn.emplace_back(chosen.column, sets[c]);
            queue_.push_back(std::move(next));
        }
    }
    std::int32_t node_above(std::int32_t at, const Snapshot& out) const {
        while (queue_[static_cast<std::size_t>(at)].node < 0) at = out.parent[at];
        return queue_[static_cast<std::size_t>(at)].node;
    }
    static void split(std::int32_t at, Split split, std::int32_t n_children, double prior, double prob, Snapshot& out) {
        out.feature[at] = split.column;
        out.code[at] = split.code;
        out.first_child[at] = static_cast<std::int32_t>(out.size());
        out.n_children[at] = n_children;
        out.split_prior[at] = prior;
        out.split_prob[at] = prob;
    }

    const Points<Family>& points_;
    const SamplerOptions& options_;
    double negligible_;
    std::vector<Entry> queue_;
};

// Probability that no split of a region with rows uses the columns that `is_used` says.
template <class IsUsed>
double unused_prob(const Snapshot& all, std::vector<double>& scratch, IsUsed is_used) {
    scratch.assign(all.size(), 1.0);
    for (std::size_t i = all.size(); i-- > 0;) {
        if (all.n_children[i] == 0) continue;
        double product = is_used(all.feature[i]) ? 0.0 : 1.0;
        for (std::int32_t c = 0; product > 0.0 && c < all.n_children[i]; ++c)
            product *= scratch[static_cast<std::size_t>(all.first_child[i] + c)];
        scratch[i] = 1.0 - all.split_prob[i] + all.split_prob[i] * product;
    }
    return scratch.empty() ? 1.0 : scratch[0];
}

// Columns of the splits of a snapshot, each once, increasing.
inline std::vector<std::int32_t> columns_of(const Snapshot& all) {
    std::vector<std::int32_t> columns;
    for (std::size_t i = 0; i < all.size(); ++i)
        if (all.n_children[i] > 0) columns.push_back(all.feature[i]);
    std::sort(columns.begin(), columns.end());
    columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
    return columns;
}

// The most probable tree of a structure, with its splits: the log of prior times evidence, and the tree itself.
struct BestTree {
    double log_joint = -std::numeric_limits<double>::infinity();
    std::vector<std::int32_t> feature, code, first_child, n_children;
};

template <class Family>
class BestTreeSearch {
  public:
    BestTreeSearch(const Replica<Family>& replica, const SamplerOptions& options)
        : replica_(replica), options_(options) {}

    double log_joint() { return best(Replica<Family>::root); }

    BestTree tree() {
        BestTree out;
        out.log_joint = log_joint();
        std::vector<std::int32_t> level{Replica<Family>::root};
        std::int32_t n_listed = 1;
        for (std::size_t i = 0; i < level.size(); ++i) {
            const StructureNode& own = replica_.nodes()[level[i]];
            const bool is_split = own.is_inner() && best_split(own) > stopped(own);
            out.feature.push_back(is_split ? own.split.column : -1);
            out.code.push_back(is_split ? own.split.code : -1);
            out.first_child.push_back(is_split ? n_listed : -1);
            out.n_children.push_back(is_split ? own.n_children : 0);
            if (!is_split) continue;
            n_listed += own.n_children;
            for (std::int32_t c = 0; c < own.n_children; ++c) level.push_back(own.first_child + c);
        }
        return out;
    }

  private:
    double stopped(const StructureNode& own) const {
        const bool can_split =
            own.depth < options_.max_depth && (options_.only_nontrivial ? own.n_points() > 1 : own.n_candidates > 0.0);
        return replica_.power() * own.leaf + (can_split ? options_.log_stop[own.depth] : 0.0);
    }
    double best_split(const StructureNode& own) const {
        double all = options_.log_split[own.depth] - std::log(own.n_candidates);
        for (std::int32_t c = 0; c < own.n_children; ++c) all += best(own.first_child + c);
        return all;
    }
    double best(std::int32_t node) const {
        const StructureNode& own = replica_.nodes()[node];
        return own.is_inner() ? std::fmax(stopped(own), best_split(own)) : stopped(own);
    }

    const Replica<Family>& replica_;
    const SamplerOptions& options_;
};

}  // namespace everytree::sampling
