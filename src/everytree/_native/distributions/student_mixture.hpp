// One mixture of Student's t: tails, densities, quantiles, the shortest interval, and its score.
#pragma once
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "distributions/student_table.hpp"
#include "numerics/lanes.hpp"

namespace everytree::distributions {

// A shape with its table, if it has one. Threads may make the table at the same time: one of them is kept, and all have
// the same bits. There is no lock that a fork could leave taken.
class TabulatedShape {
  public:
    explicit TabulatedShape(double freedom) : shape(freedom), bend(shape.bend()) {}
    ~TabulatedShape() { delete table_.load(); }
    TabulatedShape(const TabulatedShape&) = delete;
    TabulatedShape& operator=(const TabulatedShape&) = delete;

    const StudentTable* table() const { return table_.load(std::memory_order_acquire); }
    void tabulate() const {
        if (table() != nullptr || shape.freedom() < StudentTable::least_freedom) return;
        auto made = std::make_unique<const StudentTable>(shape);
        const StudentTable* none = nullptr;
        if (table_.compare_exchange_strong(none, made.get(), std::memory_order_acq_rel)) made.release();
    }

    const StudentShape shape;
    const double bend;

  private:
    mutable std::atomic<const StudentTable*> table_{nullptr};
};

// P(Y <= y), the density and the derivative of the density.
struct Curve {
    double below, density, slope;
};

// Components are added one by one, with weights that `close` scales to sum to 1. Locations and all y are relative to a
// centre, so that numbers far from zero keep their digits.
//
// Functions named `quickly` use the tables: probabilities have an error below 1e-13. Tails of at least `least_tail` are
// then as exact as 1e-10 of themselves; smaller ones are computed by the continued fraction, to all digits.
class StudentMixture {
  public:
    static constexpr double least_tail = 1e-3, exact_enough = 5e-11;

    void clear() { n_ = 0; }
    void add(double weight, const TabulatedShape& shape, double location, double inverse_scale) {
        if (!(weight > 0.0)) return;
        if (n_ == weight_.size()) make_room();
        weight_[n_] = weight;
        location_[n_] = location;
        inverse_scale_[n_] = inverse_scale;
        shape_[n_] = &shape;
        ++n_;
    }
    std::size_t size() const { return n_; }

    void close() {
        double total = 0.0, mean = 0.0, square = 0.0, cube = 0.0, least_sharp = std::numeric_limits<double>::infinity();
        for (std::size_t i = 0; i < n_; ++i) {
            total += weight_[i];
            mean += weight_[i] * location_[i];
        }
        mean /= total;
        jerk_ = 0.0;
        for (std::size_t i = 0; i < n_; ++i) {
            weight_[i] /= total;
            const double sharp = inverse_scale_[i], away = location_[i] - mean, variance = 1.0 / (sharp * sharp);
            square += weight_[i] * (away * away + variance);
            cube += weight_[i] * away * (away * away + 3.0 * variance);
            jerk_ += weight_[i] * shape_[i]->bend * (sharp * sharp * sharp);
            least_sharp = std::min(least_sharp, sharp);
        }
        put_tables_first();
        widest_ = 1.0 / least_sharp;
        start_ = std::isfinite(mean) ? mean : location_[0];
        spread_ = std::isfinite(square) && square > 0.0 ? std::sqrt(square) : widest_;
        const double skewness = cube / spread_ / spread_ / spread_;
        skewness_ = std::isfinite(skewness) ? std::clamp(skewness, -1.5, 1.5) : 0.0;
    }

    // A place near the middle, and a distance: those of the weighted mean and variance, for light tails.
    double start() const { return start_; }
    double spread() const { return spread_; }
    double least_freedom() const {
        double least = std::numeric_limits<double>::infinity();
        for (std::size_t i = 0; i < n_; ++i) least = std::min(least, shape_[i]->shape.freedom());
        return least;
    }

    Tails at(double y) const {
        Tails sum{0.0, 0.0, 0.0};
        for (std::size_t i = 0; i < n_; ++i) {
            const Tails tails = shape_[i]->shape.at(standardised(i, y));
            sum.below += weight_[i] * tails.below;
            sum.above += weight_[i] * tails.above;
            sum.density += weight_[i] * inverse_scale_[i] * tails.density;
        }
        return sum;
    }
    Curve quickly_at(double y) const { return quickly<true>(y); }
    double quickly_below(double y) const { return quickly<false>(y).below; }

    // P(Y <= y) and P(Y > y), by tables if neither is small.
    Tails tails(double y) const {
        if (std::isfinite(y)) {
            const double below = quickly_below(y);
            if (below >= least_tail && below <= 1.0 - least_tail) return {below, 1.0 - below, 0.0};
        }
        return at(y);
    }

    double log_density(double y) const {
        double sum = 0.0;
        for (std::size_t i = 0; i < n_; ++i)
            sum += weight_[i] * inverse_scale_[i] * std::exp(shape_[i]->shape.log_density(standardised(i, y)));
        if (sum > 1e-280 && sum < 1e280) return std::log(sum);
        const auto log_term = [&](std::size_t i) {
            return std::log(weight_[i]) + std::log(inverse_scale_[i]) +
                   shape_[i]->shape.log_density(standardised(i, y));
        };
        double largest = -std::numeric_limits<double>::infinity();
        for (std::size_t i = 0; i < n_; ++i) largest = std::max(largest, log_term(i));
        if (!std::isfinite(largest)) return largest;
        sum = 0.0;
        for (std::size_t i = 0; i < n_; ++i) sum += std::exp(log_term(i) - largest);
        return largest + std::log(sum);
    }

    // E|Y - y|; all components have more than one degree of freedom.
    double mean_distance(double y) const {
        double sum = 0.0;
        for (std::size_t i = 0; i < n_; ++i) {
            const double z = standardised(i, y), below = quick_tails(i, z).below;
            const double within = std::fabs(z) * std::fabs(2.0 * below - 1.0);
            sum += weight_[i] / inverse_scale_[i] * (within + shape_[i]->shape.overlap(z));
        }
        return sum;
    }

    // E|exp(Y) - exp(y)| in units of exp(start); all components are normal, and y may be minus infinity.
    //
    // Of one component it is e^y (2 F(y) - 1) - m (2 F(y - s^2) - 1), where s is its scale and m the mean of exp(Y).
    // Both terms are taken less their share of exp(start), of which the difference of two probabilities is left.
    double mean_distance_of_exp(double y) const {
        double sum = 0.0;
        const double excess = std::expm1(y - start_);
        for (std::size_t i = 0; i < n_; ++i) {
            const double scale = 1.0 / inverse_scale_[i], z = standardised(i, y), shifted = z - scale;
            const double mean_excess = std::expm1(location_[i] + 0.5 * scale * scale - start_);
            const double below = quick_tails(i, z).below, below_shifted = quick_tails(i, shifted).below;
            sum += weight_[i] * (excess * (2.0 * below - 1.0) - mean_excess * (2.0 * below_shifted - 1.0) +
                                 2.0 * probability_between(shifted, z, scale, below - below_shifted));
        }
        return sum;
    }
    // The largest y at which a component adds to the integral of the upper tail of exp(Y).
    double reach_of_exp() const {
        double reach = start_;
        for (std::size_t i = 0; i < n_; ++i) {
            const double scale = 1.0 / inverse_scale_[i];
            reach = std::max(reach, location_[i] + scale * (scale + 8.0));
        }
        return reach;
    }

    // The y with P(Y <= y) = p: by tables to 1e-10 of the smaller tail if that is not small, or continued to the last
    // digit.
    double quantile(double p, bool to_last_digit) const {
        double y = 0.0;
        const bool is_near = find_quickly(p, guess(p), y);
        if (is_near && !to_last_digit) return y;
        if (!is_near) return solve(p, lowest(), highest(), widest_, 0.5 * (lowest() + highest()));
        const double step = 1e-9 * widest_;
        return solve(p, y - step, y + step, step, y);
    }

  private:
    // The probability of a normal distribution from `low` to `low + width`, given the difference of its two tails,
    // which has too few digits if the width is small: then by the series of the density about the middle.
    static double probability_between(double low, double high, double width, double difference) {
        if (!(width < 0.02)) return difference;
        const double middle = 0.5 * (low + high), square = middle * middle;
        if (!(square < 1e4)) return 0.0;
        const double second = square - 1.0, fourth = square * (square - 6.0) + 3.0, half = 0.25 * width * width;
        return width * 0.39894228040143268 * std::exp(-0.5 * square) *
               (1.0 + half * (second / 6.0 + half * fourth / 120.0));
    }

    // Components with tables are evaluated two at a time: they come before the others.
    void put_tables_first() {
        n_tabulated_ = 0;
        for (std::size_t i = 0; i < n_; ++i) {
            const StudentTable* table = shape_[i]->table();
            if (table == nullptr) continue;
            if (i > n_tabulated_) swap(i, n_tabulated_);
            cells_[n_tabulated_] = table->cells();
            ++n_tabulated_;
        }
    }
    void swap(std::size_t i, std::size_t j) {
        for (std::vector<double>* each : {&weight_, &location_, &inverse_scale_}) std::swap((*each)[i], (*each)[j]);
        std::swap(shape_[i], shape_[j]);
    }
    void make_room() {
        const std::size_t n = std::max<std::size_t>(64, 2 * n_);
        for (std::vector<double>* each : {&weight_, &location_, &inverse_scale_}) each->resize(n);
        cells_.resize(n);
        shape_.resize(n);
    }
    double standardised(std::size_t i, double y) const { return (y - location_[i]) * inverse_scale_[i]; }

    // Sums over all components, two at a time; without derivatives it takes half as long.
    template <bool with_derivatives>
    Curve quickly(double y) const {
        Curve sum{0.5, 0.0, 0.0};  // tails are added as their distance from one half
        numerics::Lanes below = numerics::both(0.0), density = numerics::both(0.0), slope = numerics::both(0.0);
        std::size_t i = 0;
        for (; i + 2 <= n_tabulated_; i += 2) {
            const numerics::Lanes sharp = numerics::load_lanes(&inverse_scale_[i]),
                                  weight = numerics::load_lanes(&weight_[i]);
            const numerics::Lanes z = (numerics::both(y) - numerics::load_lanes(&location_[i])) * sharp;
            const numerics::BitLanes sign = numerics::bits_of(z) & numerics::both_bits(std::uint64_t{1} << 63);
            const numerics::Lanes u = numerics::doubles_of(numerics::bits_of(z) ^ sign) + numerics::both(1.0);
            const std::uint64_t k = StudentTable::cell_of(u[0]), next_k = StudentTable::cell_of(u[1]);
            if ((k | next_k) >= StudentTable::n_cells) {
                add_one<with_derivatives>(i, y, sum);
                add_one<with_derivatives>(i + 1, y, sum);
                continue;
            }
            const numerics::Lanes middle =
                numerics::doubles_of((numerics::bits_of(u) & numerics::both_bits(StudentTable::cell_bits)) |
                                     numerics::both_bits(StudentTable::half_cell_bit));
            const auto tail =
                StudentTable::both_tails<with_derivatives>(cells_[i][k], cells_[i + 1][next_k], u - middle);
            below += weight * numerics::doubles_of(numerics::bits_of(numerics::both(0.5) - tail.value) ^ sign);
            if constexpr (with_derivatives) {
                density -= weight * sharp * tail.slope;
                slope -= weight * sharp * sharp * numerics::doubles_of(numerics::bits_of(tail.half_curvature) ^ sign);
            }
        }
        for (; i < n_; ++i) add_one<with_derivatives>(i, y, sum);
        return {sum.below + numerics::sum_of(below), sum.density + numerics::sum_of(density),
                sum.slope + 2.0 * numerics::sum_of(slope)};
    }

    // One component, by its table or, where that ends, exactly.
    template <bool with_derivatives>
    void add_one(std::size_t i, double y, Curve& sum) const {
        const double z = standardised(i, y), sharp = inverse_scale_[i];
        const Tails tails = quick_tails(i, z);
        sum.below += weight_[i] * (tails.below - 0.5);
        if constexpr (with_derivatives) {
            const double a = shape_[i]->shape.inverse_freedom(), density = weight_[i] * sharp * tails.density;
            sum.density += density;
            if (density > 0.0) sum.slope -= density * sharp * (1.0 + a) * z / (1.0 + a * z * z);
        }
    }
    Tails quick_tails(std::size_t i, double z) const {
        const double size = std::fabs(z);
        if (i >= n_tabulated_ || !(size < StudentTable::reach)) return shape_[i]->shape.at(z);
        const StudentTable& table = *shape_[i]->table();
        const double tail = table.tail(size), density = table.density(size);
        return z > 0.0 ? Tails{1.0 - tail, tail, density} : Tails{tail, 1.0 - tail, density};
    }

    // The quantile of a normal distribution, corrected for skewness by the first term of Cornish and Fisher.
    double guess(double p) const {
        const double z = normal_quantile(p);
        return start_ + spread_ * (z + skewness_ * (z * z - 1.0) / 6.0);
    }
    // Hastings' rational approximation of the quantile of the normal distribution, to 5e-4: only a start.
    static double normal_quantile(double p) {
        const double t = std::sqrt(-2.0 * std::log(std::min(p, 1.0 - p)));
        const double size =
            t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
        return p < 0.5 ? -size : size;
    }

    // The solution by tables, from a start; false for small tails, and if it is not found soon.
    //
    // Each step solves the quadratic that has the value, slope and bend of the distribution function at y. At the
    // solution of the quadratic the function differs from p by at most max |F'''| |step|^3 / 6: a step for which that
    // is small enough beside the smaller tail is the last, without another look.
    bool find_quickly(double p, double start, double& y) const {
        const double target = std::min(p, 1.0 - p), infinity = std::numeric_limits<double>::infinity();
        if (target < least_tail) return false;
        double low = -infinity, high = infinity, farthest = spread_;
        y = start;
        for (int i = 0; i < 40; ++i) {
            const Curve curve = quickly_at(y);
            const double excess = curve.below - p;
            (excess > 0.0 ? high : low) = y;
            const double step = quick_step(curve, excess, p);
            if (jerk_ * std::fabs(step * step * step) <= 6.0 * exact_enough * target) {
                y += step;
                return true;
            }
            double next = y + std::clamp(step, -farthest, farthest);
            if (!(next > low && next < high)) {
                if (!std::isfinite(low) || !std::isfinite(high)) return false;
                next = 0.5 * (low + high);
            }
            if (next == y) return true;
            if (std::fabs(step) > farthest) farthest *= 2.0;
            y = next;
        }
        return false;
    }
    // The step to the solution: far from it, Newton's on the log of the smaller tail, which is straighter there.
    static double quick_step(const Curve& curve, double excess, double p) {
        const double tail = p > 0.5 ? 1.0 - curve.below : curve.below, target = std::min(p, 1.0 - p);
        if (!(curve.density > 0.0)) return std::copysign(std::numeric_limits<double>::infinity(), -excess);
        if (std::fabs(excess) > 0.5 * target && tail > 0.0)
            return (p > 0.5 ? 1.0 : -1.0) * std::log(tail / target) * tail / curve.density;
        const double square = curve.density * curve.density - 2.0 * curve.slope * excess;
        if (!(square > 0.0)) return -excess / curve.density;
        return -2.0 * excess / (curve.density + std::sqrt(square));
    }

    // Newton's method on the log of the smaller tail, kept inside a bracket, to the last digit.
    double solve(double p, double low, double high, double first_step, double y) const {
        const bool upper = p > 0.5;
        const double log_target = std::log(upper ? 1.0 - p : p);
        const auto excess = [&](double y, double& slope) {
            const Tails tails = at(y);
            const double tail = upper ? tails.above : tails.below;
            slope = tail > 0.0 ? tails.density / tail : 0.0;
            const double difference = tail > 0.0 ? std::log(tail) - log_target : -1e3;
            return upper ? -difference : difference;
        };
        // The bracket may not hold the solution yet: until both sides are known, Newton's steps may leave it, each time
        // farther.
        double slope = 0.0, farthest = std::max(high - low, first_step);
        bool has_low = false, has_high = false;
        for (int i = 0; i < 400; ++i) {
            const double value = excess(y, slope);
            if (std::fabs(value) < 1e-13) return y;
            (value > 0.0 ? high : low) = y;
            (value > 0.0 ? has_high : has_low) = true;
            if (!has_low || !has_high) {
                const double newton = slope > 0.0 ? value / slope : std::copysign(farthest, value);
                const double next = y - std::clamp(newton, -farthest, farthest);
                if (next == y) return y;
                y = next;
                farthest *= 2.0;
                continue;
            }
            const double newton = slope > 0.0 ? y - value / slope : low;
            const double next = newton > low && newton < high ? newton : 0.5 * (low + high);
            if (next == y || high - low <= 2.0 * std::numeric_limits<double>::epsilon() * std::fabs(high)) return next;
            y = next;
        }
        return y;
    }
    double lowest() const { return *std::min_element(location_.begin(), location_.begin() + n_locations()); }
    double highest() const { return *std::max_element(location_.begin(), location_.begin() + n_locations()); }
    std::ptrdiff_t n_locations() const { return static_cast<std::ptrdiff_t>(n_); }

    std::size_t n_ = 0, n_tabulated_ = 0;  // the vectors have room for more
    std::vector<double> weight_, location_, inverse_scale_;
    std::vector<const StudentTable::Cell*> cells_;
    std::vector<const TabulatedShape*> shape_;
    double widest_ = 0.0, start_ = 0.0, spread_ = 0.0, skewness_ = 0.0, jerk_ = 0.0;
};

}  // namespace everytree::distributions
