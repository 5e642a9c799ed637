// Mixtures of Student's t: tails, quantiles and distances of many of them, as a forest's predictions need them.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "special.hpp"

namespace everytree {

struct Tails {
    double below, above, density;
};

// One t distribution with everything that does not depend on y computed once.
class Student {
  public:
    Student(double freedom, double location, double scale)
        : freedom_(freedom),
          location_(location),
          inverse_scale_(1.0 / scale),
          log_beta_constant_(log_rising(0.5 * freedom, 0.5) - 0.5 * std::log(3.141592653589793)) {}

    double location() const { return location_; }
    double standardised(double y) const { return (y - location_) * inverse_scale_; }

    // E|Y - y| - E|Y - origin|, given P(T > |z|) of both standardised; for more than one degree of freedom.
    //
    // E|T - z| = |z| + 2 (H(z) - |z| P(T > |z|)) with H(z) = density(0) nu / (nu - 1) (1 + z^2 / nu)^(-(nu - 1) / 2). H
    // is large where nu is near 1: its difference is taken by expm1, and that of |z| from y - origin where the signs
    // agree.
    double extra_distance(double y, double tail, double origin, double origin_tail) const {
        const double z = standardised(y), from = standardised(origin);
        const double log_y = std::log1p(z * z / freedom_), log_origin = std::log1p(from * from / freedom_);
        const double power = 0.5 * (freedom_ - 1.0);
        const double peak = std::exp(log_beta_constant_) * std::sqrt(freedom_) / (freedom_ - 1.0);
        const double near = std::min(log_y, log_origin), far = std::max(log_y, log_origin);
        const double fall = far > near ? peak * std::exp(-power * near) * std::expm1(-power * (far - near)) : 0.0;
        const auto product = [](double size, double tail) { return tail > 0.0 ? size * tail : 0.0; };
        const double tails = product(std::fabs(z), tail) - product(std::fabs(from), origin_tail);
        const bool same_side = (z > 0.0) == (from > 0.0);
        const double size = same_side ? std::copysign(1.0, z + from) * (y - origin)
                                      : std::fabs(y - location_) - std::fabs(origin - location_);
        return size + 2.0 * ((log_y >= log_origin ? fall : -fall) - tails) / inverse_scale_;
    }

    // P(Y <= y), P(Y > y) and the density at y; the smaller tail has all its digits.
    Tails at(double y) const {
        const double z = (y - location_) * inverse_scale_, squared = z * z / freedom_;
        if (!(squared < std::numeric_limits<double>::infinity()))
            return y > location_ ? Tails{1.0, 0.0, 0.0} : Tails{0.0, 1.0, 0.0};
        const double log_share = -std::log1p(squared);  // of nu / (nu + z^2)
        const double kernel = std::exp(log_beta_constant_ + 0.5 * freedom_ * log_share);
        const double density = kernel * std::exp(0.5 * log_share) * inverse_scale_ / std::sqrt(freedom_);
        const double tail = upper_tail(squared, kernel);
        return z > 0.0 ? Tails{1.0 - tail, tail, density} : Tails{tail, 1.0 - tail, density};
    }

  private:
    // P(T > |z|) = I_x(nu / 2, 1 / 2) / 2 with x = nu / (nu + z^2), by the continued fraction that converges there.
    double upper_tail(double squared, double kernel) const {
        if (squared == 0.0) return 0.5;
        const double a = 0.5 * freedom_, x = 1.0 / (1.0 + squared), rest = squared * x;
        const double front = kernel * std::sqrt(rest);
        if (x < (a + 1.0) / (a + 2.5)) return 0.5 * front * continued_fraction(a, 0.5, x) / a;
        return 0.5 - 0.5 * front * continued_fraction(0.5, a, rest) / 0.5;
    }

    // The regularised incomplete beta function without its factor x^a (1 - x)^b / (a B(a, b)), by Lentz's method.
    static double continued_fraction(double a, double b, double x) {
        constexpr double tiny = 1e-300;
        const auto away_from_zero = [](double v) { return std::fabs(v) < tiny ? tiny : v; };
        double c = 1.0, d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0)), value = d;
        for (int m = 1; m < 10000; ++m) {
            const double even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m));
            d = 1.0 / away_from_zero(1.0 + even * d);
            c = away_from_zero(1.0 + even / c);
            value *= d * c;
            const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0));
            d = 1.0 / away_from_zero(1.0 + odd * d);
            c = away_from_zero(1.0 + odd / c);
            value *= d * c;
            if (std::fabs(d * c - 1.0) < 1e-15) break;
        }
        return value;
    }

    double freedom_, location_, inverse_scale_, log_beta_constant_;
};

// The upper tail of one t distribution as a function of v = |z| / (1 + |z|), interpolated by quintics that have the
// right value, slope and curvature at 513 knots: absolute error below 1e-12, at a twentieth of the cost. For two
// degrees of freedom and more; below, the slope has no limit at v = 1.
class StudentTable {
  public:
    static constexpr int n_cells = 512;
    static constexpr double least_freedom = 2.0;

    explicit StudentTable(double freedom) : knots_(n_cells + 1) {
        const Student standard(freedom, 0.0, 1.0);
        for (int k = 0; k < n_cells; ++k) {
            const double v = static_cast<double>(k) / n_cells, z = v / (1.0 - v);
            const Tails tails = standard.at(z);
            const double slope = -tails.density / ((1.0 - v) * (1.0 - v));
            const double curvature =
                slope * (2.0 / (1.0 - v) - (freedom + 1.0) * z / (freedom + z * z) / ((1.0 - v) * (1.0 - v)));
            knots_[k] = {k == 0 ? 0.5 : tails.above, slope / n_cells, curvature / n_cells / n_cells};
        }
        // At v = 1 the curvature has no limit below three degrees of freedom: that of the cubic.
        const Knot& last = knots_[n_cells - 1];
        knots_[n_cells] = {0.0, 0.0, 6.0 * last.value + 2.0 * last.slope};
    }
    // P(T > |z|), and the density of T there.
    void tail(double size, double& above, double& density) const {
        const double share = 1.0 / (1.0 + size), at = std::isfinite(size) ? size * share * n_cells : n_cells;
        const int k = std::min(static_cast<int>(at), n_cells - 1);
        const double t = at - k;
        const Knot &left = knots_[k], &right = knots_[k + 1];
        const double square = 0.5 * left.curvature;
        const double rise = right.value - left.value - left.slope - square;
        const double steepening = right.slope - left.slope - left.curvature;
        const double bending = right.curvature - left.curvature;
        const double third = 10.0 * rise - 4.0 * steepening + 0.5 * bending;
        const double fourth = -15.0 * rise + 7.0 * steepening - bending;
        const double fifth = 6.0 * rise - 3.0 * steepening + 0.5 * bending;
        above = left.value + t * (left.slope + t * (square + t * (third + t * (fourth + t * fifth))));
        const double slope =
            left.slope + t * (left.curvature + t * (3.0 * third + t * (4.0 * fourth + t * 5.0 * fifth)));
        above = std::fmax(above, 0.0);
        density = std::fmax(-slope * n_cells * share * share, 0.0);
    }

  private:
    struct Knot {
        double value = 0.0, slope = 0.0, curvature = 0.0;
    };
    std::vector<Knot> knots_;
};

class StudentMixture {
  public:
    void clear() {
        parts_.clear();
        weights_.clear();
        rough_.clear();
    }
    void add(double weight, double freedom, double location, double scale, const StudentTable* table = nullptr) {
        if (!(weight > 0.0)) return;
        weights_.push_back(weight);
        parts_.emplace_back(freedom, location, scale);
        if (table != nullptr) rough_.push_back({weight, location, 1.0 / scale, table});
        widest_ = parts_.size() == 1 ? scale : std::max(widest_, scale);
    }

    Tails at(double y) const {
        Tails sum{0.0, 0.0, 0.0};
        for (std::size_t i = 0; i < parts_.size(); ++i) {
            const Tails tails = parts_[i].at(y);
            sum.below += weights_[i] * tails.below;
            sum.above += weights_[i] * tails.above;
            sum.density += weights_[i] * tails.density;
        }
        return sum;
    }

    // The same by tables, to 1e-12, where every part has one.
    Tails roughly_at(double y) const {
        if (rough_.size() < parts_.size()) return at(y);
        Tails sum{0.0, 0.0, 0.0};
        for (const Rough& part : rough_) {
            const double z = (y - part.location) * part.inverse_scale;
            double above, density;
            part.table->tail(std::fabs(z), above, density);
            sum.below += part.weight * (z > 0.0 ? 1.0 - above : above);
            sum.above += part.weight * (z > 0.0 ? above : 1.0 - above);
            sum.density += part.weight * density * part.inverse_scale;
        }
        return sum;
    }

    // The y with P(Y <= y) = p: Newton's method on the log of the smaller tail, kept inside a bracket; roughly first,
    // then to the last digit.
    double quantile(double p) const {
        const bool has_tables = rough_.size() == parts_.size() && p > 1e-6 && p < 1.0 - 1e-6;
        double low = lowest(), high = highest(), y = 0.5 * (low + high), step = widest_;
        if (has_tables) {
            y = solve(p, low, high, widest_, y, true);
            step = 1e-6 * widest_;
            low = y - step;
            high = y + step;
        }
        return solve(p, low, high, step, y, false);
    }

    double solve(double p, double low, double high, double first_step, double y, bool roughly) const {
        const bool upper = p > 0.5;
        const double log_target = std::log(upper ? 1.0 - p : p), enough = roughly ? 1e-7 : 1e-13;
        const auto excess = [&](double y, double& slope) {
            const Tails tails = roughly ? roughly_at(y) : at(y);
            const double tail = upper ? tails.above : tails.below;
            slope = tail > 0.0 ? tails.density / tail : 0.0;
            const double difference = tail > 0.0 ? std::log(tail) - log_target : -1e3;
            return upper ? -difference : difference;
        };
        // The bracket may not hold the answer yet: until both sides are known, Newton's steps may go beyond it, each
        // time farther.
        double slope = 0.0, farthest = std::max(high - low, first_step);
        bool has_low = false, has_high = false;
        for (int i = 0; i < 400; ++i) {
            const double value = excess(y, slope);
            if (std::fabs(value) < enough) return y;
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

  private:
    double lowest() const {
        double value = parts_[0].location();
        for (const Student& part : parts_) value = std::min(value, part.location());
        return value;
    }
    double highest() const {
        double value = parts_[0].location();
        for (const Student& part : parts_) value = std::max(value, part.location());
        return value;
    }
    struct Rough {
        double weight, location, inverse_scale;
        const StudentTable* table;
    };
    std::vector<Student> parts_;
    std::vector<double> weights_;
    std::vector<Rough> rough_;
    double widest_ = 0.0;
};

}  // namespace everytree
