// The mixtures of a forest whose leaves are Student's t: each row is routed to its nodes, and its mixture solved.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <span>
#include <stdexcept>
#include <vector>

#include "core/parallel.hpp"
#include "core/pool.hpp"
#include "core/student_answers.hpp"
#include "core/student_mixture.hpp"

namespace everytree {

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
    StudentForest(const PooledNodes& pool, std::span<const std::int64_t> first, std::span<const double> log_tree_weights,
                  double log_negligible, const StudentNodes& nodes, int n_jobs)
        : first_(first.begin(), first.end()) {
        check(pool, first, log_tree_weights, nodes);
        make_shapes(nodes.freedom, n_jobs);
        nodes_.resize(nodes.freedom.size());
        for (std::size_t tree = 0; tree < first_.size(); ++tree)
            for (std::int64_t s = first_[tree]; s < end_of(tree); ++s)
                make_node(pool, nodes, s, log_tree_weights[tree], log_negligible);
    }
    StudentForest(const StudentForest&) = delete;  // nodes refer to shapes
    StudentForest& operator=(const StudentForest&) = delete;

    std::size_t n_trees() const { return first_.size(); }

    // (n_rows, n_levels).
    std::vector<double> quantiles(std::span<const std::int32_t> ends, std::span<const double> levels,
                                  int n_jobs) const {
        std::vector<double> out(n_rows(ends) * levels.size());
        each_row(ends, n_jobs, [&](const StudentMixture& mixture, double centre, std::size_t row) {
            double* const of_row = out.data() + row * levels.size();
            for (std::size_t k = 0; k < levels.size(); ++k) of_row[k] = centre + mixture.quantile(levels[k], false);
        });
        return out;
    }

    // (n_rows, 2): the ends of the shortest interval; with `is_log`, the shortest after taking exp of both.
    std::vector<double> shortest(std::span<const std::int32_t> ends, double coverage, bool is_log, int n_jobs) const {
        std::vector<double> out(2 * n_rows(ends));
        each_row(ends, n_jobs, [&](const StudentMixture& mixture, double centre, std::size_t row) {
            const Interval found = shortest_interval(mixture, coverage, is_log);
            out[2 * row] = centre + found.low;
            out[2 * row + 1] = centre + found.high;
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

    // (n_points, n_rows): continuous ranked probability scores; NaN where the sums do not promise 1e-8.
    std::vector<double> scores(std::span<const std::int32_t> ends, const RowTargets& y, int n_jobs) const {
        const std::size_t n = n_rows(ends);
        check_targets(y, n);
        std::vector<double> out(y.n_points * n);
        each_row(ends, n_jobs, [&](const StudentMixture& mixture, double centre, std::size_t row) {
            const double half_spread = half_mean_difference(mixture);
            for (std::size_t k = 0; k < y.n_points; ++k)
                out[k * n + row] = ranked_score(mixture, half_spread, y.at(k, row) - centre);
        });
        return out;
    }

  private:
    static constexpr std::size_t together = 16;     // rows whose mixtures fit in the cache
    static constexpr std::size_t most_tables = 2048;  // 16 MB of them

    struct Node {
        double location, location_rest, scale, share_above, share_at_end;
        std::int32_t next, shape;  // next: the nearest node above with a share
    };

    static void check(const PooledNodes& pool, std::span<const std::int64_t> first,
                      std::span<const double> log_tree_weights, const StudentNodes& nodes) {
        const auto n = static_cast<std::size_t>(pool.n_nodes);
        if (first.size() == 0 || log_tree_weights.size() != first.size() || nodes.freedom.size() != n ||
            nodes.location.size() != n || nodes.location_rest.size() != n || nodes.scale.size() != n)
            throw std::invalid_argument("arrays of the wrong size");
        if (first[0] != 0) throw std::invalid_argument("first: the first tree starts at 0");
        for (std::size_t tree = 0; tree < first.size(); ++tree) {
            const std::int64_t begin = first[tree];
            const std::int64_t end = tree + 1 < first.size() ? first[tree + 1] : pool.n_nodes;
            if (begin >= end || end > pool.n_nodes) throw std::invalid_argument("first: a tree without nodes");
            for (std::int64_t s = begin; s < end; ++s)
                if (pool.parent[s] >= s || (pool.parent[s] >= 0 && pool.parent[s] < begin))
                    throw std::invalid_argument("parents come first");
        }
        for (std::size_t s = 0; s < n; ++s)
            if (!(nodes.freedom[s] > 0.0 && std::isfinite(nodes.location[s]) && std::isfinite(nodes.location_rest[s]) &&
                  nodes.scale[s] > 0.0 && std::isfinite(nodes.scale[s])))
                throw std::invalid_argument("a node whose scale or freedom is not positive, or without location");
    }

    std::int64_t end_of(std::size_t tree) const {
        return tree + 1 < first_.size() ? first_[tree + 1] : static_cast<std::int64_t>(nodes_.size());
    }

    // One shape for each number of degrees of freedom; the most frequent ones have tables.
    void make_shapes(std::span<const double> freedom, int n_jobs) {
        std::map<double, std::int64_t> count;
        for (const double each : freedom) ++count[each];
        std::vector<std::pair<std::int64_t, std::size_t>> most_frequent;
        for (const auto& [value, n] : count) {
            most_frequent.emplace_back(-n, shapes_.size());
            number_.emplace(value, static_cast<std::int32_t>(shapes_.size()));
            shapes_.emplace_back(value);
        }
        std::sort(most_frequent.begin(), most_frequent.end());
        in_chunks(static_cast<std::int64_t>(std::min(most_tables, most_frequent.size())), n_jobs,
                  [&](std::int64_t k, int) { shapes_[most_frequent[static_cast<std::size_t>(k)].second].tabulate(); });
    }

    void make_node(const PooledNodes& pool, const StudentNodes& nodes, std::int64_t s, double log_tree_weight,
                   double log_negligible) {
        const auto share = [&](double log_share) {
            const bool is_in = log_share >= log_negligible && log_tree_weight >= log_negligible;
            return is_in ? std::exp(log_share + log_tree_weight) : 0.0;
        };
        const std::int32_t parent = pool.parent[s];
        const bool skips = parent >= 0 && nodes_[static_cast<std::size_t>(parent)].share_above == 0.0;
        const auto i = static_cast<std::size_t>(s);
        nodes_[i] = {nodes.location[i],
                     nodes.location_rest[i],
                     nodes.scale[i],
                     share(pool.log_reached[s] + pool.log_stop[s]),
                     share(pool.log_reached[s]),
                     skips ? nodes_[static_cast<std::size_t>(parent)].next : parent,
                     number_.at(nodes.freedom[i])};
    }

    std::size_t n_rows(std::span<const std::int32_t> ends) const {
        if (ends.size() % n_trees() != 0) throw std::invalid_argument("ends: one node for each tree");
        return ends.size() / n_trees();
    }
    static void check_targets(const RowTargets& y, std::size_t n_rows) {
        if (y.y.size() != y.n_points * y.n_columns || (y.n_columns != 1 && y.n_columns != n_rows))
            throw std::invalid_argument("y: one column for each row, or one for all");
    }
    void check_ends(std::span<const std::int32_t> ends) const {
        for (std::size_t i = 0; i < ends.size(); ++i) {
            const std::size_t tree = i % n_trees();
            if (ends[i] < 0 || ends[i] >= end_of(tree) - first_[tree])
                throw std::invalid_argument("ends: no such node");
        }
    }

    // of(mixture, centre, row) for all rows; what the mixture knows is relative to the centre. Some rows at a time, tree
    // by tree, so that the nodes of a tree stay in the cache.
    template <class Of>
    void each_row(std::span<const std::int32_t> ends, int n_jobs, Of of) const {
        const std::size_t n = n_rows(ends);
        check_ends(ends);
        const auto work = [&](std::int64_t chunk, int) {
            const std::size_t begin = static_cast<std::size_t>(chunk) * together, n_here = std::min(together, n - begin);
            std::vector<StudentMixture> mixtures(n_here);
            std::vector<double> centres(n_here);
            for (std::size_t tree = 0; tree < n_trees(); ++tree)
                for (std::size_t i = 0; i < n_here; ++i)
                    add_path(first_[tree] + ends[(begin + i) * n_trees() + tree], mixtures[i], centres[i]);
            for (std::size_t i = 0; i < n_here; ++i) {
                if (mixtures[i].size() == 0) throw std::invalid_argument("a row without weight");
                mixtures[i].close();
                of(mixtures[i], centres[i], begin + i);
            }
        };
        in_chunks(static_cast<std::int64_t>((n + together - 1) / together), n_jobs, work);
    }

    void add_path(std::int64_t end, StudentMixture& mixture, double& centre) const {
        double share = nodes_[static_cast<std::size_t>(end)].share_at_end;
        for (std::int64_t s = end; s >= 0;) {
            const Node& node = nodes_[static_cast<std::size_t>(s)];
            if (s != end) share = node.share_above;
            if (share > 0.0) {
                if (mixture.size() == 0) centre = node.location;
                const double location = (node.location - centre) + node.location_rest;
                mixture.add(share, shapes_[static_cast<std::size_t>(node.shape)], location, node.scale);
            }
            s = node.next;
        }
    }

    template <class Of>
    std::vector<double> each_target(std::span<const std::int32_t> ends, const RowTargets& y, int n_jobs, Of of) const {
        const std::size_t n = n_rows(ends);
        check_targets(y, n);
        std::vector<double> out(y.n_points * n);
        each_row(ends, n_jobs, [&](const StudentMixture& mixture, double centre, std::size_t row) {
            for (std::size_t k = 0; k < y.n_points; ++k) out[k * n + row] = of(mixture, y.at(k, row) - centre);
        });
        return out;
    }

    std::vector<std::int64_t> first_;
    std::vector<TabulatedShape> shapes_;
    std::map<double, std::int32_t> number_;
    std::vector<Node> nodes_;
};

}  // namespace everytree
