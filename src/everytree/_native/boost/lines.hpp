// The line of a node: a constant, or a constant and slopes whose prior has one of four precisions, averaged by their
// posterior probabilities.
//
// About the node's mean point, slopes b ~ N(0, dispersion / t) are independent of the constant, and their log evidence
// beside that of the constant alone is
//     -log det(I + C / t) / 2 + c' (C + t I)^-1 c / (2 dispersion),
// where C are the centred sums of products of points, and c those of points and residuals. Their mean is
// (C + t I)^-1 c.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

#include "boost/line_sums.hpp"

namespace everytree::boost {

inline constexpr std::array<double, 4> slope_precisions{1e-4, 0.01, 1.0, 30.0};
inline constexpr double prior_of_constant = 0.5;  // each of the precisions has the same share of the rest

class LineSolver {
  public:
    // Log evidence of a node beside that of its constant alone; the mean slopes are written to `slope`.
    double solve(const LineSums& sums, std::size_t node, double dispersion, double* slope) {
        constexpr std::size_t n_kinds = slope_precisions.size();
        const std::size_t k = sums.n_points();
        const double log_prior = std::log((1.0 - prior_of_constant) / static_cast<double>(n_kinds));
        centre(sums, node);
        slopes_.resize(k * n_kinds);
        std::array<double, n_kinds> weight;
        double largest = std::log(prior_of_constant);
        for (std::size_t t = 0; t < n_kinds; ++t) {
            weight[t] = log_prior + with_precision(slope_precisions[t], k, dispersion, slopes_.data() + t * k);
            largest = std::max(largest, weight[t]);
        }
        double total = prior_of_constant * std::exp(-largest);
        for (double& each : weight) total += each = std::exp(each - largest);
        std::fill_n(slope, k, 0.0);
        for (std::size_t t = 0; t < n_kinds; ++t)
            for (std::size_t j = 0; j < k; ++j) slope[j] += weight[t] / total * slopes_[t * k + j];
        return largest + std::log(total);
    }
    // (n_points) what each slope is multiplied by in the fit of the node that was solved last.
    const double* products() const { return product_.data(); }

  private:
    static constexpr double largest_fit = 1e300;  // where residuals are much larger than their dispersion

    void centre(const LineSums& sums, std::size_t node) {
        const std::size_t k = sums.n_points(), width = k + 1;
        const double *moments = sums.moments(node), *products = sums.products(node);
        const double weight = sums.second(node);
        centred_.resize(k * k);
        factor_.resize(k * k);
        product_.resize(k);
        for (std::size_t i = 0; i < k; ++i) {
            const double mean = weight > 0.0 ? moments[(i + 1) * width] / weight : 0.0;
            product_[i] = mean * products[0] - products[i + 1];
            for (std::size_t j = 0; j <= i; ++j)
                centred_[i * k + j] = moments[(i + 1) * width + j + 1] - mean * moments[(j + 1) * width];
        }
    }

    // By the Cholesky factor L of C + t I: its determinant, and slopes from L' b = L^-1 c.
    double with_precision(double precision, std::size_t k, double dispersion, double* slope) {
        double* const l = factor_.data();
        double log_det = 0.0, fit = 0.0;
        for (std::size_t i = 0; i < k; ++i) {
            for (std::size_t j = 0; j <= i; ++j) {
                double sum = centred_[i * k + j] + (i == j ? precision : 0.0);
                for (std::size_t m = 0; m < j; ++m) sum -= l[i * k + m] * l[j * k + m];
                // No pivot is below the precision, but for rounding.
                l[i * k + j] = i == j ? std::sqrt(std::max(sum, precision)) : sum / l[j * k + j];
            }
            double sum = product_[i];
            for (std::size_t m = 0; m < i; ++m) sum -= l[i * k + m] * slope[m];
            slope[i] = sum / l[i * k + i];
            fit += slope[i] * slope[i];
            log_det += 2.0 * std::log(l[i * k + i]);
        }
        for (std::size_t i = k; i-- > 0;) {
            double sum = slope[i];
            for (std::size_t m = i + 1; m < k; ++m) sum -= l[m * k + i] * slope[m];
            slope[i] = sum / l[i * k + i];
        }
        return 0.5 * (std::min(fit / dispersion, largest_fit) - log_det + static_cast<double>(k) * std::log(precision));
    }

    std::vector<double> centred_, product_, factor_, slopes_;
};

}  // namespace everytree::boost
