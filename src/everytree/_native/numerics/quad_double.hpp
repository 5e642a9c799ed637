// Numbers as sums of four doubles (about 60 digits), for the rare matrix that is singular to within 32 digits.
//
// Slow but short: every sum is renormalised a few times.
#pragma once
#include "numerics/double_double.hpp"

namespace everytree::numerics {

class QuadDouble {
  public:
    static constexpr int n_parts = 4;

    constexpr QuadDouble() = default;
    constexpr QuadDouble(DoubleDouble value) : parts_{value.high, value.low, 0.0, 0.0} {}
    DoubleDouble pair() const { return {parts_[0], parts_[1]}; }

    friend QuadDouble operator-(const QuadDouble& a, const QuadDouble& b) {
        double terms[2 * n_parts];
        for (int i = 0; i < n_parts; ++i) {
            terms[2 * i] = a.parts_[i];
            terms[2 * i + 1] = -b.parts_[i];
        }
        return swept(terms);
    }
    friend QuadDouble operator*(const QuadDouble& a, const QuadDouble& b) {
        double terms[n_parts * (n_parts + 1)];
        double* next = terms;
        for (int order = 0; order < n_parts; ++order)
            for (int i = 0; i <= order; ++i, next += 2)
                store_pair(next, exact_product(a.parts_[i], b.parts_[order - i]));
        return swept(terms);
    }
    friend QuadDouble operator/(const QuadDouble& a, const QuadDouble& b) {
        double digits[n_parts + 1];
        QuadDouble rest = a;
        for (double& digit : digits) {
            digit = rest.parts_[0] / b.parts_[0];
            rest = rest - b * QuadDouble(digit);
        }
        return swept(digits);
    }

  private:
    // The sum of some numbers, largest parts first; each pass moves the rounding errors one place down.
    template <int n>
    static QuadDouble swept(double (&terms)[n]) {
        for (int sweep = 0; sweep < n_parts + 1; ++sweep)
            for (int i = n - 2; i >= 0; --i) {
                const DoubleDouble both = exact_sum(terms[i], terms[i + 1]);
                terms[i] = both.high;
                terms[i + 1] = both.low;
            }
        QuadDouble sum;
        int place = 0;
        double here = terms[0];
        for (int i = 1; i < n && place < n_parts - 1; ++i) {
            const DoubleDouble both = exact_sum(here, terms[i]);
            if (both.low != 0.0) sum.parts_[place++] = both.high;
            here = both.low != 0.0 ? both.low : both.high;
        }
        sum.parts_[place] = here;
        return sum;
    }

    double parts_[n_parts] = {};
};

}  // namespace everytree::numerics
