// Values of the leaves of a boosted tree: the average over all its prunings.
//
// A leaf value has the prior N(0, dispersion / tau). With sums G and H of first and second derivatives of a node's
// rows, its log evidence is log(tau / (tau + H)) / 2 + G^2 / (tau + H) / (2 dispersion), and its mean -G / (tau + H).
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/sweep.hpp"
#include "grow/tree.hpp"

namespace everytree::boost {

struct LeafPrior {
    double tau, split_prior;
    double dispersion = 1.0;
    double log_evidence(double first, double second) const {
        const double precision = tau + second;
        return 0.5 * std::log(tau / precision) + 0.5 * first * first / (precision * dispersion);
    }
    double mean(double first, double second) const { return -first / (tau + second); }
};

// Sums of derivatives, node by node: known for terminals, summed up here for the others.
struct NodeSums {
    std::vector<double> first, second;
    void clear(std::size_t n_nodes) {
        first.assign(n_nodes, 0.0);
        second.assign(n_nodes, 0.0);
    }
};

inline void sum_up(const grow::GrownTree& tree, NodeSums& sums) {
    for (std::size_t s = tree.feature.size(); s-- > 0;) {
        for (std::int32_t c = 0; c < tree.n_children[s]; ++c) {
            const auto child = static_cast<std::size_t>(tree.first_child[s] + c);
            sums.first[s] += sums.first[child];
            sums.second[s] += sums.second[child];
        }
    }
}

// The posterior over all prunings of a tree.
struct Prunings {
    double log_evidence;                      // of the tree
    std::vector<double> reached, split_prob;  // that a pruning has the node, and that it splits it then
    std::vector<double> gain;                 // expected gain in log evidence by the split of each node
};

// `leaf`: log evidence of each node as a leaf.
inline Prunings prunings(const grow::GrownTree& tree, const std::vector<double>& leaf, double split_prior) {
    const std::size_t n = tree.feature.size();
    const double log_split = std::log(split_prior), log_stop = std::log1p(-split_prior);
    std::vector<double> subtree = leaf, split_prob(n, 0.0), reached(n, 1.0), gain(n, 0.0);
    for (std::size_t s = n; s-- > 0;) {
        if (tree.n_children[s] == 0) continue;
        double split = log_split;
        for (std::int32_t c = 0; c < tree.n_children[s]; ++c)
            split += subtree[static_cast<std::size_t>(tree.first_child[s] + c)];
        gain[s] = std::max(0.0, split - log_split - subtree[s]);
        const Fate fate = weigh(log_stop + subtree[s], split);
        subtree[s] = fate.subtree_log_evidence;
        split_prob[s] = fate.split_prob;
    }
    for (std::size_t s = 0; s < n; ++s) {
        gain[s] *= reached[s] * split_prob[s];
        for (std::int32_t c = 0; c < tree.n_children[s]; ++c)
            reached[static_cast<std::size_t>(tree.first_child[s] + c)] = reached[s] * split_prob[s];
    }
    return {subtree[0], std::move(reached), std::move(split_prob), std::move(gain)};
}

// Means of leaves, (n_nodes, n_values), become averages over prunings: of each node, that for rows that end there.
inline void average(const grow::GrownTree& tree, const Prunings& over, std::size_t n_values,
                    std::vector<double>& mean) {
    std::vector<double> above(mean.size(), 0.0);
    for (std::size_t s = 0; s < tree.feature.size(); ++s)
        for (std::size_t k = 0; k < n_values; ++k) {
            const double own = mean[s * n_values + k], before = above[s * n_values + k];
            mean[s * n_values + k] = before + over.reached[s] * own;
            for (std::int32_t c = 0; c < tree.n_children[s]; ++c)
                above[static_cast<std::size_t>(tree.first_child[s] + c) * n_values + k] =
                    before + over.reached[s] * (1.0 - over.split_prob[s]) * own;
        }
}

struct LeafValues {
    std::vector<double> value;  // posterior mean for a row that ends in each node (a terminal, or wherever it stops)
    std::vector<double> gain;   // expected gain in log evidence by the split of each node
};

inline LeafValues leaf_values(const grow::GrownTree& tree, NodeSums& sums, const LeafPrior& prior) {
    const std::size_t n = tree.feature.size();
    sum_up(tree, sums);
    std::vector<double> leaf(n), value(n);
    for (std::size_t s = 0; s < n; ++s) {
        leaf[s] = prior.log_evidence(sums.first[s], sums.second[s]);
        value[s] = prior.mean(sums.first[s], sums.second[s]);
    }
    Prunings over = prunings(tree, leaf, prior.split_prior);
    average(tree, over, 1, value);
    return {std::move(value), std::move(over.gain)};
}

}  // namespace everytree::boost
