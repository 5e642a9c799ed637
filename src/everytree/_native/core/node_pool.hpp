// The nodes of all trees of a forest with their weights in mixtures, and averages over the mixtures of rows.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "core/parallel.hpp"
#include "core/pool.hpp"

namespace everytree {

class NodePool {
  public:
    // A node has no share if its probability in its tree, or the weight of the tree, is below the threshold.
    NodePool(const PooledNodes& nodes, std::span<const std::int64_t> first, std::span<const double> log_tree_weights,
             double log_negligible, int n_jobs)
        : first_(first.begin(), first.end()), n_nodes_(static_cast<std::size_t>(nodes.n_nodes)) {
        check(nodes, log_tree_weights);
        next_.assign(n_nodes_, -1);
        share_.assign(n_nodes_, 0.0);
        share_at_end_.assign(n_nodes_, 0.0);
        in_chunks(static_cast<std::int64_t>(n_trees()), n_jobs, [&](std::int64_t tree, int) {
            const auto t = static_cast<std::size_t>(tree);
            if (log_tree_weights[t] >= log_negligible) add_tree(nodes, t, log_tree_weights[t], log_negligible);
        });
    }

    std::size_t n_trees() const { return first_.size(); }
    std::size_t n_nodes() const { return n_nodes_; }
    std::int64_t first(std::size_t tree) const { return first_[tree]; }
    std::int64_t end(std::size_t tree) const {
        return tree + 1 < first_.size() ? first_[tree + 1] : static_cast<std::int64_t>(n_nodes_);
    }
    // The nearest node above that has a share; negative if there is none.
    std::int32_t next(std::size_t node) const { return next_[node]; }
    // The weight of a node in the mixtures of rows that go on below it, and of those that end there.
    double share(std::size_t node) const { return share_[node]; }
    double share_at_end(std::size_t node) const { return share_at_end_[node]; }

    // The rows of `ends`, one node of each tree, as numbers within the tree.
    std::size_t n_rows(std::span<const std::int32_t> ends) const {
        if (ends.size() % n_trees() != 0) throw std::invalid_argument("ends: one node for each tree");
        for (std::size_t i = 0; i < ends.size(); ++i) {
            const std::size_t tree = i % n_trees();
            if (ends[i] < 0 || ends[i] >= end(tree) - first_[tree]) throw std::invalid_argument("ends: no such node");
        }
        return ends.size() / n_trees();
    }

    // (n_nodes, 2): for a row that ends in a node, the sum of share times value over its path, and of the shares.
    std::vector<double> sums_along(std::span<const double> values, int n_jobs) const {
        if (values.size() != n_nodes_) throw std::invalid_argument("values: one for each node");
        std::vector<double> above(2 * n_nodes_, 0.0), out(2 * n_nodes_);
        in_chunks(static_cast<std::int64_t>(n_trees()), n_jobs, [&](std::int64_t tree, int) {
            const auto t = static_cast<std::size_t>(tree);
            for (auto s = static_cast<std::size_t>(first_[t]); s < static_cast<std::size_t>(end(t)); ++s) {
                if (next_[s] >= 0) {
                    const auto up = static_cast<std::size_t>(next_[s]);
                    above[2 * s] = above[2 * up] + share_[up] * values[up];
                    above[2 * s + 1] = above[2 * up + 1] + share_[up];
                }
                out[2 * s] = above[2 * s] + (share_at_end_[s] > 0.0 ? share_at_end_[s] * values[s] : 0.0);
                out[2 * s + 1] = above[2 * s + 1] + share_at_end_[s];
            }
        });
        return out;
    }

    // (n_rows,): the average over each row's mixture, from what `sums_along` returned.
    std::vector<double> averages(std::span<const std::int32_t> ends, std::span<const double> sums, int n_jobs) const {
        const std::size_t n = n_rows(ends);
        if (sums.size() != 2 * n_nodes_) throw std::invalid_argument("sums: two for each node");
        constexpr std::size_t together = 256;
        std::vector<double> out(n);
        in_chunks(static_cast<std::int64_t>((n + together - 1) / together), n_jobs, [&](std::int64_t chunk, int) {
            const std::size_t begin = static_cast<std::size_t>(chunk) * together;
            for (std::size_t row = begin; row < std::min(begin + together, n); ++row) {
                double sum = 0.0, total = 0.0;
                for (std::size_t tree = 0; tree < n_trees(); ++tree) {
                    const auto s = static_cast<std::size_t>(first_[tree] + ends[row * n_trees() + tree]);
                    sum += sums[2 * s];
                    total += sums[2 * s + 1];
                }
                out[row] = sum / total;
            }
        });
        return out;
    }

  private:
    void check(const PooledNodes& nodes, std::span<const double> log_tree_weights) const {
        if (n_trees() == 0 || log_tree_weights.size() != n_trees())
            throw std::invalid_argument("first and log_tree_weights: one for each tree");
        if (first_[0] != 0) throw std::invalid_argument("first: the first tree starts at 0");
        for (std::size_t tree = 0; tree < n_trees(); ++tree) {
            if (first_[tree] < 0 || first_[tree] >= end(tree) || end(tree) > nodes.n_nodes)
                throw std::invalid_argument("first: a tree without nodes");
            for (std::int64_t s = first_[tree]; s < end(tree); ++s)
                if (nodes.parent[s] >= s || (nodes.parent[s] >= 0 && nodes.parent[s] < first_[tree]))
                    throw std::invalid_argument("parents come first");
        }
    }

    void add_tree(const PooledNodes& nodes, std::size_t tree, double log_weight, double log_negligible) {
        for (std::int64_t s = first_[tree]; s < end(tree); ++s) {
            const auto i = static_cast<std::size_t>(s);
            const double at_end = nodes.log_reached[s], below = at_end + nodes.log_stop[s];
            share_at_end_[i] = at_end >= log_negligible ? std::exp(at_end + log_weight) : 0.0;
            share_[i] = below == at_end           ? share_at_end_[i]
                        : below >= log_negligible ? std::exp(below + log_weight)
                                                  : 0.0;
            const std::int32_t parent = nodes.parent[s];
            const bool skips = parent >= 0 && share_[static_cast<std::size_t>(parent)] == 0.0;
            next_[i] = skips ? next_[static_cast<std::size_t>(parent)] : parent;
        }
    }

    std::vector<std::int64_t> first_;
    std::size_t n_nodes_;
    std::vector<std::int32_t> next_;
    std::vector<double> share_, share_at_end_;
};

}  // namespace everytree
