// Many classes, one tree a step: a leaf has a value for each class.
//
// Of the scores of a row only the probabilities of its classes are kept, those of row i from i * n_classes on: they are
// the same for scores that differ by a constant. A step multiplies them by the exponentials of the values of the row's
// leaf, so that exponentials are taken leaf by leaf.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>
#include <vector>

#include "boost/leaf_values.hpp"
#include "boost/losses.hpp"
#include "grow/directions.hpp"
#include "grow/random.hpp"
#include "grow/tree.hpp"

namespace everytree::boost {

class SharedSoftmaxLoss {
  public:
    static constexpr bool shares_trees = true;
    using Directions = std::vector<double>;  // (n_classes, n_directions)
    using RowAlong = grow::DirectionsCriterion::Row;

    SharedSoftmaxLoss(const BoostRows& rows, int n_classes)
        : rows_(rows), n_classes_(static_cast<std::size_t>(n_classes)) {}
    int n_outputs() const { return static_cast<int>(n_classes_); }
    void base(RowNumbers train, double* out) const { SoftmaxLoss(rows_, n_outputs()).base(train, out); }

    // All rows have the same scores.
    void start(const std::vector<double>& score) {
        probs_.resize(n_rows() * n_classes_);
        for (std::size_t i = 0; i < n_rows(); ++i) set(score.data(), probs_.data() + i * n_classes_);
    }

    double loss(std::int64_t i) const {
        const auto row = static_cast<std::size_t>(i);
        return -std::log(probs_[row * n_classes_ + label_of(row)]);
    }
    // The probabilities of a row.
    std::span<const double> probs(std::size_t i) const { return {probs_.data() + i * n_classes_, n_classes_}; }

    static Directions directions(grow::NodeRandom random, std::size_t n_classes) {
        constexpr auto n_directions = static_cast<std::size_t>(grow::DirectionsCriterion::n_directions);
        Directions drawn(n_classes * n_directions);
        const double size = 1.0 / std::sqrt(static_cast<double>(n_directions));
        for (double& each : drawn) each = size * standard_normal(random);
        return drawn;
    }

    // What a tree is grown by, for some of the rows.
    void project(std::span<const std::int64_t> some, const Directions& directions, std::vector<RowAlong>& out) const {
        constexpr int n_directions = grow::DirectionsCriterion::n_directions;
        out.resize(n_rows());
        for (const std::int64_t i : some) {
            const auto row = static_cast<std::size_t>(i);
            const double* const p = probs_.data() + row * n_classes_;
            const double* const own = directions.data() + label_of(row) * n_directions;
            double along[n_directions], second = 0.0;
            for (int d = 0; d < n_directions; ++d) along[d] = -own[d];
            for (std::size_t k = 0; k < n_classes_; ++k) {
                for (int d = 0; d < n_directions; ++d) along[d] += p[k] * directions[k * n_directions + d];
                second += curvature(p[k]);
            }
            const double w = rows_.weight_of(i);
            float* const cells = out[row].of_cell;
            for (int d = 0; d < n_directions; ++d) cells[d] = static_cast<float>(w * along[d]);
            cells[n_directions] = static_cast<float>(w * second / static_cast<double>(n_classes_));
            cells[n_directions + 1] = 1.0F;
        }
    }

    // Sums of the derivatives in each class over the rows in each terminal: (n_nodes, n_classes).
    void add_up(RowNumbers train, const std::vector<std::int32_t>& end, NodeSums& sums) const {
        for (const std::uint32_t i : train) {
            const double* const p = probs_.data() + i * n_classes_;
            const std::size_t to = static_cast<std::size_t>(end[i]) * n_classes_;
            double* const first = sums.first.data() + to;
            double* const second = sums.second.data() + to;
            const double w = rows_.weight_of(i);
            for (std::size_t k = 0; k < n_classes_; ++k) {
                first[k] += w * p[k];
                second[k] += w * curvature(p[k]);
            }
            first[label_of(i)] -= w;
        }
    }

    // Adds the values (n_nodes, n_classes) of the terminals of all rows to their scores.
    void move(const std::vector<std::int32_t>& end, const std::vector<double>& value) {
        factor_.resize(value.size());
        for (std::size_t at = 0; at < value.size(); at += n_classes_) {
            const double largest = *std::max_element(value.begin() + at, value.begin() + at + n_classes_);
            for (std::size_t k = at; k < at + n_classes_; ++k) factor_[k] = std::exp(value[k] - largest);
        }
        for (std::size_t i = 0; i < n_rows(); ++i) {
            const std::size_t from = static_cast<std::size_t>(end[i]) * n_classes_;
            double* const p = probs_.data() + i * n_classes_;
            if (!multiply(factor_.data() + from, p)) multiply_logs(value.data() + from, p);
        }
    }

  private:
    // No probability becomes less, so that any can grow again.
    static constexpr double least_prob = 1e-280;
    // Products whose sum is less may have lost digits.
    static constexpr double least_sum = 1e-20;

    static double curvature(double p) { return std::max(p * (1.0 - p), least_curvature); }
    static double standard_normal(grow::NodeRandom& random) {
        constexpr double unit = 1.0 / 4294967296.0;
        const double radius = (random.below(std::uint64_t{1} << 32) + 0.5) * unit;
        const double angle = (random.below(std::uint64_t{1} << 32) + 0.5) * unit;
        return std::sqrt(-2.0 * std::log(radius)) * std::cos(2.0 * std::numbers::pi * angle);
    }
    std::size_t n_rows() const { return static_cast<std::size_t>(rows_.n_rows); }
    std::size_t label_of(std::size_t i) const { return static_cast<std::size_t>(rows_.y[i]); }

    // The probabilities that belong to scores.
    void set(const double* score, double* p) const {
        const double largest = *std::max_element(score, score + n_classes_);
        double sum = 0.0;
        for (std::size_t k = 0; k < n_classes_; ++k) sum += std::exp(score[k] - largest);
        const double log_total = largest + std::log(sum);
        for (std::size_t k = 0; k < n_classes_; ++k) p[k] = std::max(std::exp(score[k] - log_total), least_prob);
    }
    // Returns whether the products say enough; if not, nothing is changed.
    bool multiply(const double* factor, double* p) const {
        double sum = 0.0;
        for (std::size_t k = 0; k < n_classes_; ++k) sum += p[k] * factor[k];
        if (!(sum > least_sum)) return false;
        const double scale = 1.0 / sum;
        for (std::size_t k = 0; k < n_classes_; ++k) p[k] = std::max(p[k] * factor[k] * scale, least_prob);
        return true;
    }
    // The same in logarithms.
    void multiply_logs(const double* value, double* p) const {
        std::vector<double> score(n_classes_);
        for (std::size_t k = 0; k < n_classes_; ++k) score[k] = std::log(p[k]) + value[k];
        set(score.data(), p);
    }

    BoostRows rows_;
    std::size_t n_classes_;
    std::vector<double> probs_, factor_;
};

// Values and gains of a tree of many classes, each class with a posterior over prunings of its own: values (n_nodes,
// n_classes), and for each node the sum of the gains of all classes.
inline LeafValues leaf_values_of_classes(const grow::GrownTree& tree, const NodeSums& sums, std::size_t n_classes,
                                         const LeafPrior& prior) {
    const std::size_t n_nodes = tree.feature.size();
    LeafValues all{std::vector<double>(n_nodes * n_classes), std::vector<double>(n_nodes, 0.0)};
    NodeSums own;
    for (std::size_t k = 0; k < n_classes; ++k) {
        own.clear(n_nodes);
        for (std::size_t s = 0; s < n_nodes; ++s) {
            own.first[s] = sums.first[s * n_classes + k];
            own.second[s] = sums.second[s * n_classes + k];
        }
        const LeafValues of_class = leaf_values(tree, own, prior);
        for (std::size_t s = 0; s < n_nodes; ++s) {
            all.value[s * n_classes + k] = of_class.value[s];
            all.gain[s] += of_class.gain[s];
        }
    }
    return all;
}

}  // namespace everytree::boost
