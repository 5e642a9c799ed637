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

struct LeafValues {
    std::vector<double> value;  // posterior mean for a row that ends in each node (a terminal, or wherever it stops)
    std::vector<double> gain;   // expected gain in log evidence by the split of each node
};

inline LeafValues leaf_values(const grow::GrownTree& tree, NodeSums& sums, const LeafPrior& prior) {
    const std::size_t n = tree.feature.size();
    sum_up(tree, sums);
    const double log_split = std::log(prior.split_prior), log_stop = std::log1p(-prior.split_prior);
    std::vector<double> subtree(n), split_prob(n, 0.0), above(n, 0.0), reached(n, 1.0), value(n), gain(n, 0.0);
    for (std::size_t s = n; s-- > 0;) {
        const double precision = prior.tau + sums.second[s];
        subtree[s] = 0.5 * std::log(prior.tau / precision) +
                     0.5 * sums.first[s] * sums.first[s] / (precision * prior.dispersion);
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
        const double mean = -sums.first[s] / (prior.tau + sums.second[s]);
        value[s] = above[s] + reached[s] * mean;
        gain[s] *= reached[s] * split_prob[s];
        for (std::int32_t c = 0; c < tree.n_children[s]; ++c) {
            const auto child = static_cast<std::size_t>(tree.first_child[s] + c);
            above[child] = above[s] + reached[s] * (1.0 - split_prob[s]) * mean;
            reached[child] = reached[s] * split_prob[s];
        }
    }
    return {std::move(value), std::move(gain)};
}

}  // namespace everytree::boost
