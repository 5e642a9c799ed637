// The evidence of nodes under one prior after another: what does not depend on the prior is computed once.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>

#include "core/families.hpp"
#include "numerics/special.hpp"

namespace everytree::held_out {

// Of any family: all of it depends on the prior.
template <class Family>
class Evidence {
  public:
    using Summary = const double*;

    explicit Evidence(const Family& family) : family_(family) {}
    void use(const double* prior) {
        prior_ = prior;
        if constexpr (requires { family_.tabulate(nullptr); }) family_.tabulate(prior);
    }
    Summary summary(const double* of_rows) const { return of_rows; }
    double operator()(Summary of_rows) const { return family_.log_evidence(of_rows, prior_); }

  private:
    Family family_;
    const double* prior_ = nullptr;
};

// Of normal leaves, the mean of the rows and their squares about it do not. The evidence is that of `Normal`, whose
// factors that depend on the number of rows alone are tabulated.
template <>
class Evidence<Normal> {
  public:
    struct Summary {
        double weight, mean, mean_rest, squares;
    };

    explicit Evidence(const Normal&) {}
    void use(const double* prior) {
        std::copy_n(prior, prior_.size(), prior_.begin());
        per_scale_ = 1.0 / prior[3];
        for (std::size_t k = 0; k < constant_.size(); ++k) {
            const auto weight = static_cast<double>(k);
            constant_[k] = numerics::log_rising(prior[2], 0.5 * weight) -
                           0.5 * weight * (std::log(prior[3]) + numerics::log_two_pi) -
                           0.5 * std::log1p(weight / prior[1]);
            share_[k] = share(weight);
        }
    }
    Summary summary(const double* of_rows) const {
        if (of_rows[0] == 0.0) return {};
        const numerics::DoubleDouble weight = numerics::load_pair(of_rows), sum = numerics::load_pair(of_rows + 2),
                                     mean = sum / weight, squares = numerics::load_pair(of_rows + 4) - sum * mean;
        return {weight.high, mean.high, mean.low, std::fmax(squares.high, 0.0)};
    }
    double operator()(const Summary& rows) const {
        if (rows.weight == 0.0) return 0.0;
        const double off = (rows.mean - prior_[0]) + rows.mean_rest, half = 0.5 * rows.weight;
        const auto whole = static_cast<std::size_t>(std::fmin(rows.weight, most));
        if (static_cast<double>(whole) == rows.weight && whole < constant_.size()) {
            // Of so few rows, what the plain logarithm loses of a number near 0 is nothing.
            const double more = 0.5 * rows.squares + share_[whole] * off * off;
            return constant_[whole] - (prior_[2] + half) * std::log(1.0 + more * per_scale_);
        }
        const double more = 0.5 * rows.squares + share(rows.weight) * off * off;
        return numerics::log_gamma_ratio(prior_[2], prior_[3], half, more) - half * numerics::log_two_pi -
               0.5 * std::log1p(rows.weight / prior_[1]);
    }

  private:
    static constexpr double most = 1e6;
    double share(double weight) const { return 0.5 * prior_[1] * (weight / (prior_[1] + weight)); }

    std::array<double, 4> prior_{};
    double per_scale_ = 0.0;
    std::array<double, 256> constant_{}, share_{};
};

}  // namespace everytree::held_out
