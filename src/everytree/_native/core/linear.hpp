// Linear regression in a leaf: y ~ N(x . coefficients, 1 / tau), coefficients given tau ~ N(mean, (tau
// precision)^-1), tau ~ Gamma(shape, rate = scale), x the row's own inputs.
//
// Statistics: weight, then as pairs y y, the vector x y, and the lower triangle of x x'.
// With A = precision + sum x x' = U D U', U of unit diagonal, and t = U^-1 (precision mean + sum x y):
//   scale' = scale + (mean' precision mean + sum y y - t' D^-1 t) / 2,  shape' = shape + weight / 2,
//   evidence = (2 pi)^(-weight/2) sqrt(|precision| / |A|) scale^shape / scale'^shape' Gamma(shape') /
//   Gamma(shape).
// All of it in DoubleDouble: the bracket is a small difference of large numbers. Where there are fewer rows than
// inputs, some of D is as small as the prior's, however large A is: then in QuadDouble.
#pragma once
#include <cmath>
#include <type_traits>
#include <vector>

#include "core/families.hpp"
#include "numerics/quad_double.hpp"

namespace everytree {

struct LinearRegression {
    static constexpr bool is_discrete = false;
    int n_inputs, n_triangle, n_extra;
    Layout layout;
    int n_hyper, n_prior, n_parameters;

    explicit LinearRegression(int inputs)
        : n_inputs(inputs),
          n_triangle(inputs * (inputs + 1) / 2),
          n_extra(inputs),
          layout{1, 1 + inputs + n_triangle, 1},
          n_hyper(inputs + n_triangle + 2),
          n_prior(n_triangle + 2 * (inputs + 1) + 3 + inputs),
          n_parameters(2 * (n_triangle + inputs) + 2) {}

    bool supports(const Row& row) const {
        bool inputs_moderate = true;
        for (int i = 0; i < n_inputs; ++i) inputs_moderate &= is_moderate(row.extra[i]);
        return is_moderate(row.y) && inputs_moderate;
    }
    Complaint complain(const Row& row) const {
        const char* must = "a finite number, at most 1e60 in size";
        if (!is_moderate(row.y)) return {"y", row.y, must};
        int i = 0;
        while (is_moderate(row.extra[i])) ++i;
        return {"inputs", row.extra[i], must, i};
    }
    void add(double* stat, const Row& row) const {
        const double* x = row.extra;
        stat[0] += row.weight;
        double* slot = stat + 1;
        const DoubleDouble weighted_y = numerics::exact_product(row.weight, row.y);
        numerics::add_to_pair(slot, weighted_y * row.y);
        for (int i = 0; i < n_inputs; ++i) numerics::add_to_pair(slot += 2, weighted_y * x[i]);
        for (int i = 0; i < n_inputs; ++i) {
            const DoubleDouble weighted_x = numerics::exact_product(row.weight, x[i]);
            for (int j = 0; j <= i; ++j) numerics::add_to_pair(slot += 2, weighted_x * x[j]);
        }
    }

    // hyper: mean (n_inputs), lower triangle of precision, shape, scale.
    // prior: triangle of precision; pairs mean' precision mean and precision mean; shape, scale,
    // log|precision|, log Gamma(shape); the prior's own pivots.
    void prepare(const double* hyper, double* prior) const {
        const double *mean = hyper, *precision = hyper + n_inputs, *rest = precision + n_triangle;
        for (int i = 0; i < n_triangle; ++i) prior[i] = precision[i];
        DoubleDouble square;
        for (int i = 0; i < n_inputs; ++i) {
            DoubleDouble product;
            for (int j = 0; j < n_inputs; ++j)
                product = product + numerics::exact_product(precision[place(i, j)], mean[j]);
            numerics::store_pair(prior + n_triangle + 2 * (i + 1), product);
            square = square + product * mean[i];
        }
        numerics::store_pair(prior + n_triangle, square);
        double* tail = prior + n_triangle + 2 * (n_inputs + 1);
        tail[0] = rest[0];
        tail[1] = rest[1];
        const Solution alone = solve(nullptr, prior);
        tail[2] = alone.log_determinant;
        for (int i = 0; i < n_inputs; ++i) tail[3 + i] = alone.pivots[i].high;
    }

    // parameters: as pairs the lower triangle of L^-1 with L = U sqrt(D), and z = L^-1 U t; then shape', scale'. With
    // u = L^-1 x the predictive at x is a Student t with 2 shape' degrees of freedom, location u . z and squared scale
    // (scale' / shape') (1 + u . u).
    void posterior(const double* stat, const double* prior, double* parameters) const {
        const Solution solution = solve(stat, prior);
        std::vector<DoubleDouble> inverse(n_triangle);  // of U
        double* z = parameters + 2 * n_triangle;
        for (int i = 0; i < n_inputs; ++i, z += 2) {
            const DoubleDouble root = numerics::square_root(solution.pivots[i]);
            for (int j = 0; j <= i; ++j) {
                DoubleDouble value(i == j ? 1.0 : 0.0);
                for (int k = j; k < i; ++k) value = value - solution.lower[place(i, k)] * inverse[place(k, j)];
                inverse[place(i, j)] = value;
                numerics::store_pair(parameters + 2 * place(i, j), value / root);
            }
            numerics::store_pair(z, solution.t[i] / root);
        }
        const double* tail = prior + n_triangle + 2 * (n_inputs + 1);
        z[0] = tail[0] + 0.5 * stat[0];
        z[1] = tail[1] + 0.5 * solution.residual;
    }
    // The location u . z as a pair, and u . u. Both are sums of large numbers that cancel if inputs or targets are far
    // from zero.
    void predict(const double* parameters, const double* x, double* location, double* spread) const {
        const double *inverse = parameters, *z = parameters + 2 * n_triangle;
        DoubleDouble dot;
        double square = 0.0;
        for (int i = 0; i < n_inputs; ++i, z += 2) {
            DoubleDouble u;
            for (int j = 0; j <= i; ++j, inverse += 2) u = u + numerics::load_pair(inverse) * x[j];
            dot = dot + u * numerics::load_pair(z);
            square += u.high * u.high;
        }
        numerics::store_pair(location, dot);
        *spread = square;
    }

    double log_evidence(const double* stat, const double* prior) const {
        const double weight = stat[0];
        if (weight == 0.0) return 0.0;
        const Solution solution = solve(stat, prior);
        const double* tail = prior + n_triangle + 2 * (n_inputs + 1);
        return numerics::log_gamma_ratio(tail[0], tail[1], 0.5 * weight, 0.5 * solution.residual) -
               0.5 * weight * numerics::log_two_pi - 0.5 * (solution.log_determinant - tail[2]);
    }

  private:
    struct Solution {
        std::vector<DoubleDouble> lower, pivots, t;  // U, D and t
        double residual, log_determinant;
    };

    static int place(int i, int j) { return i >= j ? i * (i + 1) / 2 + j : j * (j + 1) / 2 + i; }

    // Without statistics, the solution of the prior alone.
    Solution solve(const double* stat, const double* prior) const {
        Solution out{std::vector<DoubleDouble>(n_triangle), std::vector<DoubleDouble>(n_inputs),
                     std::vector<DoubleDouble>(n_inputs), 0.0, 0.0};
        if (!factorise<DoubleDouble>(stat, prior, out)) factorise<numerics::QuadDouble>(stat, prior, out);
        return out;
    }

    static DoubleDouble as_pair(const DoubleDouble& value) { return value; }
    static DoubleDouble as_pair(const numerics::QuadDouble& value) { return value.pair(); }

    // False if a pivot is so small a difference that numbers of this type have lost too many of its digits.
    template <class Number>
    bool factorise(const double* stat, const double* prior, Solution& out) const {
        constexpr bool is_last_resort = std::is_same_v<Number, numerics::QuadDouble>;
        const auto seen = [stat](int pair) { return stat ? numerics::load_pair(stat + 1 + 2 * pair) : DoubleDouble(); };
        const double *given = prior + n_triangle, *least = given + 2 * (n_inputs + 1) + 3;
        std::vector<Number> scaled(n_triangle), lower(n_triangle), pivots(n_inputs), t(n_inputs);  // scaled: U D
        // The sum of prior and statistics, in all digits of these numbers.
        const auto sum = [](DoubleDouble prior_part, DoubleDouble seen_part) {
            return Number(seen_part) - Number(-prior_part);
        };
        Number residual = sum(numerics::load_pair(given), seen(0));
        out.log_determinant = 0.0;
        for (int i = 0; i < n_inputs; ++i) {
            for (int j = 0; j <= i; ++j) {
                Number value = sum(prior[place(i, j)], seen(1 + n_inputs + place(i, j)));
                const double entry = as_pair(value).high;
                for (int k = 0; k < j; ++k) value = value - scaled[place(i, k)] * lower[place(j, k)];
                if (i != j) {
                    scaled[place(i, j)] = value;
                    lower[place(i, j)] = value / pivots[j];
                    out.lower[place(i, j)] = as_pair(lower[place(i, j)]);
                    continue;
                }
                if (!is_last_resort && as_pair(value).high < 1e-18 * entry) return false;
                // Rows only add to a pivot; the floor keeps that true although the statistics themselves are rounded.
                if (stat && as_pair(value).high < least[i]) value = Number(DoubleDouble(least[i]));
                pivots[i] = value;
            }
            Number value = sum(numerics::load_pair(given + 2 * (i + 1)), seen(1 + i));
            for (int k = 0; k < i; ++k) value = value - lower[place(i, k)] * t[k];
            t[i] = value;
            residual = residual - value * (value / pivots[i]);
            out.pivots[i] = as_pair(pivots[i]);
            out.t[i] = as_pair(value);
            out.log_determinant += std::log(out.pivots[i].high);
        }
        out.residual = std::fmax(as_pair(residual).high, 0.0);
        return true;
    }
};

}  // namespace everytree
