// Families with a shape that is one of a few: a finite mixture of conjugate families is conjugate.
//
// Each shape has a prior probability and a conjugate family of its own. Statistics are those that all shapes share,
// and those of each shape; the evidence is the average of the evidences, and the posterior a mixture whose weights are
// proportional to prior probability times evidence.
//
// One shape's family is a small value with these members:
//   n_shared, n_each, n_rest   statistics: shared ones of weights, those of each shape, other shared ones
//   are_weights                whether those of each shape are sums of nonnegative numbers
//   supports, complain         as in core/families.hpp, given all shapes
//   share, add_each, add_rest  what a row adds to each of the three
//   prior(mean, strength, shape, out)     the two parameters of its conjugate prior
//   log_evidence(shape, stat, prior)      stat: a Shares, below
//   posterior(shape, stat, prior, out)    the two parameters given the rows
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/families.hpp"
#include "numerics/special.hpp"

namespace everytree {

// Statistics of a node as one shape sees them.
struct Shares {
    const double *shared, *own, *rest;
};

template <class One>
struct OfShapes {
    static constexpr int n_extra = One::n_extra;
    One one;
    std::vector<double> shapes;
    Layout layout;
    int n_hyper, n_prior, n_parameters;

    // `listed` are the shapes as text; none where only sizes of arrays are asked for.
    OfShapes(int size, const std::string& listed)
        : layout{One::n_shared + size * One::n_each + One::n_rest, 0,
                 One::n_shared + (One::are_weights ? size * One::n_each : 0)},
          n_hyper(2 + 2 * size),
          n_prior(4 * size),
          n_parameters(3 * size) {
        const char* at = listed.c_str();
        for (char* end = nullptr; static_cast<int>(shapes.size()) < size; at = end) {
            shapes.push_back(std::strtod(at, &end));
            if (end == at) break;
        }
        if (listed.empty()) shapes.assign(static_cast<std::size_t>(std::max(size, 1)), 1.0);
        if (size < 1 || static_cast<int>(shapes.size()) != size || *at) throw std::invalid_argument("not these shapes");
        if constexpr (requires { one.tabulate(shapes); }) one.tabulate(shapes);
    }

    bool supports(const Row& row) const { return one.supports(row); }
    Complaint complain(const Row& row) const { return one.complain(row); }
    void add(double* stat, const Row& row) const {
        one.share(stat, row);
        for (std::size_t k = 0; One::n_each > 0 && k < shapes.size(); ++k)
            stat[One::n_shared + k] += row.weight * one.each(k, shapes[k], row);
        if constexpr (One::n_rest > 0) one.add_rest(stat + layout.size() - One::n_rest, row);
    }
    // hyper: mean, strength, the shapes again, by which families are compared, and the prior probability of each.
    // Of each shape: the log of its prior probability, and the parameters of its prior with what depends on them alone.
    void prepare(const double* hyper, double* prior) const {
        const std::size_t n = shapes.size();
        double total = 0.0;
        for (std::size_t k = 0; k < n; ++k) total += hyper[2 + n + k];
        for (std::size_t k = 0; k < n; ++k, prior += 4) {
            prior[0] = std::log(hyper[2 + n + k] / total);
            prior[3] = 0.0;
            one.prior(hyper[0], hyper[1], shapes[k], prior + 1);
        }
    }
    // parameters: of each shape the log of its probability and its two parameters.
    void posterior(const double* stat, const double* prior, double* parameters) const {
        const double total = weigh(stat, prior);
        for (std::size_t k = 0; k < shapes.size(); ++k, parameters += 3) {
            parameters[0] = scratch()[k] - total;
            one.posterior(shapes[k], of(stat, k), prior + 4 * k + 1, parameters + 1);
        }
    }
    double log_evidence(const double* stat, const double* prior) const {
        if (std::all_of(stat, stat + layout.n_weights, [](double value) { return value == 0.0; })) return 0.0;
        return weigh(stat, prior);
    }

  private:
    static std::vector<double>& scratch() {
        thread_local std::vector<double> logs;
        return logs;
    }
    Shares of(const double* stat, std::size_t k) const {
        return {stat, stat + One::n_shared + (One::n_each ? k : 0), stat + layout.size() - One::n_rest};
    }
    // The log of the sum over shapes of prior probability times evidence; the terms stay in `scratch`.
    double weigh(const double* stat, const double* prior) const {
        std::vector<double>& logs = scratch();
        logs.resize(shapes.size());
        for (std::size_t k = 0; k < shapes.size(); ++k, prior += 4)
            logs[k] = prior[0] + one.log_evidence(shapes[k], of(stat, k), prior + 1);
        const double top = *std::max_element(logs.begin(), logs.end());
        double sum = 0.0;
        for (const double value : logs) sum += std::exp(value - top);
        return top + std::log(sum);
    }
};

// y ~ Gamma(shape, lambda), lambda ~ Gamma(a, b). Statistics: weight, sum of y, sum of log y: the same for every shape.
struct GammaOfShape {
    static constexpr int n_extra = 0, n_shared = 2, n_each = 0, n_rest = 1;
    static constexpr bool are_weights = false;

    bool supports(const Row& row) const { return (row.y > 0.0) & (row.y <= largest_magnitude); }
    Complaint complain(const Row& row) const { return {"y", row.y, "positive and at most 1e60"}; }
    void share(double* stat, const Row& row) const {
        stat[0] += row.weight;
        stat[1] += row.weight * row.y;
    }
    double each(std::size_t, double, const Row&) const { return 0.0; }
    void add_rest(double* stat, const Row& row) const { stat[0] += row.weight * std::log(row.y); }
    // Two events more than `strength` rows have: the variance of a new row is finite.
    void prior(double mean, double strength, double shape, double* out) const {
        out[0] = 2.0 + shape * strength;
        out[1] = mean * (1.0 + shape * strength) / shape;
    }
    void posterior(double shape, Shares stat, const double* prior, double* out) const {
        out[0] = prior[0] + shape * stat.shared[0];
        out[1] = prior[1] + stat.shared[1];
    }
    double log_evidence(double shape, Shares stat, const double* prior) const {
        const double weight = stat.shared[0];
        const double rest = (shape - 1.0) * stat.rest[0] - weight * numerics::log_gamma(shape);
        return numerics::log_gamma_ratio(prior[0], prior[1], DoubleDouble(shape * weight), DoubleDouble(stat.shared[1]),
                                         DoubleDouble(rest));
    }
};

// y^shape ~ Exponential(lambda), lambda ~ Gamma(a, b); where censored, the time is only known to exceed y. Statistics:
// weight of the rows that are not censored, the sum of y^shape for each shape, and the sum of log y of those rows.
struct WeibullOfShape {
    static constexpr int n_extra = 1, n_shared = 1, n_each = 1, n_rest = 1;
    static constexpr bool are_weights = true;

    // The largest shape is at most 16: powers stay finite.
    bool supports(const Row& row) const {
        return (row.y >= 1e-15) & (row.y <= 1e15) & ((row.extra[0] == 0.0) | (row.extra[0] == 1.0));
    }
    Complaint complain(const Row& row) const {
        if (!(row.y >= 1e-15 && row.y <= 1e15)) return {"y", row.y, "from 1e-15 to 1e15; use another unit"};
        return {"censored", row.extra[0], "0 (event seen) or 1 (right-censored)"};
    }
    void share(double* stat, const Row& row) const { stat[0] += row.weight * (1.0 - row.extra[0]); }
    double each(std::size_t, double shape, const Row& row) const { return std::pow(row.y, shape); }
    void add_rest(double* stat, const Row& row) const {
        stat[0] += row.weight * (1.0 - row.extra[0]) * std::log(row.y);
    }
    // As many events more as make the variance of a new row finite; the mean of a new row is that given.
    void prior(double mean, double strength, double shape, double* out) const {
        out[0] = strength + 2.0 / shape;
        const double of_unit =
            numerics::log_gamma(1.0 + 1.0 / shape) - numerics::log_rising(strength + 1.0 / shape, 1.0 / shape);
        out[1] = std::exp(shape * (std::log(mean) - of_unit));
    }
    void posterior(double, Shares stat, const double* prior, double* out) const {
        out[0] = prior[0] + stat.shared[0];
        out[1] = prior[1] + stat.own[0];
    }
    double log_evidence(double shape, Shares stat, const double* prior) const {
        const double rest = stat.shared[0] * std::log(shape) + (shape - 1.0) * stat.rest[0];
        return numerics::log_gamma_ratio(prior[0], prior[1], DoubleDouble(stat.shared[0]), DoubleDouble(stat.own[0]),
                                         DoubleDouble(rest));
    }
};

// y ~ NegativeBinomial(shape * exposure, p), p ~ Beta(a, b): the variance is the mean over p. Statistics: sum of
// exposure, sum of y, and for each shape the sum of the logarithms of the factors without p.
struct NegativeBinomialOfShape {
    static constexpr int n_extra = 1, n_shared = 2, n_each = 1, n_rest = 0;
    static constexpr bool are_weights = false;

    bool supports(const Row& row) const {
        return is_count(row.y) & (row.extra[0] > 0.0) & (row.extra[0] <= largest_magnitude);
    }
    Complaint complain(const Row& row) const {
        if (!is_count(row.y)) return {"y", row.y, "a whole number from 0 on"};
        return {"exposure", row.extra[0], "positive and at most 1e60"};
    }
    void share(double* stat, const Row& row) const {
        stat[0] += row.weight * row.extra[0];
        stat[1] += row.weight * row.y;
    }
    double each(std::size_t k, double shape, const Row& row) const {
        if (row.extra[0] == 1.0 && row.y < n_tabulated)
            return table_[k * n_tabulated + static_cast<std::size_t>(row.y)];
        return log_ways(shape * row.extra[0], row.y);
    }
    void tabulate(const std::vector<double>& shapes) {
        for (const double shape : shapes)
            for (std::size_t y = 0; y < n_tabulated; ++y) table_.push_back(log_ways(shape, static_cast<double>(y)));
    }
    void prior(double mean, double strength, double shape, double* out) const {
        out[0] = 2.0 + shape * strength;
        out[1] = mean * (1.0 + shape * strength) / shape;
        out[2] = numerics::log_beta(out, 2);
    }
    void posterior(double shape, Shares stat, const double* prior, double* out) const {
        out[0] = prior[0] + shape * stat.shared[0];
        out[1] = prior[1] + stat.shared[1];
    }
    double log_evidence(double shape, Shares stat, const double* prior) const {
        const double more[2] = {shape * stat.shared[0], stat.shared[1]};
        double scratch[2];
        return numerics::log_beta_ratio(prior, more, 2, prior[2], scratch) + stat.own[0];
    }

  private:
    static constexpr std::size_t n_tabulated = 64;
    std::vector<double> table_;

    // log of Gamma(r + y) / (Gamma(r) y!)
    static double log_ways(double r, double y) {
        return y == 0.0 ? 0.0 : numerics::log_rising(r, y) - numerics::log_gamma(y + 1.0);
    }
};

using Gamma = OfShapes<GammaOfShape>;
using Weibull = OfShapes<WeibullOfShape>;
using NegativeBinomial = OfShapes<NegativeBinomialOfShape>;

}  // namespace everytree
