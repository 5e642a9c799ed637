// Linear regression in a leaf: y ~ N(x . coefficients, 1 / tau), coefficients given tau ~ N(mean, (tau
// precision)^-1), tau ~ Gamma(shape, rate = scale), x the row's own inputs.
//
// Statistics: weight, then as pairs y y, the vector x y, and the lower triangle of x x'.
// With A = precision + sum x x' = L L' and z = L^-1 (precision mean + sum x y):
//   scale' = scale + (mean' precision mean + sum y y - z' z) / 2,  shape' = shape + weight / 2,
//   evidence = (2 pi)^(-weight/2) sqrt(|precision| / |A|) scale^shape / scale'^shape' Gamma(shape') /
//   Gamma(shape).
// All of it in DoubleDouble: the bracket is a small difference of large numbers.
#pragma once
#include <cmath>
#include <vector>

#include "families.hpp"

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
        const DoubleDouble weighted_y = exact_product(row.weight, row.y);
        add_to_pair(slot, weighted_y * row.y);
        for (int i = 0; i < n_inputs; ++i) add_to_pair(slot += 2, weighted_y * x[i]);
        for (int i = 0; i < n_inputs; ++i) {
            const DoubleDouble weighted_x = exact_product(row.weight, x[i]);
            for (int j = 0; j <= i; ++j) add_to_pair(slot += 2, weighted_x * x[j]);
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
            for (int j = 0; j < n_inputs; ++j) product = product + exact_product(precision[place(i, j)], mean[j]);
            store_pair(prior + n_triangle + 2 * (i + 1), product);
            square = square + product * mean[i];
        }
        store_pair(prior + n_triangle, square);
        double* tail = prior + n_triangle + 2 * (n_inputs + 1);
        tail[0] = rest[0];
        tail[1] = rest[1];
        const Solution alone = solve(nullptr, prior);
        tail[2] = alone.log_determinant;
        for (int i = 0; i < n_inputs; ++i) {
            const double root = alone.lower[place(i, i)].value();
            tail[3 + i] = root * root;
        }
    }

    // parameters: as pairs the lower triangle of L^-1 and z, then shape', scale'. With u = L^-1 x the predictive at x
    // is a Student t with 2 shape' degrees of freedom, location u . z and squared scale (scale' / shape') (1 + u . u).
    void posterior(const double* stat, const double* prior, double* parameters) const {
        const Solution solution = solve(stat, prior);
        const auto& lower = solution.lower;
        std::vector<DoubleDouble> inverse(n_triangle);
        for (int j = 0; j < n_inputs; ++j) {
            for (int i = j; i < n_inputs; ++i) {
                DoubleDouble value(i == j ? 1.0 : 0.0);
                for (int k = j; k < i; ++k) value = value - lower[place(i, k)] * inverse[place(k, j)];
                inverse[place(i, j)] = value / lower[place(i, i)];
                store_pair(parameters + 2 * place(i, j), inverse[place(i, j)]);
            }
        }
        double* rest = parameters + 2 * n_triangle;
        for (int i = 0; i < n_inputs; ++i, rest += 2) store_pair(rest, solution.z[i]);
        const double* tail = prior + n_triangle + 2 * (n_inputs + 1);
        rest[0] = tail[0] + 0.5 * stat[0];
        rest[1] = tail[1] + 0.5 * solution.residual;
    }
    // The location u . z as a pair, and u . u. Both sums are of large numbers that cancel where inputs or targets are
    // far from zero.
    void predict(const double* parameters, const double* x, double* location, double* spread) const {
        const double *inverse = parameters, *z = parameters + 2 * n_triangle;
        DoubleDouble dot;
        double square = 0.0;
        for (int i = 0; i < n_inputs; ++i, z += 2) {
            DoubleDouble u;
            for (int j = 0; j <= i; ++j, inverse += 2) u = u + load_pair(inverse) * x[j];
            dot = dot + u * load_pair(z);
            square += u.high * u.high;
        }
        store_pair(location, dot);
        *spread = square;
    }

    double log_evidence(const double* stat, const double* prior) const {
        const double weight = stat[0];
        if (weight == 0.0) return 0.0;
        const Solution solution = solve(stat, prior);
        const double* tail = prior + n_triangle + 2 * (n_inputs + 1);
        return log_gamma_ratio(tail[0], tail[1], 0.5 * weight, 0.5 * solution.residual) - 0.5 * weight * log_two_pi -
               0.5 * (solution.log_determinant - tail[2]);
    }

  private:
    struct Solution {
        std::vector<DoubleDouble> lower, z;
        double residual, log_determinant;
    };

    static int place(int i, int j) { return i >= j ? i * (i + 1) / 2 + j : j * (j + 1) / 2 + i; }

    // Cholesky factor of A, z and the residual; without statistics, those of the prior alone.
    Solution solve(const double* stat, const double* prior) const {
        Solution out{std::vector<DoubleDouble>(n_triangle), std::vector<DoubleDouble>(n_inputs), 0.0, 0.0};
        const auto seen = [stat](int pair) { return stat ? load_pair(stat + 1 + 2 * pair) : DoubleDouble(); };
        const double *given = prior + n_triangle, *pivots = given + 2 * (n_inputs + 1) + 3;
        DoubleDouble residual = load_pair(given) + seen(0);
        for (int i = 0; i < n_inputs; ++i) {
            for (int j = 0; j <= i; ++j) {
                DoubleDouble value = seen(1 + n_inputs + place(i, j)) + prior[place(i, j)];
                for (int k = 0; k < j; ++k) value = value - out.lower[place(i, k)] * out.lower[place(j, k)];
                // Rows only ever add to a pivot; the floor keeps that true where 32 digits are not enough.
                if (i == j && stat && value.high < pivots[i]) value = DoubleDouble(pivots[i]);
                out.lower[place(i, j)] = i == j ? square_root(value) : value / out.lower[place(j, j)];
            }
            DoubleDouble value = load_pair(given + 2 * (i + 1)) + seen(1 + i);
            for (int k = 0; k < i; ++k) value = value - out.lower[place(i, k)] * out.z[k];
            out.z[i] = value / out.lower[place(i, i)];
            residual = residual - out.z[i] * out.z[i];
            out.log_determinant += 2.0 * std::log(out.lower[place(i, i)].high);
        }
        out.residual = std::fmax(residual.value(), 0.0);
        return out;
    }
};

}  // namespace everytree
