// The leaf models: how a row becomes statistics, and how statistics become evidence and posterior parameters.
//
// A family is a small value with these members; the kernels are templates over it and know nothing else of
// it.
//   layout            how a node's statistics lie in memory (below)
//   n_extra           columns a row brings beside y: exposure, censored, inputs
//   n_hyper           prior hyperparameters as the user gives them; prepare() turns them into n_prior
//   numbers,
//                     with everything that does not depend on data computed once
//   n_parameters      what posterior() writes: all that the predictive distribution needs
//   supports(row)     is the row possible at all? complain(row) says what is wrong when not
//   add(stat, row)    statistics += weight * the row's contribution
//   log_evidence      log of the integral of p(rows | theta) p(theta) over theta
//   tabulate(prior)   optional: called once when all nodes have this prior, to prepare shortcuts
#pragma once
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "double_double.hpp"
#include "special.hpp"

namespace everytree {

struct Row {
    double y;
    double weight;
    const double* extra;
};

struct Complaint {
    const char* argument;
    double value;
    std::string must;
};

// Statistics of one node: first numbers that add as plain doubles, then DoubleDouble pairs.
struct Layout {
    int n_plain;
    int n_pairs;
    int size() const { return n_plain + 2 * n_pairs; }

    void add(double* into, const double* from) const {
        for (int i = 0; i < n_plain; ++i) into[i] += from[i];
        for (int i = n_plain; i < size(); i += 2) add_to_pair(into + i, load_pair(from + i));
    }
    void clear(double* stat) const {
        for (int i = 0; i < size(); ++i) stat[i] = 0.0;
    }
};

// Targets and inputs beyond this are refused, so that squares times weights summed over any number of rows
// stay finite.
inline constexpr double largest_magnitude = 1e90;

// Plain & instead of &&: no branches, so that the compiler can check several rows at once. All false for NaN.
inline bool is_count(double y) { return (y >= 0.0) & (y <= 9007199254740992.0) & (y == std::floor(y)); }
inline bool is_moderate(double y) { return std::fabs(y) <= largest_magnitude; }

// p(y = c) = theta_c, theta ~ Dirichlet(alpha). Statistics: the weight of each class. Bernoulli is n_classes
// = 2. Evidence: B(alpha + n) / B(alpha), B the multivariate beta function.
struct Categorical {
    static constexpr int n_extra = 0;
    int n_classes;
    Layout layout;
    int n_hyper, n_prior, n_parameters;

    explicit Categorical(int classes)
        : n_classes(classes), layout{classes, 0}, n_hyper(classes), n_prior(2 * classes + 2), n_parameters(classes) {}

    bool supports(const Row& row) const { return is_count(row.y) & (row.y < n_classes); }
    Complaint complain(const Row& row) const {
        const std::string last = std::to_string(n_classes - 1);
        return {"y", row.y, n_classes == 2 ? "0 or 1" : "a whole class number from 0 to " + last};
    }
    void add(double* stat, const Row& row) const { stat[static_cast<int>(row.y)] += row.weight; }

    void prepare(const double* alpha, double* prior) const {
        double total = 0.0;
        for (int c = 0; c < n_classes; ++c) {
            prior[c] = alpha[c];
            prior[n_classes + c] = log_gamma(alpha[c]);
            total += alpha[c];
        }
        prior[2 * n_classes] = total;
        prior[2 * n_classes + 1] = log_gamma(total);
    }
    void posterior(const double* stat, const double* prior, double* alpha) const {
        for (int c = 0; c < n_classes; ++c) alpha[c] = prior[c] + stat[c];
    }
    double log_evidence(const double* stat, const double* prior) const {
        double total = 0.0, log_ratio = 0.0;
        for (int c = 0; c < n_classes; ++c) {
            if (stat[c] == 0.0) continue;
            total += stat[c];
            log_ratio += log_rising(c, prior[c], stat[c], prior[n_classes + c]);
        }
        if (total == 0.0) return 0.0;
        return log_ratio - log_rising(n_classes, prior[2 * n_classes], total, prior[2 * n_classes + 1]);
    }

    // Most nodes of a tree hold few rows, and rows mostly weigh 1: the same few values again and again.
    void tabulate(const double* prior) {
        table_size_ = std::min(256, 1024 / (n_classes + 1));
        for (int c = 0; c <= n_classes; ++c) {
            const double alpha = prior[c < n_classes ? c : 2 * n_classes];
            const double log_gamma_alpha = prior[c < n_classes ? n_classes + c : 2 * n_classes + 1];
            for (int k = 0; k < table_size_; ++k) table_.push_back(log_gamma(alpha + k) - log_gamma_alpha);
        }
    }

  private:
    // log of alpha (alpha + 1) ... (alpha + count - 1), for any count
    double log_rising(int c, double alpha, double count, double log_gamma_alpha) const {
        if (count < table_size_) {
            const int whole = static_cast<int>(count);
            if (whole == count) return table_[static_cast<std::size_t>(c * table_size_ + whole)];
        }
        return log_gamma(alpha + count) - log_gamma_alpha;
    }
    int table_size_ = 0;
    std::vector<double> table_;
};

// p(y) = theta (1 - theta)^y for y = 0, 1, 2, ...; theta ~ Beta(alpha, beta). Statistics: weight, sum of y.
// Evidence: B(alpha + weight, beta + sum) / B(alpha, beta).
struct Geometric {
    static constexpr int n_extra = 0, n_hyper = 2, n_prior = 3, n_parameters = 2;
    Layout layout{2, 0};

    bool supports(const Row& row) const { return is_count(row.y); }
    Complaint complain(const Row& row) const { return {"y", row.y, "a whole number from 0 on"}; }
    void add(double* stat, const Row& row) const {
        stat[0] += row.weight;
        stat[1] += row.weight * row.y;
    }
    static double log_beta(double a, double b) { return log_gamma(a) + log_gamma(b) - log_gamma(a + b); }

    void prepare(const double* hyper, double* prior) const {
        prior[0] = hyper[0];
        prior[1] = hyper[1];
        prior[2] = log_beta(hyper[0], hyper[1]);
    }
    void posterior(const double* stat, const double* prior, double* parameters) const {
        parameters[0] = prior[0] + stat[0];
        parameters[1] = prior[1] + stat[1];
    }
    double log_evidence(const double* stat, const double* prior) const {
        if (stat[0] == 0.0) return 0.0;
        return log_beta(prior[0] + stat[0], prior[1] + stat[1]) - prior[2];
    }
};

// What Poisson and Exponential share: a rate lambda ~ Gamma(shape, rate), events that happen at that rate,
// and the total time they had to happen in. Evidence: Gamma(shape + events) / Gamma(shape)
// * rate^shape / (rate + time)^(shape + events).
struct RatePrior {
    static constexpr int n_hyper = 2, n_prior = 4, n_parameters = 2;

    void prepare(const double* hyper, double* prior) const {
        prior[0] = hyper[0];
        prior[1] = hyper[1];
        prior[2] = log_gamma(hyper[0]);
        prior[3] = std::log(hyper[1]);
    }
    void posterior(const double* stat, const double* prior, double* parameters) const {
        parameters[0] = prior[0] + stat[0];
        parameters[1] = prior[1] + stat[1];
    }
    static double log_rate_evidence(double events, double time, const double* prior) {
        const double growth = std::log1p(time / prior[1]);  // log((rate + time) / rate)
        const double gammas = events == 0.0 ? 0.0 : log_gamma(prior[0] + events) - prior[2];
        return gammas - prior[0] * growth - events * (prior[3] + growth);
    }
};

// y ~ Poisson(lambda * exposure). Statistics: sum of y, sum of exposure, and the part of the likelihood
// without lambda, sum of y log(exposure) - log(y!).
struct Poisson : RatePrior {
    static constexpr int n_extra = 1;
    Layout layout{3, 0};

    bool supports(const Row& row) const {
        return is_count(row.y) & (row.extra[0] > 0.0) & (row.extra[0] <= largest_magnitude);
    }
    Complaint complain(const Row& row) const {
        if (!is_count(row.y)) return {"y", row.y, "a whole number from 0 on"};
        return {"exposure", row.extra[0], "positive and at most 1e90"};
    }
    void add(double* stat, const Row& row) const {
        const double exposure = row.extra[0];
        stat[0] += row.weight * row.y;
        stat[1] += row.weight * exposure;
        const double log_power = exposure == 1.0 ? 0.0 : row.y * std::log(exposure);
        const double log_factorial = row.y < 2.0 ? 0.0 : log_gamma(row.y + 1.0);
        stat[2] += row.weight * (log_power - log_factorial);
    }
    double log_evidence(const double* stat, const double* prior) const {
        return log_rate_evidence(stat[0], stat[1], prior) + stat[2];
    }
};

// y ~ Exponential(lambda), or known only to exceed y where censored. Statistics: uncensored weight, sum of y.
struct Exponential : RatePrior {
    static constexpr int n_extra = 1;
    Layout layout{2, 0};

    bool supports(const Row& row) const {
        return (row.y >= 0.0) & (row.y <= largest_magnitude) & ((row.extra[0] == 0.0) | (row.extra[0] == 1.0));
    }
    Complaint complain(const Row& row) const {
        if (!(row.y >= 0.0 && row.y <= largest_magnitude)) return {"y", row.y, "from 0 to 1e90"};
        return {"censored", row.extra[0], "0 (event seen) or 1 (right-censored)"};
    }
    void add(double* stat, const Row& row) const {
        stat[0] += row.weight * (1.0 - row.extra[0]);
        stat[1] += row.weight * row.y;
    }
    double log_evidence(const double* stat, const double* prior) const {
        return log_rate_evidence(stat[0], stat[1], prior);
    }
};

// y ~ N(mu, 1 / tau), mu given tau ~ N(mean, 1 / (strength tau)), tau ~ Gamma(shape, rate = scale).
// Statistics: weight, then sum of y and sum of y^2 as pairs. Posterior with W = weight:
//   strength' = strength + W,  mean' = (strength mean + sum y) / strength',  shape' = shape + W / 2,
//   scale' = scale + (squares about the sample mean) / 2 + strength W (sample mean - mean)^2 / (2 strength').
struct Normal {
    static constexpr int n_extra = 0, n_hyper = 4, n_prior = 5, n_parameters = 4;
    Layout layout{1, 2};

    bool supports(const Row& row) const { return is_moderate(row.y); }
    Complaint complain(const Row& row) const { return {"y", row.y, "a finite number, at most 1e90 in size"}; }
    void add(double* stat, const Row& row) const {
        const DoubleDouble weighted = exact_product(row.weight, row.y);
        stat[0] += row.weight;
        add_to_pair(stat + 1, weighted);
        add_to_pair(stat + 3, weighted * DoubleDouble(row.y));
    }
    void prepare(const double* hyper, double* prior) const {
        for (int i = 0; i < 4; ++i) prior[i] = hyper[i];
        prior[4] = log_gamma(hyper[2]);
    }
    void posterior(const double* stat, const double* prior, double* parameters) const {
        const double weight = stat[0], mean = prior[0], strength = prior[1];
        for (int i = 0; i < 4; ++i) parameters[i] = prior[i];
        if (weight == 0.0) return;
        const DoubleDouble sum = load_pair(stat + 1), squares = load_pair(stat + 3);
        const DoubleDouble about_mean = squares - sum * sum / DoubleDouble(weight);
        const DoubleDouble moved = sum / DoubleDouble(weight) - DoubleDouble(mean);
        const double share = weight / (strength + weight), off = moved.value();
        parameters[0] = (DoubleDouble(mean) + moved * DoubleDouble(share)).value();
        parameters[1] = strength + weight;
        parameters[2] = prior[2] + 0.5 * weight;
        parameters[3] = prior[3] + 0.5 * std::fmax(about_mean.value(), 0.0) + 0.5 * strength * share * off * off;
    }
    double log_evidence(const double* stat, const double* prior) const {
        const double weight = stat[0];
        if (weight == 0.0) return 0.0;
        double parameters[4];
        posterior(stat, prior, parameters);
        const double shape = parameters[2], scale = parameters[3];
        return log_gamma(shape) - prior[4] - prior[2] * std::log(scale / prior[3]) -
               0.5 * weight * (std::log(scale) + log_two_pi) - 0.5 * std::log(parameters[1] / prior[1]);
    }
};

}  // namespace everytree
