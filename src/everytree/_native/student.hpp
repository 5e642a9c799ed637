// Mixtures of Student's t: tails, quantiles and spread of many of them, as a forest's predictions need them.
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

// The upper tail of one t distribution as a function of v = |z| / (1 + |z|), interpolated by cubics that have the
// right value and slope at 513 knots: absolute error below 1e-9, at a twentieth of the cost. For two degrees of freedom
// and more; below, the slope has no limit at v = 1.
class StudentTable {
  public:
    static constexpr int n_cells = 512;
    static constexpr double least_freedom = 2.0;

    explicit StudentTable(double freedom) : knots_(n_cells + 1) {
        const Student standard(freedom, 0.0, 1.0);
        for (int k = 0; k < n_cells; ++k) {
            const double v = static_cast<double>(k) / n_cells, z = v / (1.0 - v);
            const Tails tails = standard.at(z);
            knots_[k] = {k == 0 ? 0.5 : tails.above, -tails.density / ((1.0 - v) * (1.0 - v)) / n_cells};
        }
    }
    // P(T > |z|), and the density of T there.
    void tail(double size, double& above, double& density) const {
        const double share = 1.0 / (1.0 + size), at = size * share * n_cells;
        const int k = std::min(static_cast<int>(at), n_cells - 1);
        const double t = at - k;
        const Knot left = knots_[k], right = knots_[k + 1];
        const double rise = right.value - left.value;
        const double square = 3.0 * rise - 2.0 * left.slope - right.slope, cube = left.slope + right.slope - 2.0 * rise;
        above = std::fmax(left.value + t * (left.slope + t * (square + t * cube)), 0.0);
        density = std::fmax(-(left.slope + t * (2.0 * square + 3.0 * t * cube)) * n_cells * share * share, 0.0);
    }

  private:
    struct Knot {
        double value = 0.0, slope = 0.0;
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
        typical_ = parts_.size() == 1 ? weight * scale : typical_ + weight * scale;
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

    // The same by tables, to 1e-9, where every part has one.
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

    // E|Y - Y'| / 2, the integral of F (1 - F): the trapezoidal rule after y = centre + s sinh(t), which turns the
    // tails into double exponentials; halved until it settles.
    double half_spread() const {
        const double low = lowest(), high = highest();
        const double centre = solve(0.5, low, high, widest_, 0.5 * (low + high), true), s = std::max(typical_, 1e-300);
        const auto term = [&](double t) {
            const Tails tails = roughly_at(centre + s * std::sinh(t));
            return tails.below * tails.above * std::cosh(t);
        };
        double reach = 1.0;
        while (reach < 600.0 && term(reach) + term(-reach) > 1e-9) reach += reach < 20.0 ? 0.5 : 0.1 * reach;
        int n = 24;
        double h = reach / n, sum = term(0.0);
        for (int i = 1; i <= n; ++i) sum += term(i * h) + term(-i * h);
        for (double before = sum * h; n < 4096; before = sum * h) {
            for (int i = 1; i <= 2 * n; i += 2) sum += term(0.5 * i * h) + term(-0.5 * i * h);
            n *= 2;
            h *= 0.5;
            if (std::fabs(sum * h - before) <= 1e-6 * std::fabs(before)) break;
        }
        return s * h * sum;
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
    double widest_ = 0.0, typical_ = 0.0;
};

}  // namespace everytree
