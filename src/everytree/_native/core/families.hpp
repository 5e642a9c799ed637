// The leaf models: how a row becomes statistics, and how statistics become evidence and posterior parameters.
//
// A family is a small value with these members; the kernels are templates over it and use nothing else.
//   layout            how a node's statistics lie in memory (below)
//   n_extra           columns of a row beside y: exposure, censored, inputs
//   n_hyper           prior hyperparameters as the user gives them; prepare() turns them into n_prior numbers, with
//                     everything that does not depend on data computed once
//   n_parameters      numbers that posterior() writes: all that the predictive distribution needs
//   supports(row)     whether the row is possible; complain(row) says what is wrong if it is not
//   add(stat, row)    statistics += weight * the row's contribution
//   log_evidence      log of the integral of p(rows | theta) p(theta) over theta
//   tabulate(prior)   optional: called once when all nodes have this prior, to prepare shortcuts
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "numerics/double_double.hpp"
#include "numerics/special.hpp"

namespace everytree {

using numerics::DoubleDouble;

struct Row {
    double y;
    double weight;
    const double* extra;
};

struct Complaint {
    const char* argument;
    double value;
    std::string must;
    int column = -1;  // if the argument has several
};

// Statistics of one node: first sums that are plain doubles, then sums that are DoubleDouble pairs. The first n_weights
// sums, of either type, are of nonnegative numbers.
struct Layout {
    int n_plain;
    int n_pairs;
    int n_weights;
    int size() const { return n_plain + 2 * n_pairs; }

    void add(double* into, const double* from) const {
        for (int i = 0; i < n_plain; ++i) into[i] += from[i];
        for (int i = n_plain; i < size(); i += 2) numerics::add_to_pair(into + i, numerics::load_pair(from + i));
    }
    // False if more would be subtracted than there is.
    bool subtract(double* into, const double* from) const {
        bool was_there = true;
        for (int i = 0; i < n_plain; ++i) {
            const double left = into[i] - from[i];
            if (i < n_weights) was_there &= left >= -1e-9 * into[i];
            into[i] = i < n_weights ? std::fmax(left, 0.0) : left;
        }
        for (int k = 0; k < n_pairs; ++k) {
            double* slot = into + n_plain + 2 * k;
            DoubleDouble left = numerics::load_pair(slot) - numerics::load_pair(from + n_plain + 2 * k);
            if (n_plain + k < n_weights) {
                was_there &= left.high >= -1e-9 * slot[0];
                if (left.high < 0.0) left = {};
            }
            numerics::store_pair(slot, left);
        }
        return was_there;
    }
    void clear(double* stat) const {
        for (int i = 0; i < size(); ++i) stat[i] = 0.0;
    }
    void scale(double* stat, double factor) const {
        for (int i = 0; i < n_plain; ++i) stat[i] *= factor;
        for (int i = n_plain; i < size(); i += 2)
            numerics::store_pair(stat + i, numerics::load_pair(stat + i) * factor);
    }
};

// Targets, inputs and weights beyond this are refused, so that the square of weight times target, summed over any
// number of rows, stays finite.
inline constexpr double largest_magnitude = 1e60;

// Plain & instead of &&: no branches, so that the compiler can check several rows at once. All false for NaN.
inline bool is_count(double y) { return (y >= 0.0) & (y <= 9007199254740992.0) & (y == std::floor(y)); }
inline bool is_moderate(double y) { return std::fabs(y) <= largest_magnitude; }

// p(y = c) = theta_c, theta ~ Dirichlet(alpha). Statistics: the weight of each class. Bernoulli is n_classes
// = 2. Evidence: B(alpha + n) / B(alpha), B the multivariate beta function.
struct Categorical {
    static constexpr bool is_discrete = true;  // whether likelihoods are probabilities, at most 1
    static constexpr int n_extra = 0;
    int n_classes;
    Layout layout;
    int n_hyper, n_prior, n_parameters;

    explicit Categorical(int classes)
        : n_classes(classes),
          layout{classes, 0, classes},
          n_hyper(classes),
          n_prior(classes + 1),
          n_parameters(classes) {}

    bool supports(const Row& row) const { return (row.y >= 0.0) & (row.y < n_classes) & (row.y == std::floor(row.y)); }
    Complaint complain(const Row& row) const {
        const std::string last = std::to_string(n_classes - 1);
        return {"y", row.y, n_classes == 2 ? "0 or 1" : "a whole class number from 0 to " + last};
    }
    void add(double* stat, const Row& row) const { stat[static_cast<int>(row.y)] += row.weight; }

    void prepare(const double* alpha, double* prior) const {
        std::copy(alpha, alpha + n_classes, prior);
        prior[n_classes] = numerics::log_beta(alpha, n_classes);
    }
    void posterior(const double* stat, const double* prior, double* alpha) const {
        for (int c = 0; c < n_classes; ++c) alpha[c] = prior[c] + stat[c];
    }
    // The predictions that are averaged: the probability of each class.
    int n_expected() const { return n_classes; }
    void expected(const double* alpha, double* probabilities) const {
        double total = 0.0;
        for (int c = 0; c < n_classes; ++c) total += alpha[c];
        for (int c = 0; c < n_classes; ++c) probabilities[c] = alpha[c] / total;
    }
    double log_evidence(const double* stat, const double* prior) const {
        double total = 0.0, log_ratio = 0.0;
        bool tabulated = true;
        for (int c = 0; c < n_classes && tabulated; ++c) {
            total += stat[c];
            tabulated = look_up(c, stat[c], log_ratio, 1.0);
        }
        if (tabulated && look_up(n_classes, total, log_ratio, -1.0)) return log_ratio;
        thread_local std::vector<double> scratch;
        scratch.resize(static_cast<std::size_t>(n_classes));
        return numerics::log_beta_ratio(prior, stat, n_classes, prior[n_classes], scratch.data());
    }

    // Most nodes of a tree hold few rows, and most rows have weight 1: the same few rising factorials occur repeatedly.
    void tabulate(const double* prior) { tabulate(prior, std::min(256, 1024 / (n_classes + 1))); }
    void tabulate(const double* prior, std::int64_t n_counts) {
        table_size_ = static_cast<int>(std::min<std::int64_t>(n_counts, 1 << 20));
        table_.clear();
        double total = 0.0;
        for (int c = 0; c <= n_classes; ++c) {
            const double alpha = c < n_classes ? prior[c] : total;
            total += alpha;
            for (int k = 0; k < table_size_; ++k) table_.push_back(k == 0 ? 0.0 : numerics::log_rising(alpha, k));
        }
    }

    // log of Gamma(alpha_c + count) / Gamma(alpha_c) for count = 0, 1, ...; of the sum of alphas for c = n_classes.
    const double* tabulated(int c) const { return table_.data() + static_cast<std::size_t>(c) * table_size_; }
    int n_tabulated() const { return table_size_; }

  private:
    bool look_up(int c, double count, double& sum, double sign) const {
        if (!(count < table_size_)) return false;
        const int whole = static_cast<int>(count);
        if (whole != count) return false;
        sum += sign * table_[static_cast<std::size_t>(c * table_size_ + whole)];
        return true;
    }
    int table_size_ = 0;
    std::vector<double> table_;
};

// p(y) = theta (1 - theta)^y for y = 0, 1, 2, ...; theta ~ Beta(alpha, beta). Statistics: weight, sum of y.
// Evidence: B(alpha + weight, beta + sum) / B(alpha, beta).
struct Geometric {
    static constexpr bool is_discrete = true;  // whether likelihoods are probabilities, at most 1
    static constexpr int n_extra = 0, n_hyper = 2, n_prior = 3, n_parameters = 2;
    Layout layout{2, 0, 2};

    bool supports(const Row& row) const { return is_count(row.y); }
    Complaint complain(const Row& row) const { return {"y", row.y, "a whole number from 0 on"}; }
    void add(double* stat, const Row& row) const {
        stat[0] += row.weight;
        stat[1] += row.weight * row.y;
    }
    void prepare(const double* hyper, double* prior) const {
        std::copy(hyper, hyper + 2, prior);
        prior[2] = numerics::log_beta(hyper, 2);
    }
    void posterior(const double* stat, const double* prior, double* parameters) const {
        parameters[0] = prior[0] + stat[0];
        parameters[1] = prior[1] + stat[1];
    }
    double log_evidence(const double* stat, const double* prior) const {
        double scratch[2];
        return numerics::log_beta_ratio(prior, stat, 2, prior[2], scratch);
    }
};

// Common part of Poisson and Exponential: a rate lambda ~ Gamma(shape, rate), events that happen at that rate,
// and the total time in which they can happen. Evidence: Gamma(shape + events) / Gamma(shape)
// * rate^shape / (rate + time)^(shape + events).
struct RatePrior {
    static constexpr int n_hyper = 2, n_prior = 2, n_parameters = 2;

    void prepare(const double* hyper, double* prior) const { std::copy(hyper, hyper + 2, prior); }
    void posterior(const double* stat, const double* prior, double* parameters) const {
        parameters[0] = prior[0] + stat[0];
        parameters[1] = prior[1] + stat[1];
    }
};

// y ~ Poisson(lambda * exposure). Statistics, all three as pairs: sum of y, sum of exposure, and the part of the
// likelihood without lambda, sum of y log(exposure) - log(y!), which cancels against the rest where counts are large.
struct Poisson : RatePrior {
    static constexpr bool is_discrete = true;  // whether likelihoods are probabilities, at most 1
    static constexpr int n_extra = 1;
    Layout layout{0, 3, 2};

    bool supports(const Row& row) const {
        return is_count(row.y) & (row.extra[0] > 0.0) & (row.extra[0] <= largest_magnitude);
    }
    Complaint complain(const Row& row) const {
        if (!is_count(row.y)) return {"y", row.y, "a whole number from 0 on"};
        return {"exposure", row.extra[0], "positive and at most 1e60"};
    }
    void add(double* stat, const Row& row) const {
        const double exposure = row.extra[0];
        numerics::add_same_sign_to_pair(stat, numerics::exact_product(row.weight, row.y));
        numerics::add_same_sign_to_pair(stat + 2, numerics::exact_product(row.weight, exposure));
        if (row.y < numerics::n_log_factorials) {  // the error of a double is at most 1e-12 of the row's evidence
            const double log_power = exposure == 1.0 ? 0.0 : row.y * std::log(exposure);
            numerics::add_to_pair(stat + 4, row.weight * (log_power - log_factorial_[static_cast<int>(row.y)]));
        } else {
            numerics::add_to_pair(stat + 4, log_factor_of_many(row.y, exposure) * row.weight);
        }
    }
    void posterior(const double* stat, const double* prior, double* parameters) const {
        parameters[0] = (numerics::load_pair(stat) + prior[0]).high;
        parameters[1] = (numerics::load_pair(stat + 2) + prior[1]).high;
    }
    double log_evidence(const double* stat, const double* prior) const {
        return numerics::log_gamma_ratio(prior[0], prior[1], numerics::load_pair(stat), numerics::load_pair(stat + 2),
                                         numerics::load_pair(stat + 4));
    }

  private:
    const double* log_factorial_ = numerics::log_factorials().data();

    // y log(exposure) - log(y!), by Stirling's formula, the powers together.
    EVERYTREE_NOINLINE static DoubleDouble log_factor_of_many(double y, double exposure) {
        const auto log_of = y < 1e10 ? [](double x) { return numerics::fine_log(x); }
                                     : [](double x) { return numerics::precise_log(x); };
        DoubleDouble log_ratio = log_of(y);
        const double half_log = 0.5 * log_ratio.high;
        if (exposure != 1.0) log_ratio = log_ratio - log_of(exposure);
        return numerics::exact_sum(y, -half_log) - log_ratio * y -
               (numerics::half_log_two_pi.high + numerics::stirling_rest(y));
    }
};

// y ~ Exponential(lambda), or known only to exceed y where censored. Statistics: uncensored weight, sum of y.
struct Exponential : RatePrior {
    static constexpr bool is_discrete = false;  // whether likelihoods are probabilities, at most 1
    static constexpr int n_extra = 1;
    Layout layout{2, 0, 2};

    bool supports(const Row& row) const {
        return (row.y >= 0.0) & (row.y <= largest_magnitude) & ((row.extra[0] == 0.0) | (row.extra[0] == 1.0));
    }
    Complaint complain(const Row& row) const {
        if (!(row.y >= 0.0 && row.y <= largest_magnitude)) return {"y", row.y, "from 0 to 1e60"};
        return {"censored", row.extra[0], "0 (event seen) or 1 (right-censored)"};
    }
    void add(double* stat, const Row& row) const {
        stat[0] += row.weight * (1.0 - row.extra[0]);
        stat[1] += row.weight * row.y;
    }
    double log_evidence(const double* stat, const double* prior) const {
        return numerics::log_gamma_ratio(prior[0], prior[1], stat[0], stat[1]);
    }
};

// y ~ N(mu, 1 / tau), mu given tau ~ N(mean, 1 / (strength tau)), tau ~ Gamma(shape, rate = scale).
// Statistics: weight, sum of y and sum of y^2, all three as pairs: rounding errors of the weight would be
// multiplied by (mean / spread)^2. Posterior with W = weight:
//   strength' = strength + W,  mean' = (strength mean + sum y) / strength',  shape' = shape + W / 2,
//   scale' = scale + (squares about the sample mean) / 2 + strength W (sample mean - mean)^2 / (2 strength').
struct Normal {
    static constexpr bool is_discrete = false;  // whether likelihoods are probabilities, at most 1
    static constexpr int n_extra = 0, n_hyper = 4, n_prior = 4, n_parameters = 5;
    Layout layout{0, 3, 1};

    bool supports(const Row& row) const { return is_moderate(row.y); }
    Complaint complain(const Row& row) const { return {"y", row.y, "a finite number, at most 1e60 in size"}; }
    void add(double* stat, const Row& row) const {
        const DoubleDouble weighted = numerics::exact_product(row.weight, row.y);
        numerics::add_to_pair(stat, row.weight);
        numerics::add_to_pair(stat + 2, weighted);
        numerics::add_same_sign_to_pair(stat + 4, weighted * row.y);
    }
    void prepare(const double* hyper, double* prior) const { std::copy(hyper, hyper + 4, prior); }
    // parameters: mean', strength', shape', scale', and the rounding error of mean' as a double.
    void posterior(const double* stat, const double* prior, double* parameters) const {
        const DoubleDouble weight = numerics::load_pair(stat), strength = weight + prior[1];
        DoubleDouble mean(prior[0]);
        if (weight.high != 0.0) mean = mean + (own_mean(stat) - mean) * (weight / strength);
        parameters[0] = mean.high;
        parameters[1] = strength.high;
        parameters[2] = prior[2] + 0.5 * weight.high;
        parameters[3] = prior[3] + added_scale(stat, prior);
        parameters[4] = mean.low;
    }
    // The prediction that is averaged: the mean.
    int n_expected() const { return 1; }
    void expected(const double* parameters, double* mean) const { *mean = parameters[0]; }
    double log_evidence(const double* stat, const double* prior) const {
        const double weight = stat[0];
        if (weight == 0.0) return 0.0;
        const double more = added_scale(stat, prior);
        if (const double* known = look_up(weight))
            return *known - (prior[2] + 0.5 * weight) * log_one_plus(more / prior[3]);
        return numerics::log_gamma_ratio(prior[2], prior[3], 0.5 * weight, more) - 0.5 * weight * numerics::log_two_pi -
               0.5 * std::log1p(weight / prior[1]);
    }

    // The part of the evidence that depends on the number of rows alone: most nodes hold few, and most weights are 1.
    void tabulate(const double* prior) {
        table_.resize(256);
        for (std::size_t k = 0; k < table_.size(); ++k) {
            const double weight = static_cast<double>(k);
            table_[k] = numerics::log_rising(prior[2], 0.5 * weight) -
                        0.5 * weight * (std::log(prior[3]) + numerics::log_two_pi) -
                        0.5 * std::log1p(weight / prior[1]);
        }
    }

  private:
    const double* look_up(double weight) const {
        if (!(weight < static_cast<double>(table_.size()))) return nullptr;
        const auto whole = static_cast<std::size_t>(weight);
        return static_cast<double>(whole) == weight ? &table_[whole] : nullptr;
    }
    std::vector<double> table_;

    // Far from 0 the plain logarithm is as accurate, and faster.
    static double log_one_plus(double x) { return x > 0.5 ? std::log(1.0 + x) : std::log1p(x); }

    static DoubleDouble own_mean(const double* stat) {
        return numerics::load_pair(stat + 2) / numerics::load_pair(stat);
    }
    // scale' - scale
    static double added_scale(const double* stat, const double* prior) {
        const double weight = stat[0], strength = prior[1];
        if (weight == 0.0) return 0.0;
        // One double is enough where rounding the sum of squares does not show beside what is returned.
        const double plain_mean = stat[2] / weight, plain = std::fmax(stat[4] - stat[2] * plain_mean, 0.0);
        const double plain_off = plain_mean - prior[0];
        const double returned = 0.5 * plain + 0.5 * strength * (weight / (strength + weight)) * plain_off * plain_off;
        if (stat[4] + weight * prior[0] * prior[0] < 256.0 * (prior[3] + returned)) return returned;
        const DoubleDouble mean = own_mean(stat),
                           about_mean = numerics::load_pair(stat + 4) - numerics::load_pair(stat + 2) * mean;
        const double share = weight / (strength + weight), off = (mean - prior[0]).high;
        return 0.5 * std::fmax(about_mean.high, 0.0) + 0.5 * strength * share * off * off;
    }
};

// log y ~ N(mu, sigma^2), mu ~ N(mean, sigma^2 / strength), sigma known. Statistics: weight, sum of log y and sum of
// (log y)^2, all three as pairs. Posterior with W = weight:
//   strength' = strength + W,  mean' = (strength mean + sum of log y) / strength',
// and the evidence is that of the logarithms minus the sum of log y, the log ratio of the densities of log y and y.
struct LogNormal {
    static constexpr bool is_discrete = false;
    static constexpr int n_extra = 0, n_hyper = 3, n_prior = 3, n_parameters = 3;
    Layout layout{0, 3, 1};

    bool supports(const Row& row) const { return (row.y > 0.0) & (row.y <= largest_magnitude); }
    Complaint complain(const Row& row) const { return {"y", row.y, "positive and at most 1e60"}; }
    void add(double* stat, const Row& row) const {
        const double log_y = std::log(row.y);
        const DoubleDouble weighted = numerics::exact_product(row.weight, log_y);
        numerics::add_to_pair(stat, row.weight);
        numerics::add_to_pair(stat + 2, weighted);
        numerics::add_same_sign_to_pair(stat + 4, weighted * log_y);
    }
    void prepare(const double* hyper, double* prior) const { std::copy(hyper, hyper + 3, prior); }
    // parameters: mean', strength', sigma.
    void posterior(const double* stat, const double* prior, double* parameters) const {
        const DoubleDouble weight = numerics::load_pair(stat), strength = weight + prior[1];
        DoubleDouble mean(prior[0]);
        if (weight.high != 0.0) mean = mean + (numerics::load_pair(stat + 2) / weight - mean) * (weight / strength);
        parameters[0] = mean.high;
        parameters[1] = strength.high;
        parameters[2] = prior[2];
    }
    double log_evidence(const double* stat, const double* prior) const {
        const double weight = stat[0], strength = prior[1], sigma = prior[2];
        if (weight == 0.0) return 0.0;
        const DoubleDouble sum = numerics::load_pair(stat + 2), mean = sum / numerics::load_pair(stat);
        const double about_mean = std::fmax((numerics::load_pair(stat + 4) - sum * mean).high, 0.0);
        const double off = (mean - prior[0]).high, share = strength / (strength + weight);
        const double squares = about_mean + weight * share * off * off;
        return -weight * (0.5 * numerics::log_two_pi + std::log(sigma)) - 0.5 * std::log1p(weight / strength) -
               0.5 * squares / (sigma * sigma) - sum.high;
    }
};

}  // namespace everytree
