// Zero or not, and how much if not: a beta prior for the first, any family for the second.
#pragma once
#include "core/any_family.hpp"
#include "numerics/special.hpp"

namespace everytree {

// P(y != 0) = theta ~ Beta(alpha, beta); given y != 0, y - 1 is a count, or y a positive number, of another family.
// Statistics: the weights of rows that are not zero and that are, then those of the other family. Evidence:
// B(alpha + n, beta + zeros) / B(alpha, beta) times that of the others.
struct Hurdle {
    AnyFamily amounts;
    double shift;  // 1 for counts, which are amounts less one
    Layout layout;
    int n_extra, n_hyper, n_prior, n_parameters;

    Hurdle(AnyFamily others, bool are_counts)
        : amounts(std::move(others)),
          shift(are_counts ? 1.0 : 0.0),
          layout{2 + amounts.layout.n_plain, amounts.layout.n_pairs, 2 + amounts.layout.n_weights},
          n_extra(amounts.n_extra),
          n_hyper(2 + amounts.n_hyper),
          n_prior(3 + amounts.n_prior),
          n_parameters(2 + amounts.n_parameters) {}

    bool supports(const Row& row) const { return row.y == 0.0 || amounts.supports(shifted(row)); }
    Complaint complain(const Row& row) const {
        if (shift == 0.0) return {"y", row.y, "0, or positive and of moderate size"};
        return {"y", row.y, "a whole number from 0 on"};
    }
    void add(double* stat, const Row& row) const {
        stat[row.y == 0.0] += row.weight;
        if (row.y != 0.0) amounts.add(stat + 2, shifted(row));
    }
    void prepare(const double* hyper, double* prior) const {
        std::copy(hyper, hyper + 2, prior);
        prior[2] = numerics::log_beta(hyper, 2);
        amounts.prepare(hyper + 2, prior + 3);
    }
    // parameters: the beta distribution of theta, then those of the amounts.
    void posterior(const double* stat, const double* prior, double* parameters) const {
        parameters[0] = prior[0] + stat[0];
        parameters[1] = prior[1] + stat[1];
        amounts.posterior(stat + 2, prior + 3, parameters + 2);
    }
    double log_evidence(const double* stat, const double* prior) const {
        double scratch[2];
        return numerics::log_beta_ratio(prior, stat, 2, prior[2], scratch) + amounts.log_evidence(stat + 2, prior + 3);
    }

  private:
    Row shifted(const Row& row) const { return {row.y - shift, row.weight, row.extra}; }
};

}  // namespace everytree
