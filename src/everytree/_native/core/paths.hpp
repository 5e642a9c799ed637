// The paths of rows from the root down, and the posterior probability that the leaf is at each of their nodes.
#pragma once
#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/sweep.hpp"
#include "core/tree.hpp"

namespace everytree {

// The distinct path of each row; then, path by path, the nodes from the root to the end and the log of their
// weights prod(split_prob above) * (1 - split_prob).
struct RowPaths {
    std::vector<std::int32_t> path_of_row;
    std::vector<std::int64_t> start{0};
    std::vector<std::int32_t> nodes;
    std::vector<double> log_weights;
};

// Numbers the distinct ends of rows in order of appearance.
inline std::vector<std::int32_t> distinct_ends(std::int64_t n_nodes, const std::int32_t* ends, std::size_t n_rows,
                                               std::vector<std::int32_t>& number_of_row) {
    std::vector<std::int32_t> distinct;
    std::unordered_map<std::int32_t, std::int32_t> sparse;
    const bool dense = static_cast<std::int64_t>(n_rows) * 8 > n_nodes;
    std::vector<std::int32_t> known(dense ? static_cast<std::size_t>(n_nodes) : 0, -1);
    number_of_row.resize(n_rows);
    for (std::size_t i = 0; i < n_rows; ++i) {
        std::int32_t& number = dense ? known[ends[i]] : sparse.try_emplace(ends[i], -1).first->second;
        if (number < 0) {
            number = static_cast<std::int32_t>(distinct.size());
            distinct.push_back(ends[i]);
        }
        number_of_row[i] = number;
    }
    return distinct;
}

// In logs, and from evidences: where a split is almost certain, one minus its probability has no digits left.
inline RowPaths paths_of_rows(const TreeView& tree, const SplitPrior& prior, const double* leaf, const double* subtree,
                              const std::int32_t* ends, std::size_t n_rows) {
    RowPaths paths;
    for (const std::int32_t end : distinct_ends(tree.n_nodes, ends, n_rows, paths.path_of_row)) {
        const std::size_t first = paths.nodes.size();
        for (std::int32_t s = end; s >= 0; s = tree.parent[s]) paths.nodes.push_back(s);
        std::reverse(paths.nodes.begin() + static_cast<std::ptrdiff_t>(first), paths.nodes.end());
        double reached = 0.0;
        for (std::size_t i = first; i + 1 < paths.nodes.size(); ++i) {
            const LogFates fates = fates_of_node(tree, prior, paths.nodes[i], leaf, subtree);
            paths.log_weights.push_back(reached + fates.stop);
            reached += fates.split;
        }
        paths.log_weights.push_back(reached);
        paths.start.push_back(static_cast<std::int64_t>(paths.nodes.size()));
    }
    return paths;
}

}  // namespace everytree
