// Pairs and quadruples of doubles against whole numbers of 127 bits, logarithms and gamma functions against long
// doubles.
#include <cmath>

#include "check.hpp"
#include "numerics/log_sum.hpp"
#include "numerics/quad_double.hpp"
#include "numerics/scaled.hpp"
#include "numerics/special.hpp"

namespace native_tests {
namespace {

using namespace everytree::numerics;
__extension__ typedef __int128 Whole;

Whole whole(double value) { return static_cast<Whole>(value); }
Whole whole(DoubleDouble value) { return whole(value.high) + whole(value.low); }

// A whole number of up to this many bits.
double draw(Random& random, int bits) {
    const auto size = static_cast<double>(random.bits() >> (64 - bits));
    return random.below(2) ? -size : size;
}
DoubleDouble draw_pair(Random& random, int bits) {
    return exact_sum(std::ldexp(draw(random, 50), bits - 50), draw(random, 40));
}

// The error is at most this share of the value, a power of two.
bool is_close(Whole found, Whole expected, int bits) {
    const Whole error = found > expected ? found - expected : expected - found;
    return error <= ((expected < 0 ? -expected : expected) >> bits);
}

void check_pairs(Random& random) {
    const double a = draw(random, 53), b = draw(random, 53);
    CHECK(whole(exact_sum(a, b)) == whole(a) + whole(b));
    CHECK(whole(exact_product(a, b)) == whole(a) * whole(b));
    const double shifted = std::ldexp(b, 60);
    CHECK(whole(exact_sum(a, shifted)) == whole(a) + whole(shifted));
    CHECK(whole(ordered_sum(std::fmax(std::fabs(a), std::fabs(b)), std::fmin(std::fabs(a), std::fabs(b)))) ==
          whole(std::fabs(a)) + whole(std::fabs(b)));

    const DoubleDouble x = draw_pair(random, 90), y = draw_pair(random, 90);
    CHECK(is_close(whole(x + y), whole(x) + whole(y), 95));
    CHECK(is_close(whole(x + a), whole(x) + whole(a), 95));
    CHECK(whole(x - x) == 0);
    const DoubleDouble p = draw_pair(random, 62), q = draw_pair(random, 62);
    CHECK(is_close(whole(p * q), whole(p) * whole(q), 95));
    CHECK(is_close(whole(p * a), whole(p) * whole(a), 95));
    if (q.high != 0.0) CHECK(std::fabs(((p / q) * q - p).high) <= 0x1p-98 * std::fabs(p.high));
    const DoubleDouble size = p.high < 0.0 ? -p : p, root = square_root(size);
    CHECK(std::fabs((root * root - size).high) <= 0x1p-98 * size.high);
    CHECK(is_close(whole(same_sign_sum(size, size)), 2 * whole(size), 95));
}

void check_quadruples(Random& random) {
    const double a = draw(random, 50) + 1.0, b = std::fabs(draw(random, 50)) + 1.0;
    const QuadDouble quotient = QuadDouble(DoubleDouble(a)) / QuadDouble(DoubleDouble(b));
    const DoubleDouble rest = (quotient * QuadDouble(DoubleDouble(b)) - QuadDouble(DoubleDouble(a))).pair();
    CHECK(std::fabs(rest.high) <= 1e-55 * std::fmax(std::fabs(a), 1.0));
    const DoubleDouble pair = (QuadDouble(DoubleDouble(a)) * QuadDouble(DoubleDouble(b))).pair();
    CHECK(whole(pair) == whole(a) * whole(b));
}

void check_functions(Random& random) {
    const double x = std::exp(20.0 * random.uniform() - 6.0);
    const long double log_x = std::log(static_cast<long double>(x));
    for (const DoubleDouble found : {precise_log(x), fine_log(x)})
        CHECK(std::fabs((found.high - log_x) + found.low) < 4e-18L);
    CHECK(is_near(log_gamma(x), static_cast<double>(std::lgamma(static_cast<long double>(x))), 1e-14));
    const double n = std::floor(50.0 * random.uniform());
    double rising = 0.0;
    for (double k = 0.0; k < n; k += 1.0) rising += std::log(x + k);
    CHECK(is_near(log_rising(x, n), rising, 1e-13));
    const double one = 40.0 * random.uniform() - 20.0, other = 40.0 * random.uniform() - 20.0;
    CHECK(is_near(log_sum(one, other), std::log(std::exp(one) + std::exp(other)), 1e-14));
    CHECK(log_sum(one, other) == log_sum(other, one));
}

// Products and sums far beyond the range of doubles, followed by their logarithms.
void check_scaled(Random& random) {
    const double log_value = 4000.0 * (random.uniform() - 0.5), log_factor = 80.0 * (random.uniform() - 0.5);
    Scaled value = Scaled::exp(log_value);
    value.times(std::exp(log_factor));
    value.plus(0.5);
    constexpr double log_step = 177.445678223345993;
    const double found = std::log(value.value) + value.power * log_step;
    CHECK(is_near(found, log_sum(log_value + log_factor, std::log(0.5)), 1e-12));
}

}  // namespace

void test_arithmetic() {
    Random random(4);
    for (int i = 0; i < 2000; ++i) {
        check_pairs(random);
        check_quadruples(random);
        check_functions(random);
        check_scaled(random);
    }
}

}  // namespace native_tests
