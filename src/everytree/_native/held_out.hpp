// How well each of many priors predicts rows of one tree that are left out one at a time: nothing is regrown, nothing
// is counted again, only the weights of the nodes on a row's path change.
//
// Taking row i away divides the evidence of each node s on its path by p_s(i), what s as a leaf says of the row given
// all others. The probability that the leaf of row i is s is therefore, without row i, proportional to the probability
// with it divided by p_s(i); and its prediction for the row is the average of p_s(i) under those weights.
#pragma once
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <vector>

#include "posterior.hpp"

namespace everytree {

struct HeldOutRows {
    RowView rows;
    const std::int32_t* at;  // the terminal of each row
    std::int64_t n;
    const std::uint8_t* counted;  // whether the row is in the statistics and must be taken away
};

// One candidate prior of the leaves and all candidate priors of the splits.
struct SplitPriors {
    const double *log_split, *log_stop;  // (n, stride or 1)
    std::int64_t n;
    std::ptrdiff_t per_prior;  // entries of one prior: 1 or n_nodes
    SplitPrior operator[](std::int64_t i) const {
        const std::ptrdiff_t stride = per_prior == 1 ? 0 : 1;
        return {{log_split + i * per_prior, stride}, {log_stop + i * per_prior, stride}};
    }
};

template <class Family>
class HeldOut {
  public:
    HeldOut(const Family& family, const TreeView& tree, const double* statistics, const double* prior)
        : family_(family), tree_(tree), statistics_(statistics), prior_(prior), size_(family.layout.size()) {
        if constexpr (requires { family_.tabulate(nullptr); }) family_.tabulate(prior);
        const auto n_nodes = static_cast<std::size_t>(tree.n_nodes);
        leaf_.resize(n_nodes);
        subtree_.resize(n_nodes);
        split_prob_.resize(n_nodes);
        for (std::size_t s = 0; s < n_nodes; ++s) leaf_[s] = family_.log_evidence(stat(s), prior_);
    }

    // Numbers written for each row: the probability of each class, or the log density of its target.
    static constexpr bool writes_classes = requires(const Family& f) { f.n_classes; };
    int n_values() const {
        if constexpr (writes_classes) return family_.n_classes;
        return 1;
    }

    // out: (n split priors, n rows, n_values).
    void predict(const HeldOutRows& held, const SplitPriors& splits, double* out) {
        find_paths(held);
        for (std::int64_t g = 0; g < splits.n; ++g) {
            sweep(splits[g]);
            for (std::int64_t i = 0; i < held.n; ++i)
                predict_row(held, i, splits[g], out + (g * held.n + i) * n_values());
        }
    }

    // The mixture that predicts each row: log weights of the nodes on its path, the end first, and the posterior
    // parameters of each, all without the row.
    void components(const HeldOutRows& held, const SplitPrior& prior, std::vector<std::int64_t>& start,
                    std::vector<double>& log_weights, std::vector<double>& parameters) {
        find_paths(held, &parameters);
        sweep(prior);
        start.assign(start_.begin(), start_.end());
        for (std::int64_t i = 0; i < held.n; ++i) {
            const double log_total = weigh_path(held, i, prior);
            for (const double weight : log_weight_) log_weights.push_back(weight - log_total);
        }
    }

  private:
    const double* stat(std::size_t s) const { return statistics_ + s * size_; }

    // Along each row's path, root last: what taking the row away does to the node's evidence, and what the node then
    // says of it. Neither depends on the prior of the splits.
    void find_paths(const HeldOutRows& held, std::vector<double>* all_parameters = nullptr) {
        start_.assign(1, 0);
        removal_.clear();
        says_.clear();
        std::vector<double> scratch(3 * size_), parameters(static_cast<std::size_t>(family_.n_parameters));
        double *weighted = scratch.data(), *once = weighted + size_, *rest = once + size_;
        for (std::int64_t i = 0; i < held.n; ++i) {
            const Row row = held.rows[i];
            family_.layout.clear(weighted);
            family_.layout.clear(once);
            if (held.counted[i]) family_.add(weighted, row);
            family_.add(once, {row.y, 1.0, row.extra});
            for (std::int32_t s = held.at[i]; s >= 0; s = tree_.parent[s]) {
                std::memcpy(rest, stat(s), sizeof(double) * size_);
                if (!family_.layout.subtract(rest, weighted))
                    throw std::invalid_argument("row " + std::to_string(i) + " is not in this posterior");
                const double without = family_.log_evidence(rest, prior_);
                removal_.push_back(without - leaf_[s]);
                if (writes_classes || all_parameters) family_.posterior(rest, prior_, parameters.data());
                if (all_parameters) all_parameters->insert(all_parameters->end(), parameters.begin(), parameters.end());
                if constexpr (writes_classes) {
                    says_.resize(says_.size() + static_cast<std::size_t>(family_.n_expected()));
                    family_.expected(parameters.data(), &says_.back() + 1 - family_.n_expected());
                } else if (held.counted[i] && row.weight == 1.0) {  // with the row is as it was
                    says_.push_back(leaf_[s] - without);
                } else {
                    family_.layout.add(rest, once);
                    says_.push_back(family_.log_evidence(rest, prior_) - without);
                }
            }
            start_.push_back(removal_.size());
        }
    }

    void sweep(const SplitPrior& prior) {
        const EvidenceView evidence{leaf_.data(), subtree_.data(), split_prob_.data()};
        for (std::int64_t s = tree_.n_nodes - 1; s >= 0; --s) sweep_node(tree_, prior, s, evidence);
    }

    // Log weights of the nodes on a row's path, the end first, and the log of their sum.
    double weigh_path(const HeldOutRows& held, std::int64_t i, const SplitPrior& prior) {
        path_.clear();
        for (std::int32_t s = held.at[i]; s >= 0; s = tree_.parent[s]) path_.push_back(s);
        log_weight_.resize(path_.size());
        double reached = 0.0, largest = -std::numeric_limits<double>::infinity();
        for (std::size_t j = path_.size(); j-- > 0;) {
            const std::int32_t s = path_[j];
            double here = reached;
            if (j > 0) {
                const LogFates fates = fates_of_node(tree_, prior, s, leaf_.data(), subtree_.data());
                here += fates.stop;
                reached += fates.split;
            }
            log_weight_[j] = here + removal_[start_[i] + j];
            largest = std::fmax(largest, log_weight_[j]);
        }
        double total = 0.0;
        for (const double weight : log_weight_) total += std::exp(weight - largest);
        return largest + std::log(total);
    }

    void predict_row(const HeldOutRows& held, std::int64_t i, const SplitPrior& prior, double* out) {
        const double log_total = weigh_path(held, i, prior);
        for (double& weight : log_weight_) weight = std::exp(weight - log_total);
        if constexpr (writes_classes) {
            const int n_classes = family_.n_classes;
            for (int c = 0; c < n_classes; ++c) out[c] = 0.0;
            const double* says = says_.data() + start_[i] * n_classes;
            for (std::size_t j = 0; j < path_.size(); ++j, says += n_classes)
                for (int c = 0; c < n_classes; ++c) out[c] += log_weight_[j] * says[c];
        } else {
            const double* says = says_.data() + start_[i];
            double top = -std::numeric_limits<double>::infinity(), sum = 0.0;
            for (std::size_t j = 0; j < path_.size(); ++j)
                if (log_weight_[j] > 0.0) top = std::fmax(top, says[j]);
            for (std::size_t j = 0; j < path_.size(); ++j)
                if (log_weight_[j] > 0.0) sum += log_weight_[j] * std::exp(says[j] - top);
            *out = top + std::log(sum);
        }
    }

    Family family_;
    TreeView tree_;
    const double *statistics_, *prior_;
    std::size_t size_;
    std::vector<double> leaf_, subtree_, split_prob_;
    std::vector<std::size_t> start_;
    std::vector<double> removal_, says_, log_weight_;
    std::vector<std::int32_t> path_;
};

}  // namespace everytree
