// Tails of Student's t by tables, at a twentieth of the cost of the continued fraction.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "distributions/student.hpp"
#include "numerics/lanes.hpp"

namespace everytree::distributions {

// P(T > |z|) of one shape, a polynomial of degree 7 in each of 128 cells. The cells are intervals of u = 1 + |z|,
// sixteen to each octave: the leading bits of u are the number of its cell, and a power law takes the same number of
// cells for each factor of two. Eight coefficients fill one cache line.
//
// The polynomial of a cell is the Taylor series about its middle up to degree 12, whose coefficients follow from the
// differential equation (1 + z^2 / nu) f' = -(1 + 1 / nu) z f of the density f, with the powers above 7 replaced by
// their best approximations on the cell. From one degree of freedom on, the nearest singularity i sqrt(nu) is more
// than 22 half-widths away from every cell: what is left out is below 1e-13, and below 1e-10 of the derivatives.
class StudentTable {
  public:
    static constexpr int n_cells = 128;
    static constexpr double least_freedom = 1.0;
    static constexpr double reach = 255.0;

    struct alignas(64) Cell {
        std::array<double, 8> c;
    };

    explicit StudentTable(const StudentShape& shape) : cells_(n_cells) {
        for (int k = 0; k < n_cells; ++k) cells_[static_cast<std::size_t>(k)] = cell(shape, k);
    }

    // The cell of u: at least n_cells from 1 + reach on, where there is none.
    static std::uint64_t cell_of(double u) { return (std::bit_cast<std::uint64_t>(u) >> 48) - 0x3ff0; }
    // With these bits of u and this one, the middle of its cell.
    static constexpr std::uint64_t half_cell_bit = std::uint64_t{1} << 47, cell_bits = ~(2 * half_cell_bit - 1);

    const Cell* cells() const { return cells_.data(); }

    // P(T > |z|) and the density at |z| for |z| < reach.
    double tail(double size) const { return at<false>(size).value[0]; }
    double density(double size) const { return -at<true>(size).slope[0]; }

    // P(T > |z|) with its derivatives.
    struct TailLanes {
        numerics::Lanes value, slope, half_curvature;
    };
    // Of two shapes, at the distances d from the middles of their cells, by Horner's rule for all three.
    template <bool with_derivatives>
    static TailLanes both_tails(const Cell& one, const Cell& other, numerics::Lanes d) {
        const double *a = one.c.data(), *b = other.c.data();
        const auto at = [&](int n) { return numerics::load_lanes(a + n); };
        const auto other_at = [&](int n) { return numerics::load_lanes(b + n); };
        numerics::Lanes slope = numerics::seconds(at(6), other_at(6)),
                        value = slope * d + numerics::firsts(at(6), other_at(6)), bend = slope;
        if constexpr (with_derivatives) slope = slope * d + value;
        value = value * d + numerics::seconds(at(4), other_at(4));
        const auto add = [&](numerics::Lanes coefficient) {
            if constexpr (with_derivatives) {
                bend = bend * d + slope;
                slope = slope * d + value;
            }
            value = value * d + coefficient;
        };
        add(numerics::firsts(at(4), other_at(4)));
        add(numerics::seconds(at(2), other_at(2)));
        add(numerics::firsts(at(2), other_at(2)));
        add(numerics::seconds(at(0), other_at(0)));
        add(numerics::firsts(at(0), other_at(0)));
        return {value, slope, bend};
    }

  private:
    static constexpr int degree = 12;  // of the series, before the powers above 7 are replaced
    using Series = std::array<double, degree + 1>;

    template <bool with_derivatives>
    TailLanes at(double size) const {
        const double u = 1.0 + size;
        const double middle = std::bit_cast<double>((std::bit_cast<std::uint64_t>(u) & cell_bits) | half_cell_bit);
        const Cell& cell = cells_[cell_of(u)];
        return both_tails<with_derivatives>(cell, cell, numerics::both(u - middle));
    }

    static Cell cell(const StudentShape& shape, int k) {
        const double width = std::ldexp(1.0, k / 16 - 4), half = 0.5 * width;
        const double centre = std::ldexp(1.0, k / 16) + (k % 16) * width + half - 1.0;
        Series series = around(shape, centre);
        double power = 1.0;
        for (double& each : series) {
            each *= power;
            power *= half;
        }
        lower_degree(series);
        Cell out;
        power = 1.0;
        for (std::size_t n = 0; n < out.c.size(); ++n) {
            out.c[n] = series[n] / power;
            power *= half;
        }
        return out;
    }

    // The Taylor series of the tail: that of the density, integrated.
    static Series around(const StudentShape& shape, double z) {
        const Tails tails = shape.at(z);
        const double a = shape.inverse_freedom(), front = 1.0 + a * z * z;
        Series out{};
        out[0] = tails.above;
        static const Series inverse = reciprocals();
        const double inverse_front = -1.0 / front, square = a * z;
        double before = 0.0, term = tails.density;  // of the density's series
        for (int n = 0; n < degree; ++n) {
            const double share = inverse[static_cast<std::size_t>(n)];
            out[static_cast<std::size_t>(n) + 1] = -term * share;
            const double next =
                ((z + square + 2.0 * square * n) * term + (1.0 + a * n) * before) * (inverse_front * share);
            before = term;
            term = next;
        }
        return out;
    }

    // 1 / (n + 1).
    static Series reciprocals() {
        Series out;
        for (std::size_t n = 0; n < out.size(); ++n) out[n] = 1.0 / static_cast<double>(n + 1);
        return out;
    }

    // Removes the powers of x above 7, from the highest on, by multiples of Chebyshev's polynomials, which stay within
    // -1 .. 1 as x does.
    static void lower_degree(Series& series) {
        static const std::array<Series, degree + 1> chebyshev = polynomials();
        for (std::size_t n = degree; n > 7; --n)
            for (std::size_t j = n % 2; j < n; j += 2) series[j] -= series[n] * chebyshev[n][j];
    }
    // Chebyshev's polynomials, scaled so that their highest coefficient is 1.
    static std::array<Series, degree + 1> polynomials() {
        std::array<Series, degree + 1> out{};
        out[0][0] = out[1][1] = 1.0;
        for (std::size_t n = 2; n <= degree; ++n)
            for (std::size_t j = 0; j <= n; ++j) out[n][j] = (j > 0 ? 2.0 * out[n - 1][j - 1] : 0.0) - out[n - 2][j];
        for (std::size_t n = 0; n <= degree; ++n) {
            const double highest = out[n][n];
            for (double& each : out[n]) each /= highest;
        }
        return out;
    }

    std::vector<Cell> cells_;
};

}  // namespace everytree::distributions
