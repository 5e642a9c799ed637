// Sums without loss of digits: a number kept as an unevaluated pair high + low of doubles (about 32 digits).
//
// Why: the spread of a million rows at 1e6 +/- 1 is the small difference of two sums of order 1e18. In one
// double it is lost; in a pair it survives, stays additive, and rows can be subtracted again.
#pragma once
#include <cmath>

namespace everytree::numerics {

struct DoubleDouble {
    double high = 0.0;
    double low = 0.0;

    constexpr DoubleDouble() = default;
    constexpr DoubleDouble(double value) : high(value) {}
    constexpr DoubleDouble(double high_part, double low_part) : high(high_part), low(low_part) {}
    double value() const { return high + low; }
};

// The rounded sum of two doubles, and exactly what the rounding dropped (Knuth).
inline DoubleDouble exact_sum(double a, double b) {
    const double sum = a + b;
    const double part = sum - a;
    return {sum, (a - (sum - part)) + (b - part)};
}

// The same when |a| >= |b| is known (Dekker).
inline DoubleDouble ordered_sum(double a, double b) {
    const double sum = a + b;
    return {sum, b - (sum - a)};
}

// The rounded product of two doubles, and exactly what the rounding dropped (Veltkamp's split: no fused
// multiply-add needed, so that the bits are the same on every machine). Operands stay below 1e290 by
// validation.
inline DoubleDouble exact_product(double a, double b) {
    constexpr double splitter = 134217729.0;  // 2^27 + 1
    const double a_scaled = splitter * a, b_scaled = splitter * b;
    const double a_top = a_scaled - (a_scaled - a), b_top = b_scaled - (b_scaled - b);
    const double a_rest = a - a_top, b_rest = b - b_top;
    const double product = a * b;
    return {product, ((a_top * b_top - product) + a_top * b_rest + a_rest * b_top) + a_rest * b_rest};
}

inline DoubleDouble operator+(DoubleDouble a, DoubleDouble b) {
    DoubleDouble top = exact_sum(a.high, b.high);
    const DoubleDouble rest = exact_sum(a.low, b.low);
    top = ordered_sum(top.high, top.low + rest.high);
    return ordered_sum(top.high, top.low + rest.low);
}

// The same in half the steps for two numbers of the same sign, which cannot cancel.
inline DoubleDouble same_sign_sum(DoubleDouble a, DoubleDouble b) {
    const DoubleDouble top = exact_sum(a.high, b.high);
    return ordered_sum(top.high, top.low + (a.low + b.low));
}

inline DoubleDouble operator+(DoubleDouble a, double b) {
    const DoubleDouble top = exact_sum(a.high, b);
    return ordered_sum(top.high, top.low + a.low);
}

inline DoubleDouble operator-(DoubleDouble a) { return {-a.high, -a.low}; }
inline DoubleDouble operator-(DoubleDouble a, DoubleDouble b) { return a + (-b); }

inline DoubleDouble operator*(DoubleDouble a, DoubleDouble b) {
    const DoubleDouble top = exact_product(a.high, b.high);
    return ordered_sum(top.high, top.low + (a.high * b.low + a.low * b.high));
}

inline DoubleDouble operator-(DoubleDouble a, double b) { return a + (-b); }

inline DoubleDouble operator*(DoubleDouble a, double b) {
    const DoubleDouble top = exact_product(a.high, b);
    return ordered_sum(top.high, top.low + a.low * b);
}

inline DoubleDouble operator/(DoubleDouble a, DoubleDouble b) {
    const double first = a.high / b.high;
    return ordered_sum(first, (a - b * first).high / b.high);
}

inline DoubleDouble square_root(DoubleDouble a) {
    if (a.high <= 0.0) return {};
    const double guess = std::sqrt(a.high);
    const DoubleDouble rest = a - exact_product(guess, guess);
    return ordered_sum(guess, rest.high / (2.0 * guess));
}

// A pair stored in two neighbouring slots of a statistics array.
inline DoubleDouble load_pair(const double* slot) { return {slot[0], slot[1]}; }
inline void store_pair(double* slot, DoubleDouble value) {
    slot[0] = value.high;
    slot[1] = value.low;
}
inline void add_to_pair(double* slot, DoubleDouble value) { store_pair(slot, load_pair(slot) + value); }
inline void add_same_sign_to_pair(double* slot, DoubleDouble value) {
    store_pair(slot, same_sign_sum(load_pair(slot), value));
}
inline void add_to_pair(double* slot, double value) { store_pair(slot, load_pair(slot) + value); }

}  // namespace everytree::numerics
