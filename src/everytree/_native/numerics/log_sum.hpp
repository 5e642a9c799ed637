// Sums of numbers that are known by their logarithms.
#pragma once
#include <cmath>
#include <limits>
#include <vector>

namespace everytree::numerics {

// log(exp(a) + exp(b)); either may be minus infinity, or both.
inline double log_sum(double a, double b) {
    if (a == b) return a + 0.69314718055994530942;
    return a > b ? a + std::log1p(std::exp(b - a)) : b + std::log1p(std::exp(a - b));
}

// The same of any number of terms; minus infinity if there are none.
inline double log_sum(const std::vector<double>& terms) {
    double most = -std::numeric_limits<double>::infinity();
    for (const double term : terms) most = std::fmax(most, term);
    if (most == -std::numeric_limits<double>::infinity()) return most;
    double sum = 0.0;
    for (const double term : terms) sum += std::exp(term - most);
    return most + std::log(sum);
}

}  // namespace everytree::numerics
