// The upward sweep of Theorem 1 and Corollary 1, over the nodes that some row touched.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/tree.hpp"

namespace everytree {

// A number for every node, or one for all of them (stride 0).
struct PerNode {
    const double* data;
    std::ptrdiff_t stride;
    double operator[](std::int64_t node) const { return data[node * stride]; }
};

// Log prior probabilities that a node is split and that it is not: log g and log(1 - g). Terminals are never split,
// whatever these are.
struct SplitPrior {
    PerNode log_split, log_stop;
};

struct Fate {
    double subtree_log_evidence, split_prob;
};

// q = (1 - g) leaf + g product of children, and the share of the second term in it, in logs. g = 0 and g = 1
// are infinities of the right sign and need no special case; of two equal infinities the difference would be NaN.
inline Fate weigh(double log_stop_and_leaf, double log_split_and_children) {
    const bool are_equal = log_stop_and_leaf == log_split_and_children;
    const double difference = are_equal ? 0.0 : log_stop_and_leaf - log_split_and_children;
    if (difference > 0.0) {
        const double ratio = std::exp(-difference);
        return {log_stop_and_leaf + std::log1p(ratio), ratio / (1.0 + ratio)};
    }
    const double ratio = std::exp(difference);
    return {log_split_and_children + std::log1p(ratio), 1.0 / (1.0 + ratio)};
}

// Log probabilities that a node is split and that it is not. From the difference of the two terms alone, so that the
// probabilities sum to 1 to the last digit for any size of the evidences, and the smaller one keeps its digits.
struct LogFates {
    double stop, split;
};
inline LogFates log_fates(double log_stop_and_leaf, double log_split_and_children) {
    const double difference = log_stop_and_leaf - log_split_and_children;
    if (difference > 0.0) {
        const double log_sum = std::log1p(std::exp(-difference));
        return {-log_sum, -difference - log_sum};
    }
    const double log_sum = std::log1p(std::exp(difference));
    return {difference - log_sum, -log_sum};
}

// The same for an inner node, from its evidence and that of its children.
inline LogFates fates_of_node(const TreeView& tree, const SplitPrior& prior, std::int64_t node, const double* leaf,
                              const double* subtree) {
    double children = 0.0;
    const double* first = subtree + tree.first_child[node];
    for (std::int32_t c = 0; c < tree.n_children[node]; ++c) children += first[c];
    return log_fates(prior.log_stop[node] + leaf[node], prior.log_split[node] + children);
}

// Quantities derived from the statistics; owned by NumPy, written here.
struct EvidenceView {
    double* leaf;
    double* subtree;
    double* split_prob;
};

// One node, its children done: the recursion (*) of the paper in place.
inline void sweep_node(const TreeView& tree, const SplitPrior& prior, std::int64_t node, EvidenceView evidence) {
    const std::int32_t n_children = tree.n_children[node];
    if (n_children == 0) {
        evidence.subtree[node] = evidence.leaf[node];
        return;
    }
    double children = 0.0;
    const double* first = evidence.subtree + tree.first_child[node];
    for (std::int32_t c = 0; c < n_children; ++c) children += first[c];
    const Fate fate = weigh(prior.log_stop[node] + evidence.leaf[node], prior.log_split[node] + children);
    evidence.subtree[node] = fate.subtree_log_evidence;
    evidence.split_prob[node] = fate.split_prob;
}

// The set of touched nodes (S_{x^n} of the paper): first those where rows end, then their ancestors.
class TouchedNodes {
  public:
    explicit TouchedNodes(std::int64_t n_nodes) : flag_(static_cast<std::size_t>(n_nodes), 0) {}

    const std::vector<std::int32_t>& nodes() const { return nodes_; }
    void grow(std::int64_t n_nodes) { flag_.resize(static_cast<std::size_t>(n_nodes), 0); }

    bool holds(std::int32_t node) const { return flag_[node] != 0; }

    // True the first time this node is touched.
    bool touch(std::int32_t node) {
        if (flag_[node]) return false;
        nodes_.push_back(node);  // may throw: the flag comes after
        flag_[node] = 1;
        return true;
    }

    // Adds all ancestors and puts children before parents, in time linear in the nodes touched. `rank_of`
    // increases strictly from parent to child.
    template <class ParentOf, class RankOf>
    void close_upward(ParentOf parent_of, RankOf rank_of) {
        const std::size_t n_first = nodes_.size();
        std::int32_t highest = 0;
        for (std::size_t i = 0; i < n_first; ++i) {
            highest = std::max(highest, rank_of(nodes_[i]));
            for (std::int32_t up = parent_of(nodes_[i]); up >= 0 && touch(up);) up = parent_of(up);
        }
        if (n_first > 1) order_by_rank(highest, rank_of);
    }
    void close_upward(const TreeView& tree) {
        close_upward([&](std::int32_t s) { return tree.parent[s]; }, [&](std::int32_t s) { return tree.depth[s]; });
    }
    void clear() {
        for (const std::int32_t node : nodes_) flag_[node] = 0;
        nodes_.clear();
    }

  private:
    template <class RankOf>
    void order_by_rank(std::int32_t highest, RankOf rank_of) {
        start_.assign(static_cast<std::size_t>(highest) + 2, 0);
        for (const std::int32_t node : nodes_) ++start_[highest - rank_of(node) + 1];
        for (std::size_t d = 1; d < start_.size(); ++d) start_[d] += start_[d - 1];
        ordered_.resize(nodes_.size());
        for (const std::int32_t node : nodes_) ordered_[start_[highest - rank_of(node)]++] = node;
        nodes_.swap(ordered_);
    }

    std::vector<std::uint8_t> flag_;
    std::vector<std::int32_t> nodes_, ordered_;
    std::vector<std::size_t> start_;
};

}  // namespace everytree
