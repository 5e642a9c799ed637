// Positive numbers beyond the range of doubles, for ratios of evidences: products and sums need no logs.
#pragma once
#include <cmath>
#include <cstdint>

namespace everytree::numerics {

// value * 2^(256 power). The value is 0 or lies within 2^-128 .. 2^128, or hardly beyond.
struct Scaled {
    double value = 1.0;
    std::int32_t power = 0;

    static Scaled exp(double log) {
        constexpr double log_step = 177.445678223345993;  // log(2^256)
        if (log < -1e9) return {0.0, 0};
        const double power = std::nearbyint(log / log_step);
        return {std::exp(log - power * log_step), static_cast<std::int32_t>(power)};
    }
    void times(double factor) {
        value *= factor;
        bring_into_range();
    }
    void bring_into_range() {
        for (; value >= 0x1p128; ++power) value *= 0x1p-256;
        for (; value < 0x1p-128 && value > 0.0; --power) value *= 0x1p256;
    }
    // Adds a number from 0 to 1 that is 0 or not tiny.
    void plus(double term) {
        if (value == 0.0) {
            *this = {term, 0};
        } else if (power == 0) {
            value += term;
        } else if (power == 1) {
            value += term * 0x1p-256;
        } else if (power < 0 && term > 0.0) {
            *this = {term + (power == -1 ? value * 0x1p-256 : 0.0), 0};
        }
    }
    // This over a number that is not smaller, or hardly.
    double over(const Scaled& larger) const {
        if (value == 0.0) return 0.0;
        const std::int32_t steps = power - larger.power;
        if (steps == 0) return value / larger.value;
        return steps < -4 ? 0.0 : std::ldexp(value / larger.value, 256 * steps);
    }
};

// Four such numbers, as the compiler makes vectors of them.
struct ScaledLanes {
    static constexpr int n = 4;
    double value[n] = {1.0, 1.0, 1.0, 1.0};
    std::int32_t power[n] = {0, 0, 0, 0};

    Scaled lane(int l) const { return {value[l], power[l]}; }
    void set(int l, const Scaled& number) {
        value[l] = number.value;
        power[l] = number.power;
    }
    // The product of one number and four factors that are not tiny with two numbers in each lane.
    static ScaledLanes product(const Scaled& one, const double* factors, const ScaledLanes& a, const ScaledLanes& b) {
        ScaledLanes all;
        for (int l = 0; l < n; ++l) all.value[l] = one.value * factors[l] * a.value[l] * b.value[l];
        for (int l = 0; l < n; ++l) all.power[l] = one.power + a.power[l] + b.power[l];
        all.bring_into_range();
        return all;
    }
    void times(const ScaledLanes& factors) {
        for (int l = 0; l < n; ++l) value[l] *= factors.value[l];
        for (int l = 0; l < n; ++l) power[l] += factors.power[l];
        bring_into_range();
    }
    bool is_plain() const { return (power[0] | power[1] | power[2] | power[3]) == 0; }
    void plus(const double* terms) {
        if (is_plain()) {
            for (int l = 0; l < n; ++l) value[l] += terms[l];
            return;
        }
        for (int l = 0; l < n; ++l) {
            Scaled sum = lane(l);
            sum.plus(terms[l]);
            set(l, sum);
        }
    }
    // The same, and which share of the sum was there before and which the term is.
    void plus(const double* terms, double* before, double* added) {
        const ScaledLanes mine = *this;
        plus(terms);
        if (mine.is_plain()) {
            for (int l = 0; l < n; ++l) {
                const double one_over = 1.0 / value[l];
                before[l] = mine.value[l] * one_over;
                added[l] = terms[l] * one_over;
            }
            return;
        }
        for (int l = 0; l < n; ++l) {
            before[l] = mine.lane(l).over(lane(l));
            added[l] = Scaled{terms[l], 0}.over(lane(l));
        }
    }

  private:
    void bring_into_range() {
        const auto larger = [](double a, double b) { return a > b ? a : b; };
        const auto smaller = [](double a, double b) { return a < b ? a : b; };
        const double most = larger(larger(value[0], value[1]), larger(value[2], value[3]));
        const double least = smaller(smaller(value[0], value[1]), smaller(value[2], value[3]));
        if (most < 0x1p128 && least >= 0x1p-128) return;
        for (int l = 0; l < n; ++l) {
            Scaled one = lane(l);
            one.bring_into_range();
            set(l, one);
        }
    }
};

}  // namespace everytree::numerics
