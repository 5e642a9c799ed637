// Answers that need many looks at one mixture of Student's t: the shortest interval, and the score.
#pragma once
#include <cmath>
#include <limits>

#include "distributions/student_mixture.hpp"

namespace everytree::distributions {

struct Interval {
    double low, high;
};

// The shortest interval that holds `coverage`, or the one that is the shortest after taking exp of both ends.
//
// The width is looked up on a grid of probabilities below the interval. Between the neighbours of the best place there
// is a minimum, where the density is the same at both ends.
class ShortestInterval {
  public:
    ShortestInterval(const StudentMixture& mixture, double coverage, bool is_log)
        : mixture_(mixture), coverage_(coverage), is_log_(is_log) {}

    Interval find() const {
        double best_width = std::numeric_limits<double>::infinity();
        std::size_t best = 1;
        for (std::size_t k = 1; k < n_cells; ++k) {  // at both ends of the grid, the interval has an end in a far tail
            const double found = width(at(place(k)));
            if (!(found < best_width)) continue;
            best_width = found;
            best = k;
        }
        return between(place(best - 1), place(best), place(best + 1));
    }

  private:
    static constexpr std::size_t n_cells = 16;
    static constexpr double least = 1e-12;  // probability on either side

    double place(std::size_t k) const {
        return std::clamp((1.0 - coverage_) * static_cast<double>(k) / n_cells, least, 1.0 - coverage_ - least);
    }
    Interval at(double below) const {
        return {mixture_.quantile(below, false), mixture_.quantile(below + coverage_, false)};
    }
    // The length, in units of the exp of the middle with is_log.
    double width(const Interval& ends) const {
        if (!is_log_) return ends.high - ends.low;
        return std::exp(ends.high - mixture_.start()) - std::exp(ends.low - mixture_.start());
    }

    // The place between low and high where the derivative of the width is zero: Newton's method within the bracket.
    // The derivative has the sign of log density(low end) - log density(high end); it is negative on the left, where
    // the low end lies in a far tail, and positive on the right.
    Interval between(double low, double below, double high) const {
        Interval ends = at(below);
        for (int step = 0; step < 100; ++step, ends = at(below)) {
            const Curve left = mixture_.quickly_at(ends.low), right = mixture_.quickly_at(ends.high);
            const double slope =
                std::log(left.density) - std::log(right.density) + (is_log_ ? ends.high - ends.low : 0.0);
            if (std::fabs(slope) <= 1e-9) break;
            (slope < 0.0 ? low : high) = below;
            double rise = left.slope / (left.density * left.density) - right.slope / (right.density * right.density);
            if (is_log_) rise += 1.0 / right.density - 1.0 / left.density;
            double next = below - slope / rise;
            if (!(rise > 0.0 && next > low && next < high)) next = 0.5 * (low + high);
            if (next == below || !(high - low > 1e-15)) break;
            below = next;
        }
        return ends;
    }

    const StudentMixture& mixture_;
    double coverage_;
    bool is_log_;
};

inline Interval shortest_interval(const StudentMixture& mixture, double coverage, bool is_log) {
    return ShortestInterval(mixture, coverage, is_log).find();
}

// The integral of a positive function of t, by the trapezoidal rule. It is analytic, so that the error of a step is
// about the square of that of twice the step: the sums over even and over odd points are compared. NaN if they do not
// agree in the end. From the middle outward, at least to `least` on the upper side, and until what is left is
// negligible: the function falls off at least as exp(-|t|).
template <class Term>
double trapezoidal(Term term, double least) {
    constexpr double agreement = 2e-6, negligible = 1e-10;
    double even = term(0.0), odd = 0.0, step = 0.06;
    const auto outward = [&](double first, double stride) {
        double sum = 0.0;
        for (const double side : {-1.0, 1.0}) {
            double each = 1.0;
            for (double t = first;
                 (each > negligible * stride * (even + sum) || (side > 0.0 && t <= least)) && t < 50.0; t += stride)
                sum += each = term(side * t);
        }
        return sum;
    };
    even += outward(2.0 * step, 2.0 * step);
    odd = outward(step, 2.0 * step);
    for (int halvings = 0; halvings < 5; ++halvings) {
        if (std::fabs(even - odd) <= agreement * (even + odd)) return (even + odd) * step;
        even += odd;
        step *= 0.5;
        odd = outward(step, 2.0 * step);
    }
    return std::numeric_limits<double>::quiet_NaN();
}

// E|Y - Y'| / 2: the integral of F (1 - F) after y = start + reach sinh(t), where `reach` is so large that points are
// evenly spaced among the components. NaN if the sums do not agree, or if tails fall off too slowly.
inline double half_mean_difference(const StudentMixture& mixture) {
    if (!(mixture.least_freedom() >= 2.0)) return std::numeric_limits<double>::quiet_NaN();
    const double reach = 2.5 * mixture.spread();
    const auto term = [&](double t) {
        const double below = mixture.quickly_below(mixture.start() + reach * std::sinh(t));
        return std::fmax(below * (1.0 - below), 0.0) * std::cosh(t);
    };
    return trapezoidal(term, 0.0) * reach;
}

// E|exp(Y) - exp(Y')| / 2 in units of exp(start), for normal components: the same integral with a factor exp(y). Where
// that is large, upper tails count of which the tables have too few digits.
inline double half_mean_difference_of_exp(const StudentMixture& mixture) {
    if (!(mixture.least_freedom() == std::numeric_limits<double>::infinity()))
        return std::numeric_limits<double>::quiet_NaN();
    constexpr double far = 6.0;
    const double reach = 2.5 * mixture.spread();
    const auto term = [&](double t) {
        const double away = reach * std::sinh(t), y = mixture.start() + away;
        const double below = mixture.quickly_below(y), above = away > far ? mixture.at(y).above : 1.0 - below;
        const double product = below * above;
        return product > 0.0 ? product * std::cosh(t) * std::exp(away) : 0.0;
    };
    return trapezoidal(term, std::asinh((mixture.reach_of_exp() - mixture.start()) / reach)) * reach;
}

// NaN where the difference has fewer digits than it should.
inline double difference_with_digits(double distance, double half_spread) {
    const double score = distance - half_spread;
    return score > 0.03 * distance ? score : std::numeric_limits<double>::quiet_NaN();
}

// The integral of (F(x) - 1[x >= y])^2, which is E|Y - y| - E|Y - Y'| / 2. NaN where the difference of the two has
// fewer digits than it should.
inline double ranked_score(const StudentMixture& mixture, double half_spread, double y) {
    if (!std::isfinite(y) || std::isnan(half_spread)) return std::numeric_limits<double>::quiet_NaN();
    return difference_with_digits(mixture.mean_distance(y), half_spread);
}

// The same of exp(Y), for the logarithm y of a target, minus infinity for 0; in units of exp(start).
inline double ranked_score_of_exp(const StudentMixture& mixture, double half_spread, double y) {
    if (!(y < std::numeric_limits<double>::infinity()) || std::isnan(half_spread))
        return std::numeric_limits<double>::quiet_NaN();
    return difference_with_digits(mixture.mean_distance_of_exp(y), half_spread);
}

}  // namespace everytree::distributions
