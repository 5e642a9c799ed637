// Many trees over the same table: the node where a row ends in each of them, and the average of the values there.
//
// A row may have a code that a tree has no branch for: a category that was never seen, a value that was never
// missing. It then stops at the node that splits on it.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "core/parallel.hpp"
#include "core/route.hpp"
#include "core/sweep.hpp"

namespace everytree {

class ForestShape {
  public:
    // known[k]: codes 0 .. known[k] - 1 of column k are known.
    ForestShape(std::vector<TreeView> trees, std::vector<std::uint16_t> known)
        : trees_(std::move(trees)), known_(std::move(known)) {
        limit_.assign(known_.size(), std::numeric_limits<std::uint16_t>::max());
        shift_.assign(known_.size(), 1);
        narrow_top_ = repeated_tops<std::uint8_t>();
        wide_top_ = repeated_tops<std::uint16_t>();
        words_.reserve(trees_.size());
        for (TreeView& tree : trees_) {
            if (tree.binary_routes) continue;
            words_.push_back(one_word_a_node(tree));
            tree.binary_routes = words_.back().empty() ? nullptr : words_.back().data();
        }
    }
    std::size_t n_trees() const { return trees_.size(); }
    std::int64_t n_nodes(std::size_t tree) const { return trees_[tree].n_nodes; }
    const TreeView& tree(std::size_t tree) const { return trees_[tree]; }
    bool is_terminal(std::size_t tree, std::int32_t node) const { return trees_[tree].n_children[node] == 0; }
    std::int64_t n_features() const { return static_cast<std::int64_t>(known_.size()); }
    // Any code is allowed; the walk itself stops where it must.
    CodeLimits limits() const { return {limit_.data(), shift_.data(), static_cast<int>(known_.size())}; }

    // Finds the rows of begin .. begin + n with a code that some tree may not know; several rows at a time if they
    // are contiguous, since most have none.
    template <class Code>
    void find_unusual(const Codes<Code>& codes, std::int64_t begin, std::int64_t n,
                      std::vector<std::int64_t>& unusual) const {
        unusual.clear();
        const auto width = static_cast<std::int64_t>(known_.size());
        const std::int64_t together = codes.row_stride == width ? n_together : 1;
        for (std::int64_t i = 0; i < n; i += together) {
            const std::int64_t end = std::min(i + together, n);
            if (together > 1 && !any_unusual(codes.row(begin + i), (end - i) * width)) continue;
            for (std::int64_t row = i; row < end; ++row)
                if (any_unusual(codes.row(begin + row), width)) unusual.push_back(row);
        }
    }

    // Finds the nodes where rows begin .. begin + n end in one tree.
    template <class Code>
    void ends(std::size_t tree, const Codes<Code>& codes, std::int64_t begin, std::int64_t n,
              const std::vector<std::int64_t>& unusual, std::int32_t* at) const {
        std::fill(at, at + n, 0);
        route(trees_[tree], codes, begin, n, at);
        walk_unusual(trees_[tree], codes, begin, unusual, at);
    }

  private:
    static constexpr std::int64_t n_together = 16;

    template <class Code>
    bool any_unusual(const Code* codes, std::int64_t n) const {
        const Code* top = top_known<Code>().data();
        Code odd = 0;
        for (std::int64_t k = 0; k < n; ++k) odd |= static_cast<Code>(codes[k] > top[k]);
        return odd != 0;
    }

    // The largest known code of each column, repeated for the rows that are compared together.
    template <class Code>
    const std::vector<Code>& top_known() const {
        if constexpr (sizeof(Code) == 1)
            return narrow_top_;
        else
            return wide_top_;
    }
    template <class Code>
    std::vector<Code> repeated_tops() const {
        std::vector<Code> tops;
        for (std::int64_t row = 0; row < n_together; ++row)
            for (const std::uint16_t known : known_)
                tops.push_back(static_cast<Code>(std::min<std::uint16_t>(known, missing_code<Code>) - 1));
        return tops;
    }

    // Rows with a code without a branch stop at the node that splits on it. Several rows in flight, as in `route`.
    template <class Code>
    void walk_unusual(const TreeView& tree, const Codes<Code>& codes, std::int64_t begin,
                      const std::vector<std::int64_t>& unusual, std::int32_t* at) const {
        for (std::size_t first = 0; first < unusual.size(); first += rows_in_flight) {
            const std::size_t n = std::min<std::size_t>(rows_in_flight, unusual.size() - first);
            std::int32_t here[rows_in_flight] = {};
            const Code* row[rows_in_flight] = {};
            for (std::size_t i = 0; i < n; ++i) row[i] = codes.row(begin + unusual[first + i]);
            for (std::int32_t change = 1; change;) {
                change = 0;
                for (std::size_t i = 0; i < n; ++i) {
                    const std::int32_t to = careful_step(tree.route(here[i]), known_.data(), here[i], row[i]);
                    change |= to ^ here[i];
                    here[i] = to;
                }
            }
            for (std::size_t i = 0; i < n; ++i) at[unusual[first + i]] = here[i];
        }
    }
    // The tree for rows whose codes are all known: branches for missing values do not matter then, and almost every
    // tree has binary splits only. Empty for the others.
    static std::vector<BinaryRouteNode> one_word_a_node(const TreeView& tree) {
        std::vector<BinaryRouteNode> words(static_cast<std::size_t>(tree.n_nodes));
        for (std::int64_t s = 0; s < tree.n_nodes; ++s) {
            const RouteNode node = tree.route(s);
            const bool is_terminal = tree.n_children[s] == 0, is_multiway = node.mask != 0;
            const int n_answers = node.last + (node.missing == node.last && node.missing > 1 ? 0 : 1);
            if (node.feature > 65535 || (is_multiway && n_answers > 2)) return {};
            words[s] = binary_route(node.feature, node.next, is_terminal, is_multiway ? 0 : node.threshold);
        }
        return words;
    }

    std::vector<TreeView> trees_;
    std::vector<std::uint16_t> known_, limit_, shift_;
    std::vector<std::uint8_t> narrow_top_;
    std::vector<std::uint16_t> wide_top_;
    std::vector<std::vector<BinaryRouteNode>> words_;
};

// Scratch memory of one worker.
template <class Code>
struct ForestScratch {
    std::vector<Code> codes;
    std::vector<std::int64_t> unusual;
    std::vector<std::int32_t> at;
};

// Rows that walk down one tree after another together. Every tree is read once for each chunk, and large forests do not
// fit into a cache: as many rows as their codes and sums fit there instead, if there is work for all threads.
inline std::int64_t forest_chunk(std::int64_t n_rows, int n_jobs) {
    constexpr std::int64_t fewest = 256, most = 32768;
    const std::int64_t a_thread = (n_rows + n_jobs - 1) / std::max(n_jobs, 1);
    return std::clamp(a_thread, fewest, most);
}

// Calls each(begin, n, codes, scratch) for chunks of rows, on several threads; it may write only to its own rows.
template <class Code, class Each>
void over_rows(const ForestShape& forest, const CodeTable& table, int n_jobs, Each each) {
    const CodeReader<Code> reader(table, forest.limits());
    std::vector<ForestScratch<Code>> scratch(static_cast<std::size_t>(std::max(n_jobs, 1)));
    const std::int64_t together = forest_chunk(table.n_rows, n_jobs);
    const auto work = [&](std::int64_t chunk, int worker) {
        ForestScratch<Code>& mine = scratch[worker];
        const std::int64_t begin = chunk * together, n = std::min(together, table.n_rows - begin);
        const Codes<Code> codes = reader.rows(begin, n, mine.codes);
        forest.find_unusual(codes, begin, n, mine.unusual);
        mine.at.resize(static_cast<std::size_t>(n));
        each(begin, n, codes, mine);
    };
    in_chunks((table.n_rows + together - 1) / together, n_jobs, work);
}

// (n_rows, n_trees) nodes where rows end.
template <class Code>
void ends_of_rows(const ForestShape& forest, const CodeTable& table, int n_jobs, std::int32_t* nodes) {
    const std::size_t n_trees = forest.n_trees();
    over_rows<Code>(forest, table, n_jobs,
                    [&](std::int64_t begin, std::int64_t n, const Codes<Code>& codes, auto& mine) {
                        for (std::size_t tree = 0; tree < n_trees; ++tree) {
                            forest.ends(tree, codes, begin, n, mine.unusual, mine.at.data());
                            for (std::int64_t i = 0; i < n; ++i) nodes[(begin + i) * n_trees + tree] = mine.at[i];
                        }
                    });
}

// The values at the nodes of one tree: n_values numbers for each node.
struct NodeValues {
    const double* data;
    double weight;
};

// out[row] = sum over trees of weight * values of the node where the row ends; (n_rows, n_values), zero at first.
template <class Code>
void average(const ForestShape& forest, const CodeTable& table, const std::vector<NodeValues>& values, int n_values,
             int n_jobs, double* out) {
    over_rows<Code>(forest, table, n_jobs,
                    [&](std::int64_t begin, std::int64_t n, const Codes<Code>& codes, auto& mine) {
                        for (std::size_t tree = 0; tree < forest.n_trees(); ++tree) {
                            const NodeValues& here = values[tree];
                            if (here.weight == 0.0) continue;
                            forest.ends(tree, codes, begin, n, mine.unusual, mine.at.data());
                            double* to = out + begin * n_values;
                            if (n_values == 2) {
                                for (std::int64_t i = 0; i < n; ++i, to += 2) {
                                    const double* from = here.data + 2 * static_cast<std::int64_t>(mine.at[i]);
                                    to[0] += here.weight * from[0];
                                    to[1] += here.weight * from[1];
                                }
                                continue;
                            }
                            for (std::int64_t i = 0; i < n; ++i, to += n_values) {
                                const double* from = here.data + n_values * static_cast<std::int64_t>(mine.at[i]);
                                for (int v = 0; v < n_values; ++v) to[v] += here.weight * from[v];
                            }
                        }
                    });
}

// For a row that ends in a node (a terminal, or wherever it stops): the average of `values` over the nodes on its path,
// weighted by the probability that the pruned tree's leaf is there. One downward sweep, all nodes at once.
inline void average_along_paths(const TreeView& tree, const SplitPrior& prior, const double* leaf,
                                const double* subtree, const double* values, int n_values, double* out) {
    const auto n_nodes = static_cast<std::size_t>(tree.n_nodes);
    std::vector<double> reached(n_nodes, 0.0), above(n_nodes * static_cast<std::size_t>(n_values), 0.0);
    reached[0] = 1.0;
    for (std::int64_t s = 0; s < tree.n_nodes; ++s) {
        const double *value = values + s * n_values, *so_far = above.data() + s * n_values;
        for (int v = 0; v < n_values; ++v) out[s * n_values + v] = so_far[v] + reached[s] * value[v];
        if (tree.n_children[s] == 0) continue;
        const LogFates fates = fates_of_node(tree, prior, s, leaf, subtree);
        const double stop = reached[s] * std::exp(fates.stop), split = reached[s] * std::exp(fates.split);
        for (std::int32_t c = 0; c < tree.n_children[s]; ++c) {
            const std::int64_t child = tree.first_child[s] + c;
            reached[child] = split;
            for (int v = 0; v < n_values; ++v) above[child * n_values + v] = so_far[v] + stop * value[v];
        }
    }
}

}  // namespace everytree
