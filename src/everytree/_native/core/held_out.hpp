// How well each of many priors predicts rows of one tree that are left out: nothing is grown or counted again. Rows
// that belong together form a group, which is left out as a whole.
//
// Without a group, statistics and evidence change at the nodes that its rows touch and nowhere else. So for each group
// the recursion of Theorem 1 runs over its touched nodes, children first, in the evidence of all rows; its rows are
// predicted by the mixtures over their paths; then the old values are restored. For a group of one row these are the
// nodes of its path.
#pragma once
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <unordered_map>
#include <vector>

#include "core/posterior.hpp"

namespace everytree {

struct HeldOutRows {
    RowView rows;
    const std::int32_t* at;  // the terminal of each row
    std::int64_t n;
    const std::uint8_t* counted;  // whether the row is in the statistics and must be subtracted
    const std::uint8_t* scored;   // whether the row is predicted; others are only subtracted with their group
    const std::int64_t* start;    // (n_groups + 1,) the first row of each group
    std::int64_t n_groups;
    std::int64_t n_scored() const {
        std::int64_t total = 0;
        for (std::int64_t i = 0; i < n; ++i) total += scored[i] != 0;
        return total;
    }
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

    // out: (n split priors, n scored rows, n_values).
    void predict(const HeldOutRows& held, const SplitPriors& splits, double* out) {
        const Twins twins = find_twins(held);
        take_out_groups(held, twins);
        const auto n = static_cast<std::size_t>(n_values());
        for (std::int64_t g = 0; g < splits.n; ++g, out += twins.first.size() * n) {
            sweep(splits[g]);
            auto asked = twins.asked.begin();
            for_each_scored_row(splits[g], [&](std::size_t row) { predict_row(row, out + *asked++ * n); });
            for (std::size_t i = 0; i < twins.first.size(); ++i)
                if (twins.first[i] != i) std::memcpy(out + i * n, out + twins.first[i] * n, sizeof(double) * n);
        }
    }

    // The mixture that predicts each scored row: log weights of the nodes on its path, the end first, and the posterior
    // parameters of each, all without the row's group.
    void components(const HeldOutRows& held, const SplitPrior& prior, std::vector<std::int64_t>& start,
                    std::vector<double>& log_weights, std::vector<double>& parameters) {
        take_out_groups(held, {}, &parameters);
        sweep(prior);
        start.assign(path_start_.begin(), path_start_.end());
        for_each_scored_row(prior, [&](std::size_t) {
            for (const double weight : weight_) log_weights.push_back(std::log(weight));
        });
    }

  private:
    // Scored rows that form groups of their own and leave equal trees: of one class and weight, in one terminal. Their
    // predictions are computed for the first of them.
    struct Twins {
        std::vector<std::size_t> first;  // for each scored row, the first scored row like it
        std::vector<std::size_t> asked;  // the first of each set of equal rows
        std::vector<bool> is_left;       // for each group, whether its row equals an earlier one
    };
    Twins find_twins(const HeldOutRows& held) const {
        Twins twins;
        twins.is_left.resize(static_cast<std::size_t>(held.n_groups), false);
        std::unordered_map<std::int64_t, std::pair<std::int64_t, std::size_t>>
            seen;  // row, and its index among the scored rows
        std::size_t n_scored = 0;
        for (std::int64_t group = 0; group < held.n_groups; ++group) {
            const std::int64_t begin = held.start[group], end = held.start[group + 1];
            for (std::int64_t i = begin; i < end; ++i) {
                if (!held.scored[i]) continue;
                std::size_t first = n_scored++;
                if constexpr (writes_classes)
                    if (end - begin == 1) {
                        const auto key =
                            held.at[i] * std::int64_t{family_.n_classes} + static_cast<std::int64_t>(held.rows[i].y);
                        const auto [like, is_new] = seen.try_emplace(key, i, first);
                        const std::int64_t j = like->second.first;
                        if (!is_new && held.rows[i].weight == held.rows[j].weight &&
                            held.counted[i] == held.counted[j]) {
                            first = like->second.second;
                            twins.is_left[static_cast<std::size_t>(group)] = true;
                        }
                    }
                if (first == twins.first.size()) twins.asked.push_back(first);
                twins.first.push_back(first);
            }
        }
        return twins;
    }

    struct Fates {
        double stop, split;  // probabilities
    };
    const double* stat(std::size_t s) const { return statistics_ + s * size_; }

    // For each group the nodes it touches, their evidence as leaves without it, and their predictions for each scored
    // row. None of it depends on the prior of the splits.
    void take_out_groups(const HeldOutRows& held, const Twins& twins, std::vector<double>* all_parameters = nullptr) {
        touched_start_.assign(1, 0);
        row_start_.assign(1, 0);
        path_start_.assign(1, 0);
        touched_.clear();
        leaf_without_.clear();
        path_.clear();
        says_.clear();
        TouchedNodes set(tree_.n_nodes);
        std::vector<std::size_t> place(static_cast<std::size_t>(tree_.n_nodes));  // of a touched node within its group
        for (std::int64_t group = 0; group < held.n_groups; ++group) {
            if (!twins.is_left.empty() && twins.is_left[static_cast<std::size_t>(group)]) continue;
            const std::int64_t begin = held.start[group], end = held.start[group + 1];
            for (std::int64_t i = begin; i < end; ++i) set.touch(held.at[i]);
            set.close_upward(tree_);
            for (const std::int32_t s : set.nodes()) {
                place[s] = touched_.size();
                touched_.push_back(s);
            }
            set.clear();
            sum_rows(held, begin, end, place);
            for (std::int64_t i = begin; i < end; ++i)
                if (held.scored[i]) ask_path(held.rows[i], held.at[i], end - begin == 1, held.counted[i], place);
            touched_start_.push_back(touched_.size());
            row_start_.push_back(path_start_.size() - 1);
            if (all_parameters) add_parameters(*all_parameters);
        }
    }

    // The statistics of each touched node of the last group without the group's rows, in rest_, and their evidence.
    void sum_rows(const HeldOutRows& held, std::int64_t begin, std::int64_t end,
                  const std::vector<std::size_t>& place) {
        const std::size_t first = touched_start_.back(), n_touched = touched_.size() - first;
        removed_.assign(n_touched * size_, 0.0);
        for (std::int64_t i = begin; i < end; ++i)
            if (held.counted[i]) family_.add(removed_.data() + (place[held.at[i]] - first) * size_, held.rows[i]);
        rest_.resize(n_touched * size_);
        for (std::size_t k = 0; k < n_touched; ++k) {  // children first
            const std::int32_t s = touched_[first + k];
            const double* removed = removed_.data() + k * size_;
            if (s > 0) family_.layout.add(removed_.data() + (place[tree_.parent[s]] - first) * size_, removed);
            double* rest = rest_.data() + k * size_;
            std::memcpy(rest, stat(s), sizeof(double) * size_);
            if (!family_.layout.subtract(rest, removed))
                throw std::invalid_argument("row " + std::to_string(begin) + " is not in this posterior");
            leaf_without_.push_back(family_.log_evidence(rest, prior_));
        }
    }

    // Predictions of a row by the nodes on its path, the end first.
    void ask_path(const Row& row, std::int32_t at, bool is_alone, bool is_counted,
                  const std::vector<std::size_t>& place) {
        once_.assign(size_, 0.0);
        family_.add(once_.data(), {row.y, 1.0, row.extra});
        for (std::int32_t s = at; s >= 0; s = tree_.parent[s]) {
            path_.push_back(place[s]);
            double* rest = rest_.data() + (place[s] - touched_start_.back()) * size_;
            if constexpr (writes_classes) {
                parameters_.resize(static_cast<std::size_t>(family_.n_parameters));
                family_.posterior(rest, prior_, parameters_.data());
                says_.resize(says_.size() + static_cast<std::size_t>(family_.n_expected()));
                family_.expected(parameters_.data(), &says_.back() + 1 - family_.n_expected());
            } else if (is_alone && is_counted && row.weight == 1.0) {  // the tree with the row is the original one
                says_.push_back(leaf_[s] - leaf_without_[place[s]]);
            } else {
                with_row_.assign(rest, rest + size_);
                family_.layout.add(with_row_.data(), once_.data());
                says_.push_back(family_.log_evidence(with_row_.data(), prior_) - leaf_without_[place[s]]);
            }
        }
        path_start_.push_back(path_.size());
    }

    // Posterior parameters of the nodes on the paths of the last group's rows.
    void add_parameters(std::vector<double>& all) {
        const auto n = static_cast<std::size_t>(family_.n_parameters);
        const std::size_t first = touched_start_[touched_start_.size() - 2];
        for (std::size_t j = path_start_[row_start_[row_start_.size() - 2]]; j < path_.size(); ++j) {
            all.resize(all.size() + n);
            family_.posterior(rest_.data() + (path_[j] - first) * size_, prior_, all.data() + all.size() - n);
        }
    }

    void sweep(const SplitPrior& prior) {
        const EvidenceView evidence{leaf_.data(), subtree_.data(), split_prob_.data()};
        for (std::int64_t s = tree_.n_nodes - 1; s >= 0; --s) sweep_node(tree_, prior, s, evidence);
    }

    // Calls `use` for each scored row, in order, while weight_ holds the weights on its path without its group.
    template <class Use>
    void for_each_scored_row(const SplitPrior& prior, Use use) {
        fates_.resize(touched_.size());
        for (std::size_t group = 0; group + 1 < touched_start_.size(); ++group) {
            const std::size_t first = touched_start_[group], last = touched_start_[group + 1];
            before_.resize(last - first);
            for (std::size_t k = first; k < last; ++k) {
                const std::int32_t s = touched_[k];
                before_[k - first] = subtree_[s];
                subtree_[s] = weigh_node(prior, s, leaf_without_[k], fates_[k]);
            }
            for (std::size_t row = row_start_[group]; row < row_start_[group + 1]; ++row) {
                weigh_path(row);
                use(row);
            }
            for (std::size_t k = first; k < last; ++k) subtree_[touched_[k]] = before_[k - first];
        }
    }

    // The evidence of the subtree below a node, its children being done, and the probabilities that the node is split
    // and that it is not, of which the smaller keeps its digits.
    double weigh_node(const SplitPrior& prior, std::int32_t s, double leaf, Fates& fates) const {
        if (tree_.n_children[s] == 0) {
            fates = {1.0, 0.0};
            return leaf;
        }
        double children = 0.0;
        const double* first = subtree_.data() + tree_.first_child[s];
        for (std::int32_t c = 0; c < tree_.n_children[s]; ++c) children += first[c];
        const double stop = prior.log_stop[s] + leaf, split = prior.log_split[s] + children;
        const double ratio = std::exp(-std::fabs(stop - split)), larger = 1.0 / (1.0 + ratio), smaller = ratio * larger;
        fates = stop > split ? Fates{larger, smaller} : Fates{smaller, larger};
        return std::fmax(stop, split) + std::log1p(ratio);
    }

    // Weights of the nodes on a row's path, the end first; a row that stops at an inner node stays there.
    void weigh_path(std::size_t row) {
        const std::size_t begin = path_start_[row], n = path_start_[row + 1] - begin;
        weight_.resize(n);
        double reached = 1.0;
        for (std::size_t j = n; j-- > 1;) {
            const Fates& fates = fates_[path_[begin + j]];
            weight_[j] = reached * fates.stop;
            reached *= fates.split;
        }
        weight_[0] = reached;
    }

    void predict_row(std::size_t row, double* out) {
        const std::size_t n = weight_.size();
        if constexpr (writes_classes) {
            const int n_classes = family_.n_classes;
            for (int c = 0; c < n_classes; ++c) out[c] = 0.0;
            const double* says = says_.data() + path_start_[row] * n_classes;
            for (std::size_t j = 0; j < n; ++j, says += n_classes)
                for (int c = 0; c < n_classes; ++c) out[c] += weight_[j] * says[c];
        } else {
            const double* says = says_.data() + path_start_[row];
            double top = -std::numeric_limits<double>::infinity(), sum = 0.0;
            for (std::size_t j = 0; j < n; ++j)
                if (weight_[j] > 0.0) top = std::fmax(top, says[j]);
            for (std::size_t j = 0; j < n; ++j)
                if (weight_[j] > 0.0) sum += weight_[j] * std::exp(says[j] - top);
            *out = top + std::log(sum);
        }
    }

    Family family_;
    TreeView tree_;
    const double *statistics_, *prior_;
    std::size_t size_;
    std::vector<double> leaf_, subtree_, split_prob_;
    // One entry per touched node of a group, groups one after another; group i has those from touched_start_[i] on.
    std::vector<std::size_t> touched_start_;
    std::vector<std::int32_t> touched_;
    std::vector<double> leaf_without_;
    std::vector<Fates> fates_;
    // One entry per node on the path of a scored row: its index in touched_, and its prediction.
    std::vector<std::size_t> row_start_, path_start_, path_;
    std::vector<double> says_;
    // For one group or row at a time.
    std::vector<double> removed_, rest_, once_, with_row_, parameters_, before_, weight_;
};

}  // namespace everytree
