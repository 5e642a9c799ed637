// Answers that need many looks at one mixture of Student's t: the shortest interval, and the score.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

#include "core/student_mixture.hpp"

namespace everytree {

struct Interval {
    double low, high;
};

// The shortest interval that holds `coverage`, or the one that is the shortest after taking exp of both ends.
//
// The width as a function of the probability below the interval is looked up on a grid; between the neighbours of the
// best place, the density is the same at both ends of the shortest interval.
class ShortestInterval {
  public:
    ShortestInterval(const StudentMixture& mixture, double coverage, bool is_log)
        : mixture_(mixture), coverage_(coverage), is_log_(is_log) {}

    Interval find() {
        std::array<Interval, n_cells + 1> found;
        std::size_t best = 1;
        for (std::size_t k = 1; k < n_cells; ++k) {  // at both ends of the grid, the interval is without end
            found[k] = at(place(k));
            if (width(found[k]) < width(found[best])) best = k;
        }
        const Interval bottom = between(place(best - 1), place(best + 1), found[best]);
        return width(bottom) < width(found[best]) ? bottom : found[best];
    }

  private:
    static constexpr std::size_t n_cells = 16;
    static constexpr double least = 1e-12;  // of the probability on either side

    double place(std::size_t k) const {
        return std::clamp((1.0 - coverage_) * static_cast<double>(k) / n_cells, least, 1.0 - coverage_ - least);
    }
    Interval at(double below) {
        last_ = is_first_ ? Interval{mixture_.quantile(below, false), mixture_.quantile(below + coverage_, false)}
                          : Interval{mixture_.quantile_near(below, last_.low),
                                     mixture_.quantile_near(below + coverage_, last_.high)};
        is_first_ = false;
        return last_;
    }
    // The length, in units of the exp of the middle with is_log.
    double width(const Interval& ends) const {
        if (!is_log_) return ends.high - ends.low;
        return std::exp(ends.high - mixture_.start()) - std::exp(ends.low - mixture_.start());
    }
    // The derivative of the width has the sign of log density(low) - log density(high).
    double slope(const Interval& ends) const {
        const double jacobian = is_log_ ? ends.high - ends.low : 0.0;
        const double slope = mixture_.log_density(ends.low) - mixture_.log_density(ends.high) + jacobian;
        return std::isnan(slope) ? 0.0 : std::clamp(slope, -1e3, 1e3);
    }

    // The place between low and high where the slope is zero: regula falsi with the weight of a stale end halved, and a
    // bisection where that has not halved the bracket in four steps.
    Interval between(double low, double high, const Interval& middle) {
        last_ = middle;
        double f_low = slope(at(low)), f_high = slope(at(high)), width = high - low;
        if (!(f_low < 0.0)) return at(low);
        if (!(f_high > 0.0)) return at(high);
        last_ = middle;
        Interval found = middle;
        for (int step = 0; step < 200; ++step) {
            double guess = low - f_low * (high - low) / (f_high - f_low);
            if (step % 4 == 3) {
                if (high - low > 0.5 * width) guess = 0.5 * (low + high);
                width = high - low;
            }
            if (!(guess > low && guess < high)) guess = 0.5 * (low + high);
            if (!(guess > low && guess < high)) break;
            found = at(guess);
            const double value = slope(found);
            if (std::fabs(value) <= 1e-9) break;
            if (value < 0.0) {
                low = guess;
                f_low = value;
                f_high *= 0.5;
            } else {
                high = guess;
                f_high = value;
                f_low *= 0.5;
            }
        }
        return found;
    }

    const StudentMixture& mixture_;
    double coverage_;
    bool is_log_, is_first_ = true;
    Interval last_{0.0, 0.0};
};

inline Interval shortest_interval(const StudentMixture& mixture, double coverage, bool is_log) {
    return ShortestInterval(mixture, coverage, is_log).find();
}

// E|Y - Y'| / 2: the integral of F (1 - F), by the trapezoidal rule after y = start + spread sinh(t). The integrand is
// analytic, so that the error is about the square of that with twice the step: the sums over even and over odd points
// are compared. NaN if they do not agree, or if tails fall off too slowly.
inline double half_mean_difference(const StudentMixture& mixture) {
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    if (!(mixture.least_freedom() >= 2.0)) return none;
    const auto term = [&](double t) {
        const double below = mixture.quickly_below(mixture.start() + mixture.spread() * std::sinh(t));
        return std::fmax(below * (1.0 - below), 0.0) * std::cosh(t);
    };
    double sums[2] = {term(0.0), 0.0}, step = 0.25;
    // From the middle outward, until what is left is negligible: it falls off at least as exp(-t).
    const auto add_outward = [&](double first, double stride, std::size_t which) {
        for (const double side : {-1.0, 1.0})
            for (int k = 0; k < 1000; ++k) {
                const double each = term(side * (first + k * stride));
                sums[which] += each;
                if (each <= 1e-12 * (sums[0] + sums[1]) * stride && first + k * stride > 1.0) break;
            }
    };
    add_outward(2.0 * step, 2.0 * step, 0);
    add_outward(step, 2.0 * step, 1);
    for (int halvings = 0; halvings < 4; ++halvings) {
        const double all = sums[0] + sums[1];
        if (std::fabs(sums[0] - sums[1]) <= 3e-6 * all) return all * step * mixture.spread();
        sums[0] = all;
        sums[1] = 0.0;
        step *= 0.5;
        add_outward(step, 2.0 * step, 1);
    }
    return none;
}

// The integral of (F(x) - 1[x >= y])^2, which is E|Y - y| - E|Y - Y'| / 2. NaN where the difference of the two has
// fewer digits than it should.
inline double ranked_score(const StudentMixture& mixture, double half_spread, double y) {
    if (!std::isfinite(y) || std::isnan(half_spread)) return std::numeric_limits<double>::quiet_NaN();
    const double distance = mixture.mean_distance(y), score = distance - half_spread;
    return score > 0.03 * distance ? score : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace everytree
