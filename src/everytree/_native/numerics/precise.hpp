// Logarithms and gamma functions to about 32 digits, for differences of large values that plain doubles lose.
//
// Four to ten times slower than the plain ones in special.hpp, which call these only where their own terms cancel.
#pragma once
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "numerics/double_double.hpp"

namespace everytree::numerics {

// log Gamma(x) - ((x - 1/2) log x - x + log(2 pi) / 2), for x >= 10: absolute error below 1e-15.
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

// 2 atanh(z) for |z| <= 1 / 200: z^2 is so small that only three terms need all digits.
inline DoubleDouble twice_small_atanh(DoubleDouble z) {
    const DoubleDouble square = z * z;
    const double q = square.high;
    const double tail = 1.0 / 7.0 + q * (1.0 / 9.0 + q * (1.0 / 11.0 + q * (1.0 / 13.0 + q / 15.0)));
    constexpr DoubleDouble third{0x1.5555555555555p-2, 0x1.5555555555555p-56};
    constexpr DoubleDouble fifth{0x1.999999999999ap-3, -0x1.999999999999ap-57};
    const DoubleDouble series = square * (third + square * (fifth + square * tail)) + 1.0;
    const DoubleDouble half = z * series;
    return {2.0 * half.high, 2.0 * half.low};
}

inline constexpr DoubleDouble log_two{0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
inline constexpr DoubleDouble half_log_two_pi{0x1.d67f1c864beb5p-1, -0x1.65b5a1b7ff5dfp-55};

// log(1 + i / 64) for i = 0 .. 64, each from the one before.
inline const std::array<DoubleDouble, 65>& log_table() {
    static const std::array<DoubleDouble, 65> table = [] {
        std::array<DoubleDouble, 65> logs{};
        for (int i = 1; i <= 64; ++i)
            logs[i] = logs[i - 1] + twice_small_atanh(DoubleDouble(1.0) / DoubleDouble(127.0 + 2.0 * i));
        return logs;
    }();
    return table;
}

// The k with 2^k <= x < 2^(k + 1), and 2^-k, of a number that is neither tiny nor huge.
struct BinaryExponent {
    int value;
    double inverse_power;
};
inline BinaryExponent binary_exponent(double x) {
    const auto biased = std::bit_cast<std::uint64_t>(x) >> 52;
    return {static_cast<int>(biased) - 1023, std::bit_cast<double>((2046 - biased) << 52)};
}

// Logarithm of a positive number.
inline DoubleDouble precise_log(DoubleDouble x) {
    const auto [exponent, unit] = binary_exponent(x.high);
    const DoubleDouble scaled{x.high * unit, x.low * unit};  // in [1, 2]
    const int cell = static_cast<int>(64.0 * (scaled.high - 1.0) + 0.5);
    const double centre = 1.0 + cell / 64.0;
    return log_two * exponent + (log_table()[cell] + twice_small_atanh((scaled - centre) / (scaled + centre)));
}

// The same to an absolute error of 1e-22 and in a fifth of the time, enough to be multiplied by 1e10: 1 / centre times
// x is 1 + r, where r is below 2^-8 and all but its first power fit into a double.
inline DoubleDouble fine_log(double x) {
    struct Cell {
        double inverse;
        DoubleDouble log;
    };
    static const std::array<Cell, 129> cells = [] {
        std::array<Cell, 129> made{};
        for (int i = 0; i <= 128; ++i) {
            made[i].inverse = 1.0 / (1.0 + i / 128.0);
            made[i].log = -precise_log(made[i].inverse);
        }
        return made;
    }();
    const auto [exponent, unit] = binary_exponent(x);
    const double scaled = x * unit;
    const Cell& cell = cells[static_cast<std::size_t>(128.0 * (scaled - 1.0) + 0.5)];
    const DoubleDouble product = exact_product(scaled, cell.inverse);
    const DoubleDouble rest = ordered_sum(product.high - 1.0, product.low);
    const double r = rest.high;
    const double series =
        r * r * r * (1.0 / 3.0 - r * (0.25 - r * (0.2 - r * (1.0 / 6.0 - r * (1.0 / 7.0 - r * (0.125 - r / 9.0))))));
    const DoubleDouble square = exact_product(r, -0.5 * r);
    const double low = rest.low * (1.0 - r) + square.low + series;
    return log_two * exponent + (cell.log + (exact_sum(rest.high, square.high) + low));
}

// log Gamma(x) - x log(t). Below 32 as log Gamma(x + 32) minus the logs of the numbers between.
inline DoubleDouble precise_log_gamma_less_power(DoubleDouble x, DoubleDouble log_t) {
    DoubleDouble between(1.0), y = x;
    for (; y.high < 32.0; y = y + 1.0) between = between * y;
    const DoubleDouble log_y = precise_log(y);
    DoubleDouble value = (y - 0.5) * log_y - x * log_t - y + half_log_two_pi + stirling_rest(y.high);
    return between.high == 1.0 ? value : value - precise_log(between);
}
// log(k!) for the most common counts.
inline constexpr int n_log_factorials = 4096;
inline const std::array<double, n_log_factorials>& log_factorials() {
    static const std::array<double, n_log_factorials> table = [] {
        std::array<double, n_log_factorials> logs{};
        DoubleDouble sum;
        for (std::size_t k = 2; k < logs.size(); ++k) logs[k] = (sum = sum + precise_log(static_cast<double>(k))).high;
        return logs;
    }();
    return table;
}

inline DoubleDouble precise_log_gamma(DoubleDouble x) { return precise_log_gamma_less_power(x, {}); }

}  // namespace everytree::numerics
