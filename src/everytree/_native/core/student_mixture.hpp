// One mixture of Student's t: tails, densities, quantiles, the shortest interval, and its score.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <vector>

#include "core/noinline.hpp"
#include "core/student_table.hpp"

namespace everytree {

// A shape with its table, if it has one.
struct TabulatedShape {
    explicit TabulatedShape(double freedom) : shape(freedom), bend(shape.bend()) {}
    void tabulate() {
        if (shape.freedom() >= StudentTable::least_freedom) table = std::make_unique<StudentTable>(shape);
    }
    StudentShape shape;
    double bend;
    std::unique_ptr<StudentTable> table;
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
    static constexpr double least_tail = 1e-3;

    void clear() { parts_.clear(); }
    void add(double weight, const TabulatedShape& shape, double location, double scale) {
        if (weight > 0.0)
            parts_.push_back({weight, location, 1.0 / scale, shape.table ? shape.table->cells() : nullptr, &shape});
    }
    std::size_t size() const { return parts_.size(); }

    void close() {
        double total = 0.0, mean = 0.0, square = 0.0;
        for (const Part& part : parts_) {
            total += part.weight;
            mean += part.weight * part.location;
        }
        mean /= total;
        jerk_ = widest_ = 0.0;
        for (Part& part : parts_) {
            part.weight /= total;
            const double scale = 1.0 / part.inverse_scale, away = part.location - mean;
            square += part.weight * (away * away + scale * scale);
            widest_ = std::max(widest_, scale);
            jerk_ += part.weight * part.of->bend * part.inverse_scale * part.inverse_scale * part.inverse_scale;
        }
        start_ = std::isfinite(mean) ? mean : parts_[0].location;
        spread_ = std::isfinite(square) && square > 0.0 ? std::sqrt(square) : widest_;
    }

    Tails at(double y) const {
        Tails sum{0.0, 0.0, 0.0};
        for (const Part& part : parts_) {
            const Tails tails = part.at(y);
            sum.below += part.weight * tails.below;
            sum.above += part.weight * tails.above;
            sum.density += part.weight * tails.density;
        }
        return sum;
    }

    Curve quickly_at(double y) const {
        Curve sum{0.0, 0.0, 0.0};
        for (const Part& part : parts_) {
            const double z = (y - part.location) * part.inverse_scale, u = 1.0 + std::fabs(z);
            const std::uint64_t k = StudentTable::cell_of(u);
            if (part.cells == nullptr || k >= StudentTable::n_cells) {
                part.add_exactly(z, sum);
                continue;
            }
            const StudentTable::Cell& cell = part.cells[k];
            const double d = u - StudentTable::middle(u), tail = cell.tail(d), sharp = part.weight * part.inverse_scale;
            sum.below += part.weight * (z > 0.0 ? 1.0 - tail : tail);
            sum.density -= sharp * cell.slope(d);
            sum.slope += std::copysign(sharp * part.inverse_scale, -z) * cell.curvature(d);
        }
        return sum;
    }

    double quickly_below(double y) const {
        double sum = 0.0;
        for (const Part& part : parts_) sum += part.weight * part.quickly_below(y);
        return sum;
    }

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
        for (const Part& part : parts_)
            sum += part.weight * part.inverse_scale * std::exp(part.of->shape.log_density(part.standardised(y)));
        if (sum > 1e-280 && sum < 1e280) return std::log(sum);
        double largest = -std::numeric_limits<double>::infinity();
        for (const Part& part : parts_) largest = std::max(largest, part.log_density(y));
        if (!std::isfinite(largest)) return largest;
        sum = 0.0;
        for (const Part& part : parts_) sum += std::exp(part.log_density(y) - largest);
        return largest + std::log(sum);
    }

    // The y with P(Y <= y) = p. By tables alone, or continued to the last digit.
    double quantile(double p, bool to_last_digit) const {
        const bool is_small = std::min(p, 1.0 - p) < least_tail;
        double y = 0.0;
        const bool is_near = !is_small && quick_quantile(p, start_ + spread_ * normal_quantile(p), y);
        if (is_near && !to_last_digit) return y;
        if (!is_near) return solve(p, lowest(), highest(), widest_, 0.5 * (lowest() + highest()));
        const double step = 1e-9 * widest_;
        return solve(p, y - step, y + step, step, y);
    }
    // The same from a point that is near it.
    double quantile_near(double p, double start) const {
        double y = 0.0;
        if (std::min(p, 1.0 - p) >= least_tail && quick_quantile(p, start, y)) return y;
        return quantile(p, false);
    }

    double start() const { return start_; }
    double spread() const { return spread_; }

    // E|Y - y|; all components have more than one degree of freedom.
    double mean_distance(double y) const {
        double sum = 0.0;
        for (const Part& part : parts_) {
            const double z = part.standardised(y), size = std::fabs(z), below = part.quickly_below(y);
            const double tail = z > 0.0 ? 1.0 - below : below;
            sum += part.weight / part.inverse_scale * (size * (1.0 - 2.0 * tail) + part.of->shape.overlap(z));
        }
        return sum;
    }
    double least_freedom() const {
        double least = std::numeric_limits<double>::infinity();
        for (const Part& part : parts_) least = std::min(least, part.of->shape.freedom());
        return least;
    }

  private:
    struct Part {
        double weight, location, inverse_scale;
        const StudentTable::Cell* cells;
        const TabulatedShape* of;

        double standardised(double y) const { return (y - location) * inverse_scale; }
        Tails at(double y) const {
            Tails tails = of->shape.at(standardised(y));
            tails.density *= inverse_scale;
            return tails;
        }
        double log_density(double y) const {
            return std::log(weight) + std::log(inverse_scale) + of->shape.log_density(standardised(y));
        }
        double quickly_below(double y) const {
            const double z = standardised(y), u = 1.0 + std::fabs(z);
            const std::uint64_t k = StudentTable::cell_of(u);
            if (cells == nullptr || k >= StudentTable::n_cells) return of->shape.at(z).below;
            const double tail = cells[k].tail(u - StudentTable::middle(u));
            return z > 0.0 ? 1.0 - tail : tail;
        }
        EVERYTREE_NOINLINE void add_exactly(double z, Curve& sum) const {
            const Tails tails = of->shape.at(z);
            const double a = of->shape.inverse_freedom(), density = weight * inverse_scale * tails.density;
            sum.below += weight * tails.below;
            sum.density += density;
            if (density > 0.0) sum.slope -= density * inverse_scale * (1.0 + a) * z / (1.0 + a * z * z);
        }
    };

    // Hastings' rational approximation of the quantile of the normal distribution, to 5e-4: only a start.
    static double normal_quantile(double p) {
        const double t = std::sqrt(-2.0 * std::log(std::min(p, 1.0 - p)));
        const double size = t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                                    (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
        return p < 0.5 ? -size : size;
    }

    // The solution by tables, from a start; false if it is not found soon.
    //
    // Each step solves the quadratic that has the value, slope and bend of the distribution function at y. At the
    // solution of the quadratic the function differs from p by at most max |F'''| |step|^3 / 6: a step for which that
    // is below 1e-11 of the smaller tail is the last, without another look.
    bool quick_quantile(double p, double start, double& y) const {
        const double target = std::min(p, 1.0 - p), infinity = std::numeric_limits<double>::infinity();
        double low = -infinity, high = infinity, farthest = spread_;
        y = start;
        for (int i = 0; i < 40; ++i) {
            const Curve curve = quickly_at(y);
            const double excess = curve.below - p;
            (excess > 0.0 ? high : low) = y;
            const double step = quick_step(curve, excess, p);
            if (jerk_ * std::fabs(step * step * step) <= 6e-11 * target) {
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
    double lowest() const {
        double value = parts_[0].location;
        for (const Part& part : parts_) value = std::min(value, part.location);
        return value;
    }
    double highest() const {
        double value = parts_[0].location;
        for (const Part& part : parts_) value = std::max(value, part.location);
        return value;
    }

    std::vector<Part> parts_;
    double widest_ = 0.0, start_ = 0.0, spread_ = 0.0, jerk_ = 0.0;
};

}  // namespace everytree
