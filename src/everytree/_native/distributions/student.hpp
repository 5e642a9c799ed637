// Student's t: tails, density and distances of one distribution.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>

#include "numerics/special.hpp"

namespace everytree::distributions {

struct Tails {
    double below, above, density;
};

// The standard t distribution of some degrees of freedom; infinitely many make the normal distribution. What does not
// depend on z is computed once.
class StudentShape {
  public:
    explicit StudentShape(double freedom)
        : freedom_(freedom),
          log_beta_constant_(
              is_normal() ? 0.0 : numerics::log_rising(0.5 * freedom, 0.5) - 0.5 * std::log(3.141592653589793)),
          log_peak_(is_normal() ? -0.5 * numerics::log_two_pi : log_beta_constant_ - 0.5 * std::log(freedom)) {}

    double freedom() const { return freedom_; }
    double inverse_freedom() const { return 1.0 / freedom_; }
    // The largest second derivative of the density in size, which is that at 0.
    double bend() const { return std::exp(log_peak_) * (1.0 + 1.0 / freedom_); }
    double log_density(double z) const {
        if (is_normal()) return log_peak_ - 0.5 * z * z;
        return log_peak_ - 0.5 * (freedom_ + 1.0) * std::log1p(z * z / freedom_);
    }

    // P(T <= z), P(T > z) and the density at z; the smaller tail has all its digits.
    Tails at(double z) const {
        const double squared = is_normal() ? z * z : z * z / freedom_;
        if (!(squared < std::numeric_limits<double>::infinity()))
            return z > 0.0 ? Tails{1.0, 0.0, 0.0} : Tails{0.0, 1.0, 0.0};
        if (is_normal()) {
            const double tail = 0.5 * std::erfc(std::fabs(z) * 0.70710678118654752);
            return sided(z, tail, std::exp(log_peak_ - 0.5 * squared));
        }
        const double log_share = -std::log1p(squared);  // of nu / (nu + z^2)
        const double kernel = std::exp(log_beta_constant_ + 0.5 * freedom_ * log_share);
        const double density = kernel * std::exp(0.5 * log_share) / std::sqrt(freedom_);
        return sided(z, upper_tail(squared, kernel), density);
    }

    // E|T - z| - |z| + 2 |z| P(T > |z|), for more than one degree of freedom.
    double overlap(double z) const {
        if (is_normal()) return 2.0 * std::exp(log_density(z));
        return 2.0 * std::exp(log_peak_ - 0.5 * (freedom_ - 1.0) * std::log1p(z * z / freedom_)) * freedom_ /
               (freedom_ - 1.0);
    }

    // E|T - z| - E|T - from| without |z| - |from|, given P(T > |z|) of both; for degrees of freedom other than 1.
    //
    // E|T - z| = |z| + 2 (H(z) - |z| P(T > |z|)) with H(z) = density(0) nu / (nu - 1) (1 + z^2 / nu)^(-(nu - 1) / 2). H
    // is large where nu is near 1: its difference is taken by expm1.
    double extra_overlap(double z, double tail, double from, double from_tail) const {
        const double log_z = std::log1p(z * z / freedom_), log_from = std::log1p(from * from / freedom_);
        const double power = 0.5 * (freedom_ - 1.0);
        const double peak = std::exp(log_beta_constant_) * std::sqrt(freedom_) / (freedom_ - 1.0);
        const double near = std::min(log_z, log_from), far = std::max(log_z, log_from);
        const double fall = far > near ? peak * std::exp(-power * near) * std::expm1(-power * (far - near)) : 0.0;
        const auto product = [](double size, double tail) { return tail > 0.0 ? size * tail : 0.0; };
        const double tails = product(std::fabs(z), tail) - product(std::fabs(from), from_tail);
        return 2.0 * ((log_z >= log_from ? fall : -fall) - tails);
    }

  private:
    bool is_normal() const { return freedom_ == std::numeric_limits<double>::infinity(); }

    static Tails sided(double z, double tail, double density) {
        return z > 0.0 ? Tails{1.0 - tail, tail, density} : Tails{tail, 1.0 - tail, density};
    }

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

    double freedom_, log_beta_constant_, log_peak_;
};

// A t distribution of any location and scale.
class Student {
  public:
    Student(const StudentShape& shape, double location, double scale)
        : shape_(shape), location_(location), inverse_scale_(1.0 / scale) {}

    double freedom() const { return shape_.freedom(); }
    double location() const { return location_; }
    double standardised(double y) const { return (y - location_) * inverse_scale_; }

    // E|Y - y| - E|Y - origin|, given P(T > |z|) of both standardised; for degrees of freedom other than 1. The
    // difference of the |z| is taken from y - origin where the signs agree.
    double extra_distance(double y, double tail, double origin, double origin_tail) const {
        const double z = standardised(y), from = standardised(origin);
        const bool same_side = (z > 0.0) == (from > 0.0);
        const double size = same_side ? std::copysign(1.0, z + from) * (y - origin)
                                      : std::fabs(y - location_) - std::fabs(origin - location_);
        return size + shape_.extra_overlap(z, tail, from, origin_tail) / inverse_scale_;
    }

    // P(Y <= y), P(Y > y) and the density at y.
    Tails at(double y) const {
        Tails tails = shape_.at(standardised(y));
        tails.density *= inverse_scale_;
        return tails;
    }

  private:
    StudentShape shape_;
    double location_, inverse_scale_;
};

}  // namespace everytree::distributions
