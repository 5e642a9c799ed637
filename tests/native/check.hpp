// Checks that count their failures, and random numbers that are the same everywhere.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstdio>

#include "core/scramble.hpp"

namespace native_tests {

inline int n_checks = 0, n_failed = 0;

inline void check(bool holds, const char* condition, const char* file, int line) {
    ++n_checks;
    if (holds) return;
    ++n_failed;
    if (n_failed <= 20) std::fprintf(stderr, "%s:%d: not so: %s\n", file, line, condition);
}

// Equal, or different by at most this share of the larger one (and of 1).
inline bool is_near(double a, double b, double tolerance) {
    if (a == b) return true;
    return std::fabs(a - b) <= tolerance * std::fmax(1.0, std::fmax(std::fabs(a), std::fabs(b)));
}

class Random {
  public:
    explicit Random(std::uint64_t seed) : seed_(seed) {}
    std::uint64_t bits() { return everytree::scramble(seed_ + ++n_drawn_); }
    int below(int n) { return static_cast<int>((bits() >> 33) % static_cast<std::uint64_t>(n)); }
    double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }

  private:
    std::uint64_t seed_, n_drawn_ = 0;
};

void test_arithmetic();
void test_route();
void test_sweep();
void test_held_out();

}  // namespace native_tests

#define CHECK(condition) native_tests::check(condition, #condition, __FILE__, __LINE__)
