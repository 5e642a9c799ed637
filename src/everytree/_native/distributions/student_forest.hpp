// The mixtures of a forest whose leaves are Student's t: each row is routed to its nodes, and its mixture solved.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/node_pool.hpp"
#include "core/parallel.hpp"
#include "distributions/student_answers.hpp"
#include "distributions/student_mixture.hpp"
#include "numerics/compiler.hpp"

namespace everytree::distributions {

// The t distribution of each node: its location is the sum of two numbers, of which the second has the digits that the
// first lacks.
struct StudentNodes {
    std::span<const double> freedom, location, location_rest, scale;
};

// Targets of rows: `n_points` for each of them, its own or the same for all.
struct RowTargets {
    std::span<const double> y;
    std::size_t n_points, n_columns;
    double at(std::size_t point, std::size_t row) const { return y[point * n_columns + (n_columns == 1 ? 0 : row)]; }
};

class StudentForest {
  public:
    // The pool is borrowed.
    StudentForest(const NodePool& pool, const StudentNodes& nodes, int n_jobs) : pool_(pool) {
        check(pool, nodes);
        centre_ = nodes.location[0];
        nodes_.resize(pool.n_nodes());
        find_shapes(nodes.freedom);
        in_chunks(static_cast<std::int64_t>(pool.n_trees()), n_jobs, [&](std::int64_t tree, int) {
            const auto t = static_cast<std::size_t>(tree);
            for (std::int64_t s = pool.first(t); s < pool.end(t); ++s) make_node(nodes, static_cast<std::size_t>(s));
        });
    }
    StudentForest(const StudentForest&) = delete;
    StudentForest& operator=(const StudentForest&) = delete;

    std::size_t n_trees() const { return pool_.n_trees(); }

    // (n_rows, n_levels).
    std::vector<double> quantiles(std::span<const std::int32_t> ends, std::span<const double> levels,
                                  int n_jobs) const {
        std::vector<double> out(pool_.n_rows(ends) * levels.size());
        each_row(ends, n_jobs, [&](const StudentMixture& mixture, std::size_t row) {
            double* const of_row = out.data() + row * levels.size();
            for (std::size_t k = 0; k < levels.size(); ++k) of_row[k] = centre_ + mixture.quantile(levels[k], false);
        });
        return out;
    }

    // (n_rows, 2): the ends of the shortest interval; with `is_log`, the shortest after taking exp of both.
    std::vector<double> shortest(std::span<const std::int32_t> ends, double coverage, bool is_log, int n_jobs) const {
        std::vector<double> out(2 * pool_.n_rows(ends));
        each_row(ends, n_jobs, [&](const StudentMixture& mixture, std::size_t row) {
            const Interval found = shortest_interval(mixture, coverage, is_log);
            out[2 * row] = centre_ + found.low;
            out[2 * row + 1] = centre_ + found.high;
        });
        return out;
    }

    // (n_points, n_rows): log densities.
    std::vector<double> log_densities(std::span<const std::int32_t> ends, const RowTargets& y, int n_jobs) const {
        return each_target(ends, y, n_jobs, [](const StudentMixture& mixture, double at) {
            return std::isfinite(at) ? mixture.log_density(at) : -std::numeric_limits<double>::infinity();
        });
    }

    // (n_points, n_rows): P(Y > y) if is_above, else P(Y <= y).
    std::vector<double> tails(std::span<const std::int32_t> ends, const RowTargets& y, bool is_above,
                              int n_jobs) const {
        return each_target(ends, y, n_jobs, [is_above](const StudentMixture& mixture, double at) {
            if (std::isnan(at)) return at;
            const Tails tails = mixture.tails(at);
            return is_above ? tails.above : tails.below;
        });
    }

    // (n_points, n_rows): continuous ranked probability scores, with `is_log` of exp(Y) for the logarithms of targets;
    // NaN where the sums do not promise 1e-8.
    std::vector<double> scores(std::span<const std::int32_t> ends, const RowTargets& y, bool is_log, int n_jobs) const {
        const std::size_t n = pool_.n_rows(ends);
        check_targets(y, n);
        std::vector<double> out(y.n_points * n);
        each_row(ends, n_jobs, [&](const StudentMixture& mixture, std::size_t row) {
            const double half_spread = is_log ? half_mean_difference_of_exp(mixture) : half_mean_difference(mixture);
            const double unit = is_log ? std::exp(centre_ + mixture.start()) : 1.0;
            for (std::size_t k = 0; k < y.n_points; ++k) {
                const double at = y.at(k, row) - centre_;
                const double score =
                    is_log ? ranked_score_of_exp(mixture, half_spread, at) : ranked_score(mixture, half_spread, at);
                out[k * n + row] =
                    std::isfinite(unit * score) ? unit * score : std::numeric_limits<double>::quiet_NaN();
            }
        });
        return out;
    }

  private:
    static constexpr std::size_t together = 32;       // rows at most: their mixtures fit in the cache
    static constexpr std::size_t most_tables = 2048;  // 16 MB of them

    // Half a cache line: `share` and `next` are those of the pool.
    struct alignas(32) Node {
        double location, inverse_scale, share;
        std::int32_t next, shape;
    };

    struct Shape {
        std::unique_ptr<const TabulatedShape> shape;
        bool is_frequent;
    };

    static void check(const NodePool& pool, const StudentNodes& nodes) {
        const std::size_t n = pool.n_nodes();
        for (const std::span<const double> each : {nodes.freedom, nodes.location, nodes.location_rest, nodes.scale})
            if (each.size() != n) throw std::invalid_argument("arrays of the wrong size");
        for (std::size_t s = 0; s < n; ++s)
            if (!(nodes.freedom[s] > 0.0 && std::isfinite(nodes.location[s]) && std::isfinite(nodes.location_rest[s]) &&
                  nodes.scale[s] > 0.0 && std::isfinite(nodes.scale[s])))
                throw std::invalid_argument("a node whose scale or freedom is not positive, or without location");
    }

    // One shape for each number of degrees of freedom. The most frequent ones of nodes with a share have tables, each
    // of which is made when the first row asks for it.
    void find_shapes(std::span<const double> freedom) {
        std::unordered_map<double, std::int32_t> number;
        std::vector<std::pair<std::int64_t, std::size_t>> frequency;  // negative, and the shape
        struct Recent {
            double freedom = 0.0;  // that no node has
            std::int32_t shape = 0;
        };
        std::array<Recent, 256> recent;
        for (std::size_t s = 0; s < freedom.size(); ++s) {
            const std::uint64_t bits = std::bit_cast<std::uint64_t>(freedom[s]);
            Recent& known = recent[(bits * 0x9e3779b97f4a7c15u) >> 56];
            if (known.freedom != freedom[s]) {
                const auto [at, is_new] = number.try_emplace(freedom[s], static_cast<std::int32_t>(shapes_.size()));
                if (is_new) {
                    frequency.emplace_back(0, shapes_.size());
                    shapes_.push_back({std::make_unique<const TabulatedShape>(freedom[s]), false});
                }
                known = {freedom[s], at->second};
            }
            if (pool_.share(s) > 0.0) --frequency[static_cast<std::size_t>(known.shape)].first;
            nodes_[s].shape = known.shape;
        }
        std::erase_if(frequency, [](const auto& each) { return each.first == 0; });
        std::sort(frequency.begin(), frequency.end());
        frequency.resize(std::min(most_tables, frequency.size()));
        for (const auto& [n_nodes, shape] : frequency) shapes_[shape].is_frequent = true;
    }

    void make_node(const StudentNodes& nodes, std::size_t s) {
        nodes_[s].location = (nodes.location[s] - centre_) + nodes.location_rest[s];
        nodes_[s].inverse_scale = 1.0 / nodes.scale[s];
        nodes_[s].share = pool_.share(s);
        nodes_[s].next = pool_.next(s);
    }

    static void check_targets(const RowTargets& y, std::size_t n_rows) {
        if (y.y.size() != y.n_points * y.n_columns || (y.n_columns != 1 && y.n_columns != n_rows))
            throw std::invalid_argument("y: one column for each row, or one for all");
    }
    // of(mixture, row) for all rows; what the mixture knows is relative to the centre.
    template <class Of>
    void each_row(std::span<const std::int32_t> ends, int n_jobs, Of of) const {
        const std::size_t n = pool_.n_rows(ends);
        const auto n_jobs_used = static_cast<std::size_t>(std::max(n_jobs, 1));
        const std::size_t at_once = std::clamp<std::size_t>((n + n_jobs_used - 1) / n_jobs_used, 1, together);
        const std::size_t n_chunks = (n + at_once - 1) / at_once;
        std::vector<std::array<StudentMixture, together>> scratch(std::clamp<std::size_t>(n_chunks, 1, n_jobs_used));
        in_chunks(static_cast<std::int64_t>(n_chunks), n_jobs, [&](std::int64_t chunk, int worker) {
            const std::size_t begin = static_cast<std::size_t>(chunk) * at_once;
            const std::span mixtures(scratch[static_cast<std::size_t>(worker)].data(), std::min(at_once, n - begin));
            for (StudentMixture& mixture : mixtures) mixture.clear();
            for (std::size_t tree = 0; tree < n_trees(); ++tree)
                add_paths(tree, ends.data() + begin * n_trees() + tree, mixtures);
            for (std::size_t i = 0; i < mixtures.size(); ++i) {
                if (mixtures[i].size() == 0) throw std::invalid_argument("a row without weight");
                mixtures[i].close();
                of(mixtures[i], begin + i);
            }
        });
    }

    // The nodes on the paths of some rows through one tree. All rows take a step upward before any takes the next: the
    // nodes come from memory, and many are fetched at the same time.
    void add_paths(std::size_t tree, const std::int32_t* ends, std::span<StudentMixture> mixtures) const {
        std::array<std::int64_t, together> at;
        for (std::size_t i = 0; i < mixtures.size(); ++i) {
            at[i] = pool_.first(tree) + ends[i * n_trees()];
            EVERYTREE_PREFETCH(&nodes_[static_cast<std::size_t>(at[i])]);
        }
        for (std::size_t i = 0; i < mixtures.size(); ++i) {
            at[i] = add_node(at[i], pool_.share_at_end(static_cast<std::size_t>(at[i])), mixtures[i]);
        }
        for (bool goes_on = true; goes_on;) {
            goes_on = false;
            for (std::size_t i = 0; i < mixtures.size(); ++i) {
                if (at[i] < 0) continue;
                at[i] = add_node(at[i], nodes_[static_cast<std::size_t>(at[i])].share, mixtures[i]);
                goes_on = true;
            }
        }
    }
    std::int64_t add_node(std::int64_t s, double share, StudentMixture& mixture) const {
        const Node& node = nodes_[static_cast<std::size_t>(s)];
        const Shape& own = shapes_[static_cast<std::size_t>(node.shape)];
        if (own.is_frequent) own.shape->tabulate();
        mixture.add(share, *own.shape, node.location, node.inverse_scale);
        if (node.next >= 0) EVERYTREE_PREFETCH(&nodes_[static_cast<std::size_t>(node.next)]);
        return node.next;
    }

    template <class Of>
    std::vector<double> each_target(std::span<const std::int32_t> ends, const RowTargets& y, int n_jobs, Of of) const {
        const std::size_t n = pool_.n_rows(ends);
        check_targets(y, n);
        std::vector<double> out(y.n_points * n);
        each_row(ends, n_jobs, [&](const StudentMixture& mixture, std::size_t row) {
            for (std::size_t k = 0; k < y.n_points; ++k) out[k * n + row] = of(mixture, y.at(k, row) - centre_);
        });
        return out;
    }

    const NodePool& pool_;
    double centre_ = 0.0;  // all locations are relative to it
    std::vector<Shape> shapes_;
    std::vector<Node> nodes_;
};

}  // namespace everytree::distributions
