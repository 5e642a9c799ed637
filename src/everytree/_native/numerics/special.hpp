// Gamma functions and their ratios in evidences, without loss of digits.
//
// std::lgamma writes a global sign and is therefore unsafe in several threads; positive arguments need no sign.
// Differences of log gammas are never taken where both are large: log Gamma(1e9) has an absolute error of 1e-6.
#pragma once
#include <cmath>

#include "numerics/compiler.hpp"
#include "numerics/precise.hpp"

namespace everytree::numerics {

inline constexpr double log_two_pi = 1.8378770664093454836;

// Whether terms of this absolute sum cancel so far that rounding errors become visible in the value.
inline bool has_cancelled(double value, double size) { return size > 16.0 && size > 1024.0 * std::fabs(value); }

// Whether pairs of doubles are more accurate: they lose in the 32nd digit of log Gamma of the largest argument, plain
// numbers in the 16th of their own terms.
inline bool is_worth_pairs(double value, double size, double largest) {
    return has_cancelled(value, size) && largest < 1e13 * size;
}

// Smaller arguments are increased by the recurrence.
inline double log_gamma(double x) {
    double shift = 1.0;
    while (x < 10.0) {
        shift *= x;
        x += 1.0;
    }
    const double value = (x - 0.5) * std::log(x) - x + 0.5 * log_two_pi + stirling_rest(x);
    return shift == 1.0 ? value : value - std::log(shift);
}

// log of Gamma(x + n) / Gamma(x): the rising factorial x (x + 1) ... (x + n - 1) for any n >= 0.
// Of a few whole factors the logarithm of their product is faster, and as accurate.
inline double log_rising(double x, double n) {
    if (x < 64.0 && n <= 16.0 && n == std::floor(n)) {
        double product = 1.0;
        for (double k = 0.0; k < n; k += 1.0) product *= x + k;
        return std::log(product);
    }
    if (x < 10.0) return log_gamma(x + n) - log_gamma(x);
    return (x + n - 0.5) * std::log1p(n / x) + n * (std::log(x) - 1.0) + (stirling_rest(x + n) - stirling_rest(x));
}

// log Gamma(x) - x log(t). Separately, both are of order x log x; together only of order x, and so is the error.
inline double log_gamma_less_power(double x, double t) {
    if (x < 10.0) return log_gamma(x) - x * std::log(t);
    return (x - 0.5) * std::log(x / t) - 0.5 * std::log(t) - x + 0.5 * log_two_pi + stirling_rest(x);
}

EVERYTREE_NOINLINE inline double precise_log_gamma_ratio(double x, double t, DoubleDouble n, DoubleDouble s,
                                                         DoubleDouble rest) {
    const DoubleDouble after = precise_log_gamma_less_power(n + x, precise_log(s + t));
    return (after - precise_log_gamma_less_power(x, precise_log(t)) + rest).high;
}

// log of Gamma(x + n) / Gamma(x) * t^x / (t + s)^(x + n), plus `rest`. Few events: as rising factorial and powers.
// Many: as the difference of two of the above, unless that of the prior is less accurate. If either loses digits: in
// pairs.
inline double log_gamma_ratio(double x, double t, DoubleDouble n, DoubleDouble s, DoubleDouble rest = {}) {
    double value = 0.0, size = 0.0;
    bool is_difference = false;
    if (n.high >= 256.0) {
        const double after = log_gamma_less_power(x + n.high, t + s.high), before = log_gamma_less_power(x, t);
        value = after - before;
        size = std::fabs(after) + std::fabs(before);
        is_difference = size < n.high * std::log(n.high);
    }
    if (!is_difference) {
        const double growth = std::log1p(s.high / t), rising = n.high == 0.0 ? 0.0 : log_rising(x, n.high);
        const double before = x * growth, later = n.high * (std::log(t) + growth);
        value = rising - before - later;
        size = std::fabs(rising) + before + std::fabs(later);
    }
    value += rest.high;
    if (!is_worth_pairs(value, size + std::fabs(rest.high), x + n.high)) return value;
    return precise_log_gamma_ratio(x, t, n, s, rest);
}

// log of the multivariate beta function, sum of log Gamma(x_c) - log Gamma(sum of x_c), without the cancellation: the
// powers combine to (x_c - 1/2) log(x_c / sum), and a ratio near 1 is computed from its distance to 1.
inline double log_beta(const double* x, int n) {
    double sum = 0.0;
    for (int c = 0; c < n; ++c) sum += x[c];
    if (sum < 10.0) {
        double total = -log_gamma(sum);
        for (int c = 0; c < n; ++c) total += log_gamma(x[c]);
        return total;
    }
    double total = -stirling_rest(sum);
    double n_large = -1.0;
    for (int c = 0; c < n; ++c) {
        if (x[c] < 10.0) {  // its own power stays separate: log Gamma(x_c) - x_c log(sum)
            total += log_gamma(x[c]) - x[c] * std::log(sum) + x[c];
            continue;
        }
        double others = 0.0;
        if (x[c] > 0.5 * sum)
            for (int k = 0; k < n; ++k) others += k == c ? 0.0 : x[k];
        const double log_ratio = x[c] > 0.5 * sum ? std::log1p(-others / sum) : std::log(x[c] / sum);
        total += (x[c] - 0.5) * log_ratio + stirling_rest(x[c]);
        n_large += 1.0;
    }
    return total + 0.5 * n_large * (log_two_pi - std::log(sum));
}

// The same in pairs, for x + n.
inline DoubleDouble precise_log_beta(const double* x, const double* n, int size) {
    DoubleDouble sum, total;
    for (int c = 0; c < size; ++c) {
        const DoubleDouble each = exact_sum(x[c], n ? n[c] : 0.0);
        sum = sum + each;
        total = total + precise_log_gamma(each);
    }
    return total - precise_log_gamma(sum);
}

EVERYTREE_NOINLINE inline double precise_log_beta_ratio(const double* x, const double* n, int size) {
    return (precise_log_beta(x, n, size) - precise_log_beta(x, nullptr, size)).high;
}

// log of B(x + n) / B(x), B the multivariate beta function, in the same three ways; log_beta_x is log_beta(x).
// `scratch` has room for as many numbers as x.
inline double log_beta_ratio(const double* x, const double* n, int size, double log_beta_x, double* scratch) {
    double sum = 0.0, total = 0.0;
    for (int c = 0; c < size; ++c) {
        sum += x[c];
        total += n[c];
        scratch[c] = x[c] + n[c];
    }
    if (total == 0.0) return 0.0;
    double value = 0.0, terms = 0.0;
    bool is_difference = false;
    if (total >= 256.0) {
        const double after = log_beta(scratch, size);
        value = after - log_beta_x;
        terms = std::fabs(after) + std::fabs(log_beta_x);
        is_difference = terms < total * std::log(total);
    }
    if (!is_difference) {
        const double of_sum = log_rising(sum, total);
        value = -of_sum;
        terms = std::fabs(of_sum);
        for (int c = 0; c < size; ++c) {
            if (n[c] == 0.0) continue;
            const double of_class = log_rising(x[c], n[c]);
            value += of_class;
            terms += std::fabs(of_class);
        }
    }
    return is_worth_pairs(value, terms, sum + total) ? precise_log_beta_ratio(x, n, size) : value;
}

// x log(x / m) - x + m, accurate where x is near m (Loader's deviance).
inline double deviance(double x, double m) {
    if (x == 0.0) return m;
    const double relative = (x - m) / (x + m);
    if (std::fabs(relative) > 0.1) return x * std::log(x / m) - x + m;
    double power = 2.0 * x * relative, sum = (x - m) * relative;
    for (int j = 3; j < 1000; j += 2) {
        power *= relative * relative;
        const double next = sum + power / j;
        if (next == sum) break;
        sum = next;
    }
    return sum;
}

EVERYTREE_NOINLINE inline double precise_log_negative_binomial(double k, double shape, double odds) {
    const DoubleDouble log_total = precise_log(exact_sum(1.0, odds)), log_odds = precise_log(odds);
    return (precise_log_gamma_less_power(exact_sum(shape, k), log_total) - precise_log_gamma(shape) -
            precise_log_gamma_less_power(exact_sum(k, 1.0), log_odds) - log_odds)
        .high;
}

// log probability of k under a negative binomial with the given shape: a Poisson count whose rate has a gamma
// distribution, odds = exposure / rate of that gamma. By deviances, since all other forms cancel for large shapes.
inline double log_negative_binomial(double k, double shape, double odds) {
    if (k == 0.0) return -shape * std::log1p(odds);
    const double n = shape + k, p = 1.0 / (1.0 + odds), q = odds / (1.0 + odds);
    if (shape < 10.0 || k < 10.0) {
        const double rising = log_rising(shape, k), factorial = log_gamma(k + 1.0), growth = std::log1p(odds);
        const double powers = k * (std::log(odds) - growth) - shape * growth, value = rising - factorial + powers;
        const double size = std::fabs(rising) + factorial + std::fabs(powers);
        return is_worth_pairs(value, size, n) ? precise_log_negative_binomial(k, shape, odds) : value;
    }
    const double value = std::log(shape / n) + 0.5 * (std::log(n) - std::log(shape) - std::log(k) - log_two_pi) +
                         stirling_rest(n) - stirling_rest(shape) - stirling_rest(k) - deviance(shape, n * p) -
                         deviance(k, n * q);
    // A deviance x log(x / m) - x + m multiplies the rounding of m by x / m - 1.
    return is_worth_pairs(value, std::fabs(k - n * q), n) ? precise_log_negative_binomial(k, shape, odds) : value;
}

}  // namespace everytree::numerics
