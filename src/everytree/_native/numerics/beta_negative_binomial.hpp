// Tails of the beta negative binomial distribution: a count of shape r whose probability is Beta(a, b) distributed,
//   p(k) = Gamma(r + k) / (Gamma(r) k!) * B(a + r, b + k) / B(a, b).
// Both tails are sums of positive terms with simple ratios. The upper one falls off as k^-a: from some k on the rest of
// it is, by Thomae's transformation of the hypergeometric series 3F2(1), a series that converges fast.
#pragma once
#include <algorithm>
#include <cmath>

#include "numerics/special.hpp"

namespace everytree::numerics {

inline double log_beta_negative_binomial(double k, double r, double a, double b) {
    const double parameters[2] = {a, b}, more[2] = {r, k};
    double scratch[2];
    const double ways = k == 0.0 ? 0.0 : log_rising(r, k) - log_gamma(k + 1.0);
    return ways + log_beta_ratio(parameters, more, 2, log_beta(parameters, 2), scratch);
}

// The sum of p(j) / p(k) over j >= k.
inline double rest_over_term(double k, double r, double a, double b) {
    const double first = r <= 1.0 ? log_rising(r + k, 1.0 - r) : -log_rising(k + 1.0, r - 1.0);
    double term = 1.0, sum = 1.0;
    for (double n = 0.0; n < 1e5 && std::fabs(term) > 1e-17 * std::fabs(sum); ++n) {
        term *= (1.0 - r + n) * (a + b + n) * (a + n) / ((a + 1.0 + n) * (a + b + k + n) * (n + 1.0));
        sum += term;
    }
    return std::exp(first + log_rising(a + b + k, r)) / a * sum;
}

// The sum of p(j) over j <= k.
inline double sum_down(double k, double r, double a, double b) {
    double term = 1.0, sum = 1.0;
    for (double j = k; j > 0.0; --j) {
        const double ratio = j * (a + r + b + j - 1.0) / ((r + j - 1.0) * (b + j - 1.0));
        term *= ratio;
        sum += term;
        if (ratio < 1.0 && term * j < 1e-17 * sum) break;
    }
    return std::exp(log_beta_negative_binomial(k, r, a, b)) * sum;
}

// The sum of p(j) over j > k.
inline double sum_up(double k, double r, double a, double b) {
    if (std::fabs(1.0 - b) * (a + r) < std::fabs(1.0 - r) * (a + b)) std::swap(r, b);  // p is symmetric in them
    const double far = std::max(64.0, 4.0 * std::fabs(1.0 - r) * (a + b));
    double term = 1.0, sum = 0.0;
    const double first = k + 1.0;
    for (double j = first;; ++j) {
        if (j >= far) {
            sum += term * rest_over_term(j, r, a, b);
            break;
        }
        sum += term;
        const double ratio = (r + j) * (b + j) / ((j + 1.0) * (a + r + b + j));
        if (ratio < 1.0 && term * (1.0 + (a + b + r + j) / a) < 1e-17 * sum) break;
        term *= ratio;
    }
    return std::exp(log_beta_negative_binomial(first, r, a, b)) * sum;
}

// P(K > k), or P(K <= k); whichever sum is the smaller one has all its digits.
inline double beta_negative_binomial_tail(double k, double r, double a, double b, bool is_above) {
    if (!(k >= 0.0)) return is_above ? 1.0 : 0.0;
    if (k > 1e300) return is_above ? 0.0 : 1.0;
    k = std::floor(k);
    const bool is_high = (a + 1.0) * k > (r - 1.0) * b;  // beyond most of the probability, or below
    const double one = is_high ? sum_up(k, r, a, b) : sum_down(k, r, a, b);
    if (is_high == is_above) return one;
    if (one < 0.5) return 1.0 - one;
    return is_above ? sum_up(k, r, a, b) : sum_down(k, r, a, b);
}

}  // namespace everytree::numerics
