// The logarithm of the gamma function for positive arguments.
//
// std::lgamma writes a global sign and is therefore no good from several threads; positive arguments need no
// sign.
#pragma once
#include <cmath>

namespace everytree {

inline constexpr double log_two_pi = 1.8378770664093454836;

// Stirling's series, absolute error below 1e-15 from 10 on; smaller arguments are moved up by the recurrence.
inline double log_gamma(double x) {
    double shift = 1.0;
    while (x < 10.0) {
        shift *= x;
        x += 1.0;
    }
    const double inverse = 1.0 / x, square = inverse * inverse;
    double series = -691.0 / 360360.0;
    series = series * square + 1.0 / 1188.0;
    series = series * square - 1.0 / 1680.0;
    series = series * square + 1.0 / 1260.0;
    series = series * square - 1.0 / 360.0;
    series = series * square + 1.0 / 12.0;
    const double stirling = (x - 0.5) * std::log(x) - x + 0.5 * log_two_pi + series * inverse;
    return shift == 1.0 ? stirling : stirling - std::log(shift);
}

}  // namespace everytree
