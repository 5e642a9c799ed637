// The evidence of nodes under one prior after another: what does not depend on the prior is computed once.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>

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

// What of the evidence of normal leaves depends on the prior and on the number of rows alone.
struct NormalTable {
    explicit NormalTable(const std::array<double, 4>& of) : prior(of) {
        for (std::size_t k = 0; k < constant.size(); ++k) {
            const auto weight = static_cast<double>(k);
            constant[k] = numerics::log_rising(prior[2], 0.5 * weight) -
                          0.5 * weight * (std::log(prior[3]) + numerics::log_two_pi) -
                          0.5 * std::log1p(weight / prior[1]);
            share[k] = share_of(weight);
        }
    }
    double share_of(double weight) const { return 0.5 * prior[1] * (weight / (prior[1] + weight)); }

    // Many trees are asked about the same few priors, one tree after another.
    static std::shared_ptr<const NormalTable> of(const double* prior) {
        thread_local std::array<std::shared_ptr<const NormalTable>, 16> recent;
        thread_local std::size_t next = 0;
        std::array<double, 4> key{};
        std::copy_n(prior, key.size(), key.begin());
        for (const auto& each : recent)
            if (each && each->prior == key) return each;
        return recent[next++ % recent.size()] = std::make_shared<const NormalTable>(key);
    }

    std::array<double, 4> prior;
    std::array<double, 256> constant{}, share{};
};

// Of normal leaves, the mean of the rows and their squares about it do not. The evidence is that of `Normal`.
template <>
class Evidence<Normal> {
  public:
    struct Summary {
        double weight, mean, mean_rest, squares;
        std::int32_t place;  // in the table; -1 where it has none
    };

    explicit Evidence(const Normal&) {}
    void use(const double* prior) {
        table_ = NormalTable::of(prior);
        mean_ = prior[0];
        shape_ = prior[2];
        per_scale_ = 1.0 / prior[3];
    }
    Summary summary(const double* of_rows) const {
        if (of_rows[0] == 0.0) return {};
        const numerics::DoubleDouble weight = numerics::load_pair(of_rows), sum = numerics::load_pair(of_rows + 2),
                                     mean = sum / weight, squares = numerics::load_pair(of_rows + 4) - sum * mean;
        const auto place = static_cast<std::int32_t>(std::fmin(weight.high, most));
        const bool is_whole = static_cast<double>(place) == weight.high && weight.high < most;
        return {weight.high, mean.high, mean.low, std::fmax(squares.high, 0.0), is_whole ? place : -1};
    }
    double operator()(const Summary& rows) const {
        const double off = (rows.mean - mean_) + rows.mean_rest, half = 0.5 * rows.weight;
        if (rows.place > 0) {
            const auto place = static_cast<std::size_t>(rows.place);
            // Of so few rows, what the plain logarithm loses of a number near 0 is nothing.
            const double more = 0.5 * rows.squares + table_->share[place] * off * off;
            return table_->constant[place] - (shape_ + half) * std::log(1.0 + more * per_scale_);
        }
        if (rows.place == 0) return 0.0;
        const std::array<double, 4>& prior = table_->prior;
        const double more = 0.5 * rows.squares + table_->share_of(rows.weight) * off * off;
        return numerics::log_gamma_ratio(prior[2], prior[3], half, more) - half * numerics::log_two_pi -
               0.5 * std::log1p(rows.weight / prior[1]);
    }

  private:
    static constexpr double most = 256.0;

    std::shared_ptr<const NormalTable> table_;
    double mean_ = 0.0, shape_ = 0.0, per_scale_ = 0.0;
};

}  // namespace everytree::held_out
