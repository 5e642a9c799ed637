// Mixtures of Student's t: tails, quantiles and distances of many of them, as a forest's predictions need them.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/special.hpp"

namespace everytree {

struct Tails {
    double below, above, density;
};

// One t distribution; everything that does not depend on y is computed once.
class Student {
  public:
    Student(double freedom, double location, double scale)
        : freedom_(freedom),
          location_(location),
          inverse_scale_(1.0 / scale),
          log_beta_constant_(log_rising(0.5 * freedom, 0.5) - 0.5 * std::log(3.141592653589793)) {}

    // The same degrees of freedom at another location, without computing the constant again.
    Student(const Student& other, double location, double scale)
        : freedom_(other.freedom_),
          location_(location),
          inverse_scale_(1.0 / scale),
          log_beta_constant_(other.log_beta_constant_) {}

    double freedom() const { return freedom_; }
    double location() const { return location_; }
    double standardised(double y) const { return (y - location_) * inverse_scale_; }

    // E|Y - y| - E|Y - origin|, given P(T > |z|) of both standardised; for degrees of freedom other than 1.
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
// right value, slope and curvature at 257 knots: absolute error below 1e-10, at a twentieth of the cost. For two
// degrees of freedom and more; below, the slope has no limit at v = 1.
class StudentTable {
  public:
    static constexpr int n_cells = 256;
    static constexpr double least_freedom = 2.0;

    explicit StudentTable(double freedom)
        : cells_(n_cells), reach_(freedom < 6.0 ? 31.0 : std::numeric_limits<double>::infinity()) {
        const Student standard(freedom, 0.0, 1.0);
        Knot left = knot(standard, 0);
        for (int k = 0; k < n_cells; ++k) {
            // At v = 1 the curvature has no limit below three degrees of freedom: that of the cubic is used.
            const Knot right =
                k + 1 < n_cells ? knot(standard, k + 1) : Knot{0.0, 0.0, 6.0 * left.value + 2.0 * left.slope};
            cells_[k] = between(left, right);
            left = right;
        }
    }
    // Up to here small tails have that relative accuracy too; heavy tails are not polynomials of v at v = 1.
    double reach() const { return reach_; }

    // P(T > |z|).
    double tail(double size) const {
        double t;
        const Cell& c = cell(size, t);
        return c[0] + t * (c[1] + t * (c[2] + t * (c[3] + t * (c[4] + t * c[5]))));
    }
    // The density of T at |z|.
    double density(double size) const {
        double t;
        const Cell& c = cell(size, t);
        const double slope = c[1] + t * (2.0 * c[2] + t * (3.0 * c[3] + t * (4.0 * c[4] + t * 5.0 * c[5])));
        return std::fmax(-slope * n_cells / ((1.0 + size) * (1.0 + size)), 0.0);
    }

  private:
    using Cell = std::array<double, 6>;  // a polynomial in the fraction of the cell before v
    struct Knot {
        double value, slope, curvature;
    };

    static Knot knot(const Student& standard, int k) {
        const double v = static_cast<double>(k) / n_cells, rest = 1.0 - v, z = v / rest, nu = standard.freedom();
        const Tails tails = standard.at(z);
        const double slope = -tails.density / (rest * rest);
        const double curvature = slope * (2.0 / rest - (nu + 1.0) * z / (nu + z * z) / (rest * rest));
        return {k == 0 ? 0.5 : tails.above, slope / n_cells, curvature / n_cells / n_cells};
    }
    static Cell between(const Knot& left, const Knot& right) {
        const double square = 0.5 * left.curvature, rise = right.value - left.value - left.slope - square;
        const double steepening = right.slope - left.slope - left.curvature;
        const double bending = right.curvature - left.curvature;
        return {left.value,
                left.slope,
                square,
                10.0 * rise - 4.0 * steepening + 0.5 * bending,
                -15.0 * rise + 7.0 * steepening - bending,
                6.0 * rise - 3.0 * steepening + 0.5 * bending};
    }
    const Cell& cell(double size, double& t) const {
        const double at = n_cells - n_cells / (1.0 + size);
        const int k = std::min(static_cast<int>(at), n_cells - 1);
        t = at - k;
        return cells_[k];
    }
    std::vector<Cell> cells_;
    double reach_;
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

    // The same by tables, to 1e-10, if every part has one.
    Tails roughly_at(double y) const {
        if (rough_.size() < parts_.size()) return at(y);
        Tails sum{0.0, 0.0, 0.0};
        for (const Rough& part : rough_) {
            const double z = (y - part.location) * part.inverse_scale;
            const double above = std::fmax(part.table->tail(std::fabs(z)), 0.0);
            sum.below += part.weight * (z > 0.0 ? 1.0 - above : above);
            sum.above += part.weight * (z > 0.0 ? above : 1.0 - above);
            sum.density += part.weight * part.table->density(std::fabs(z)) * part.inverse_scale;
        }
        return sum;
    }

    // The y with P(Y <= y) = p: Newton's method on the log of the smaller tail, kept inside a bracket; first roughly,
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
        // The bracket may not hold the solution yet: until both sides are known, Newton's steps may leave it, each time
        // farther.
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
