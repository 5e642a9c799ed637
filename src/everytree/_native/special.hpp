// Gamma functions, and the ratios of them that evidences are made of, without losing digits.
//
// std::lgamma writes a global sign and is therefore no good from several threads; positive arguments need no sign.
// Differences of log gammas are never taken where both are large: log Gamma(1e9) has an absolute error of 1e-6.
#pragma once
#include <cmath>

namespace everytree {

inline constexpr double log_two_pi = 1.8378770664093454836;

// What log Gamma(x) has beyond (x - 1/2) log x - x + log(2 pi) / 2, for x >= 10: absolute error below 1e-15.
inline double stirling_rest(double x) {
    const double inverse = 1.0 / x, square = inverse * inverse;
    double series = -691.0 / 360360.0;
    series = series * square + 1.0 / 1188.0;
    series = series * square - 1.0 / 1680.0;
    series = series * square + 1.0 / 1260.0;
    series = series * square - 1.0 / 360.0;
    series = series * square + 1.0 / 12.0;
    return series * inverse;
}

// Smaller arguments are moved up by the recurrence.
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
inline double log_rising(double x, double n) {
    if (x < 10.0) return log_gamma(x + n) - log_gamma(x);
    return (x + n - 0.5) * std::log1p(n / x) + n * (std::log(x) - 1.0) + (stirling_rest(x + n) - stirling_rest(x));
}

// log Gamma(x) - x log(t). Apart, both are of order x log x; together only of order x, and so is the rounding error.
inline double log_gamma_less_power(double x, double t) {
    if (x < 10.0) return log_gamma(x) - x * std::log(t);
    return (x - 0.5) * std::log(x / t) - 0.5 * std::log(t) - x + 0.5 * log_two_pi + stirling_rest(x);
}

// log of Gamma(x + n) / Gamma(x) * t^x / (t + s)^(x + n). Few events: as rising factorial and powers. Many: as the
// difference of two of the above, unless the prior's own is the larger of the two evils.
inline double log_gamma_ratio(double x, double t, double n, double s) {
    if (n >= 256.0) {
        const double after = log_gamma_less_power(x + n, t + s), before = log_gamma_less_power(x, t);
        if (std::fabs(after) + std::fabs(before) < n * std::log(n)) return after - before;
    }
    const double growth = std::log1p(s / t);
    return (n == 0.0 ? 0.0 : log_rising(x, n)) - x * growth - n * (std::log(t) + growth);
}

// log of the multivariate beta function, sum of log Gamma(x_c) - log Gamma(sum of x_c), without the cancellation: the
// powers meet as (x_c - 1/2) log(x_c / sum), and the ratio next to 1 is taken through what is missing to 1.
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
        if (x[c] < 10.0) {  // its own power stays apart: log Gamma(x_c) - x_c log(sum)
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

// log of B(x + n) / B(x), B the multivariate beta function, in the same two ways; log_beta_x is log_beta(x).
// `scratch` has room for as many numbers as x.
inline double log_beta_ratio(const double* x, const double* n, int size, double log_beta_x, double* scratch) {
    double sum = 0.0, total = 0.0;
    for (int c = 0; c < size; ++c) {
        sum += x[c];
        total += n[c];
        scratch[c] = x[c] + n[c];
    }
    if (total >= 256.0) {
        const double after = log_beta(scratch, size);
        if (std::fabs(after) + std::fabs(log_beta_x) < total * std::log(total)) return after - log_beta_x;
    }
    if (total == 0.0) return 0.0;
    double ratio = -log_rising(sum, total);
    for (int c = 0; c < size; ++c)
        if (n[c] != 0.0) ratio += log_rising(x[c], n[c]);
    return ratio;
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

// log probability of k under a negative binomial with the given shape: a Poisson count whose rate has a gamma
// distribution, odds = exposure / rate of that gamma. Through deviances, as everything else cancels for large shapes.
inline double log_negative_binomial(double k, double shape, double odds) {
    if (k == 0.0) return -shape * std::log1p(odds);
    const double n = shape + k, p = 1.0 / (1.0 + odds), q = odds / (1.0 + odds);
    if (shape < 10.0 || k < 10.0)
        return log_rising(shape, k) - log_gamma(k + 1.0) + k * (std::log(odds) - std::log1p(odds)) -
               shape * std::log1p(odds);
    return std::log(shape / n) + 0.5 * (std::log(n) - std::log(shape) - std::log(k) - log_two_pi) + stirling_rest(n) -
           stirling_rest(shape) - stirling_rest(k) - deviance(shape, n * p) - deviance(k, n * q);
}

}  // namespace everytree
