// Random trees, and the plain meaning of what the kernels compute on them.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "check.hpp"
#include "core/sweep.hpp"
#include "core/tree_shape.hpp"
#include "numerics/log_sum.hpp"

namespace native_tests {

inline constexpr int n_columns = 4;

// Column k has n_codes[k] codes. Splits on the last column have one child for each code, the others a threshold; rows
// of the columns with missing values go to a child of their own or to one of the two.
struct RandomTree {
    std::vector<std::int32_t> feature, first_child, n_children, threshold, missing_child;
    int n_codes[n_columns] = {};
    bool has_missing[n_columns] = {};

    RandomTree(Random& random, int max_inner, bool with_missing) {
        for (int k = 0; k < n_columns; ++k) {
            n_codes[k] = 2 + random.below(3);
            has_missing[k] = with_missing && random.below(2) == 0;
        }
        std::int32_t n_nodes = 1;
        int n_inner = 0;
        for (std::int32_t s = 0; s < n_nodes; ++s) {
            const bool splits = n_inner < max_inner && random.below(4) > 0;
            n_inner += splits;
            n_nodes = splits ? add_split(random, n_nodes) : add_terminal(n_nodes);
        }
    }

    everytree::TreeArrays arrays() const {
        return {feature.data(),   first_child.data(),   n_children.data(),
                threshold.data(), missing_child.data(), static_cast<std::int64_t>(feature.size())};
    }
    std::size_t size() const { return feature.size(); }
    bool is_terminal(std::size_t s) const { return n_children[s] == 0; }

    // Where a row goes, as the docstring of MetaTree says it. -1 is the missing code.
    std::int32_t terminal_of(const int* row) const {
        std::int32_t s = 0;
        while (n_children[s] > 0) {
            const int code = row[feature[s]];
            int child = code;
            if (code < 0)
                child = missing_child[s];
            else if (threshold[s] >= 0)
                child = code > threshold[s] ? 1 : 0;
            s = first_child[s] + child;
        }
        return s;
    }
    // A row of codes that all splits know.
    void draw_row(Random& random, int* row) const {
        for (int k = 0; k < n_columns; ++k)
            row[k] = has_missing[k] && random.below(4) == 0 ? -1 : random.below(n_codes[k]);
    }

  private:
    std::int32_t add_terminal(std::int32_t n_nodes) {
        add(-1, -1, 0, -1, -1);
        return n_nodes;
    }
    std::int32_t add_split(Random& random, std::int32_t n_nodes) {
        const int k = random.below(n_columns), n_missing = has_missing[k] ? 1 : 0;
        if (k == n_columns - 1) {
            add(k, n_nodes, n_codes[k] + n_missing, -1, n_missing ? n_codes[k] : -1);
        } else {
            const int n_own = n_missing * random.below(2);  // whether missing values have a child of their own
            add(k, n_nodes, 2 + n_own, random.below(n_codes[k] - 1), n_own ? 2 : n_missing ? random.below(2) : -1);
        }
        return n_nodes + n_children.back();
    }
    void add(int k, std::int32_t first, int n, int at, int missing) {
        feature.push_back(k);
        first_child.push_back(first);
        n_children.push_back(n);
        threshold.push_back(at);
        missing_child.push_back(missing);
    }
};

// One pruned tree below a node: its leaves, and the log of prior times evidence.
struct Pruning {
    std::vector<std::size_t> inner, leaves;
    double log_weight = 0.0;
};

// Every pruning of the subtree of a node. `leaf` are log evidences of the nodes as leaves.
inline std::vector<Pruning> prunings(const RandomTree& tree, std::size_t s, const std::vector<double>& leaf,
                                     const std::vector<double>& split_prior) {
    std::vector<Pruning> all(1);
    all[0].leaves = {s};
    all[0].log_weight = leaf[s] + (tree.is_terminal(s) ? 0.0 : std::log1p(-split_prior[s]));
    if (tree.is_terminal(s)) return all;
    std::vector<Pruning> split(1);
    split[0].inner = {s};
    split[0].log_weight = std::log(split_prior[s]);
    for (std::int32_t c = 0; c < tree.n_children[s]; ++c) {
        std::vector<Pruning> longer;
        for (const Pruning& below :
             prunings(tree, static_cast<std::size_t>(tree.first_child[s] + c), leaf, split_prior))
            for (Pruning each : split) {
                each.inner.insert(each.inner.end(), below.inner.begin(), below.inner.end());
                each.leaves.insert(each.leaves.end(), below.leaves.begin(), below.leaves.end());
                each.log_weight += below.log_weight;
                longer.push_back(each);
            }
        split.swap(longer);
    }
    all.insert(all.end(), split.begin(), split.end());
    return all;
}

inline double log_evidence(const std::vector<Pruning>& all) {
    std::vector<double> weights;
    for (const Pruning& each : all) weights.push_back(each.log_weight);
    return everytree::numerics::log_sum(weights);
}

// What the kernel derives from evidences of leaves, all nodes at once.
struct Swept {
    std::vector<double> leaf, subtree, split_prob, log_split, log_stop;

    Swept(const everytree::TreeView& tree, std::vector<double> of_leaves, const std::vector<double>& split_prior)
        : leaf(std::move(of_leaves)), subtree(leaf.size()), split_prob(leaf.size(), 0.0) {
        for (const double g : split_prior) {
            log_split.push_back(std::log(g));
            log_stop.push_back(std::log1p(-g));
        }
        const everytree::SplitPrior prior{{log_split.data(), 1}, {log_stop.data(), 1}};
        for (std::int64_t s = tree.n_nodes; s-- > 0;)
            everytree::sweep_node(tree, prior, s, {leaf.data(), subtree.data(), split_prob.data()});
    }
};

}  // namespace native_tests
