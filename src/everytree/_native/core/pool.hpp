// The mixtures of a forest: for each row, all nodes on its path through every tree, with the weight of each.
#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/sweep.hpp"

namespace everytree {

// Log probability that each node is in the tree, and that it is then a leaf.
inline void log_node_fates(const TreeView& tree, const SplitPrior& prior, const double* leaf, const double* subtree,
                           double* reached, double* stop) {
    reached[0] = 0.0;
    for (std::int64_t s = 0; s < tree.n_nodes; ++s) {
        stop[s] = 0.0;
        if (tree.n_children[s] == 0) continue;
        const LogFates fates = fates_of_node(tree, prior, s, leaf, subtree);
        stop[s] = fates.stop;
        for (std::int32_t c = 0; c < tree.n_children[s]; ++c)
            reached[tree.first_child[s] + c] = reached[s] + fates.split;
    }
}

// All nodes of all trees in one list.
struct PooledNodes {
    const std::int32_t* parent;
    const double *log_reached, *log_stop;
    std::int64_t n_nodes;
};

struct PooledPaths {
    std::vector<std::int64_t> start{0}, nodes;
    std::vector<double> log_weights;

    // One row: where it ends in each tree. A node whose share is below the threshold is left out, unless it is the
    // largest; the others then sum to 1.
    void add(const PooledNodes& pool, const std::int64_t* ends, const double* log_tree_weights, std::size_t n_trees,
             double log_negligible) {
        const std::size_t first = nodes.size();
        for (std::size_t tree = 0; tree < n_trees; ++tree) {
            bool is_end = true;  // the end of the row counts with everything below it
            for (std::int64_t s = ends[tree]; s >= 0; s = pool.parent[s], is_end = false) {
                const double share = pool.log_reached[s] + (is_end ? 0.0 : pool.log_stop[s]);
                if (share < log_negligible || log_tree_weights[tree] < log_negligible) continue;
                nodes.push_back(s);
                log_weights.push_back(share + log_tree_weights[tree]);
            }
        }
        double total = 0.0;
        for (std::size_t i = first; i < nodes.size(); ++i) total += std::exp(log_weights[i]);
        const double log_total = std::log(total);
        for (std::size_t i = first; i < nodes.size(); ++i) log_weights[i] -= log_total;
        start.push_back(static_cast<std::int64_t>(nodes.size()));
    }
};

}  // namespace everytree
