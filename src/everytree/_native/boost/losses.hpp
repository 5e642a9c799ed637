// Likelihoods of scores: how well they predict rows, and the derivatives by which the next tree is grown.
//
// A loss is the negative log likelihood of a row. Scores are output by output: score k of row i stands at k * n_rows +
// i.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace everytree::boost {

// Columns of the rows; weight and exposure may be null, which stands for 1.
struct BoostRows {
    const double *y, *weight, *exposure;
    std::int64_t n_rows;
    double weight_of(std::int64_t i) const { return weight ? weight[i] : 1.0; }
    double exposure_of(std::int64_t i) const { return exposure ? exposure[i] : 1.0; }
};

using RowNumbers = std::span<const std::uint32_t>;

// Scores beyond this say nothing more, and their exponentials stay finite.
inline constexpr double largest_score = 35.0;
// Second derivatives are at least this share of a row: where a probability has come close to 0 or 1, steps stay small.
inline constexpr double least_curvature = 1e-6;

// Two classes: the score is the logit of the second one.
class LogitLoss {
  public:
    explicit LogitLoss(const BoostRows& rows) : rows_(rows) {}
    int n_outputs() const { return 1; }
    void base(RowNumbers train, double* out) const {
        double total = 0.0, ones = 0.0;
        for (const std::uint32_t i : train) {
            total += rows_.weight_of(i);
            ones += rows_.weight_of(i) * rows_.y[i];
        }
        const double share = (ones + 0.5) / (total + 1.0);  // finite where one class is missing
        out[0] = std::log(share) - std::log1p(-share);
    }
    void derivatives(RowNumbers train, const double* score, double* first, double* second) const {
        for (const std::uint32_t i : train) {
            const double p = 1.0 / (1.0 + std::exp(-score[i])), w = rows_.weight_of(i);
            first[i] = w * (p - rows_.y[i]);
            second[i] = w * std::max(p * (1.0 - p), least_curvature);
        }
    }
    double loss(std::int64_t i, const double* score) const {
        const double margin = rows_.y[i] > 0.5 ? score[i] : -score[i];
        return margin > 0.0 ? std::log1p(std::exp(-margin)) : std::log1p(std::exp(margin)) - margin;
    }

  private:
    BoostRows rows_;
};

// More classes: one score each.
class SoftmaxLoss {
  public:
    SoftmaxLoss(const BoostRows& rows, int n_classes) : rows_(rows), n_classes_(n_classes) {}
    int n_outputs() const { return n_classes_; }
    void base(RowNumbers train, double* out) const {
        std::vector<double> of_class(static_cast<std::size_t>(n_classes_), 0.5);
        for (const std::uint32_t i : train) of_class[static_cast<std::size_t>(rows_.y[i])] += rows_.weight_of(i);
        double total = 0.0;
        for (const double each : of_class) total += each;
        for (int k = 0; k < n_classes_; ++k) out[k] = std::log(of_class[static_cast<std::size_t>(k)] / total);
    }
    void derivatives(RowNumbers train, const double* score, double* first, double* second) const {
        const std::int64_t n = rows_.n_rows;
        std::vector<double> power(static_cast<std::size_t>(n_classes_));
        for (const std::uint32_t i : train) {
            double largest = score[i], sum = 0.0;
            for (int k = 1; k < n_classes_; ++k) largest = std::max(largest, score[k * n + i]);
            for (int k = 0; k < n_classes_; ++k)
                sum += power[static_cast<std::size_t>(k)] = std::exp(score[k * n + i] - largest);
            const double w = rows_.weight_of(i);
            const auto label = static_cast<int>(rows_.y[i]);
            for (int k = 0; k < n_classes_; ++k) {
                const double p = power[static_cast<std::size_t>(k)] / sum;
                first[k * n + i] = w * (p - (k == label ? 1.0 : 0.0));
                second[k * n + i] = w * std::max(p * (1.0 - p), least_curvature);
            }
        }
    }
    double loss(std::int64_t i, const double* score) const {
        return log_sum(i, score) - score[static_cast<std::int64_t>(rows_.y[i]) * rows_.n_rows + i];
    }

  private:
    double log_sum(std::int64_t i, const double* score) const {
        double largest = score[i], sum = 0.0;
        for (int k = 1; k < n_classes_; ++k) largest = std::max(largest, score[k * rows_.n_rows + i]);
        for (int k = 0; k < n_classes_; ++k) sum += std::exp(score[k * rows_.n_rows + i] - largest);
        return largest + std::log(sum);
    }
    BoostRows rows_;
    int n_classes_;
};

// Numbers with normal errors of one variance, which is not part of the loss: the score is the mean.
class SquaredLoss {
  public:
    explicit SquaredLoss(const BoostRows& rows) : rows_(rows) {}
    int n_outputs() const { return 1; }
    void base(RowNumbers train, double* out) const {
        double total = 0.0, sum = 0.0;
        for (const std::uint32_t i : train) {
            total += rows_.weight_of(i);
            sum += rows_.weight_of(i) * rows_.y[i];
        }
        out[0] = total > 0.0 ? sum / total : 0.0;
    }
    void derivatives(RowNumbers train, const double* score, double* first, double* second) const {
        for (const std::uint32_t i : train) {
            first[i] = rows_.weight_of(i) * (score[i] - rows_.y[i]);
            second[i] = rows_.weight_of(i);
        }
    }
    double loss(std::int64_t i, const double* score) const {
        return 0.5 * (score[i] - rows_.y[i]) * (score[i] - rows_.y[i]);
    }

  private:
    BoostRows rows_;
};

// Counts y in an exposure, or y = 1 for an event and 0 for none in a time at risk: the score is the log of the rate.
// The unit of the exposure is such that rates are of about size one.
class RateLoss {
  public:
    explicit RateLoss(const BoostRows& rows) : rows_(rows) {}
    int n_outputs() const { return 1; }
    void base(RowNumbers train, double* out) const {
        double total = 0.0, events = 0.0, exposure = 0.0;
        for (const std::uint32_t i : train) {
            total += rows_.weight_of(i);
            events += rows_.weight_of(i) * rows_.y[i];
            exposure += rows_.weight_of(i) * rows_.exposure_of(i);
        }
        const double half = total > 0.0 ? 0.5 * exposure / total : 0.0;  // that of half a row
        out[0] = std::min(std::log((events + 0.5) / (exposure + half)), largest_score);
    }
    void derivatives(RowNumbers train, const double* score, double* first, double* second) const {
        for (const std::uint32_t i : train) {
            const double expected = rows_.exposure_of(i) * std::exp(std::min(score[i], largest_score));
            const double w = rows_.weight_of(i);
            first[i] = w * (expected - rows_.y[i]);
            second[i] = w * std::max(expected, least_curvature);
        }
    }
    double loss(std::int64_t i, const double* score) const {
        return rows_.exposure_of(i) * std::exp(std::min(score[i], largest_score)) - rows_.y[i] * score[i];
    }

  private:
    BoostRows rows_;
};

}  // namespace everytree::boost
