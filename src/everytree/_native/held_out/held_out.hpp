// How well each of many priors predicts rows of one tree that are left out: nothing is regrown, nothing is counted
// again. Rows that belong together form a group, which is left out as a whole.
//
// Without a group, statistics and evidence change at the nodes that its rows touch and nowhere else. So for each group
// the recursion of Theorem 1 runs over its touched nodes, children first, in the evidence of all rows; its rows are
// predicted by the mixtures over their paths; and what was there before is put back. For a group of one row that is its
// path alone.
//
// The recursion is that of the evidence of a subtree over the evidence of its root as a leaf, rho:
//   rho = (1 - g) + g * win * product of the children's rho,  win = product of the children's leaves / the leaf,
// where `win` does not depend on the prior of the splits, and the rest needs neither logs nor exponentials.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/posterior.hpp"
#include "held_out/evidence.hpp"
#include "held_out/paths.hpp"
#include "numerics/scaled.hpp"

namespace everytree::held_out {

// One candidate prior of the leaves and all candidate priors of the splits.
struct SplitPriors {
    const double *log_split, *log_stop;  // (n, stride or 1)
    std::int64_t n;
    std::ptrdiff_t per_prior;  // entries of one prior: 1 or n_nodes
    SplitPrior operator[](std::int64_t i) const {
        const std::ptrdiff_t stride = per_prior == 1 ? 0 : 1;
        return {{log_split + i * per_prior, stride}, {log_stop + i * per_prior, stride}};
    }
    bool never_split(std::int64_t i) const { return per_prior == 1 && std::isinf(log_split[i]); }
};

template <class Family>
class HeldOut {
  public:
    HeldOut(const Family& family, const TreeView& tree, const double* statistics)
        : family_(family), evidence_(family), tree_(tree), statistics_(statistics), size_(family.layout.size()) {
        const auto n_nodes = static_cast<std::size_t>(tree.n_nodes);
        place_.assign(n_nodes, 0);
        inner_.assign(1, -1);
        for (std::size_t s = n_nodes; s-- > 0;)
            if (tree_.n_children[s] > 0) {
                place_[s] = static_cast<std::int32_t>(inner_.size());
                inner_.push_back(static_cast<std::int32_t>(s));
            }
        for (std::size_t s = 0; s < n_nodes; ++s) summary_.push_back(evidence_.summary(stat(s)));
        leaf_.resize(n_nodes);
        win_.resize(inner_.size());
        rho_.resize(inner_.size());
    }

    HeldOut(const HeldOut&) = delete;

    // Another prior of the leaves.
    void use(const double* prior) {
        prior_ = prior;
        evidence_.use(prior);
        for (std::size_t s = 0; s < leaf_.size(); ++s) leaf_[s] = evidence_(summary_[s]);
        for (std::size_t i = 1; i < inner_.size(); ++i) win_[i] = win_of_split(static_cast<std::size_t>(inner_[i]));
    }

    // Numbers written for each row: the probability of each class, or the log density of its target.
    static constexpr bool writes_classes = requires(const Family& f) { f.n_classes; };
    static int n_classes(const Family& family) {
        if constexpr (writes_classes) return family.n_classes;
        return 0;
    }
    static int n_values(const Family& family) { return writes_classes ? n_classes(family) : 1; }

    // out: (n split priors, n scored rows, n_values).
    void predict(const HeldOutRows& held, const HeldOutPaths& paths, const SplitPriors& splits, double* out) {
        take_out_groups(held, paths);
        const auto n = static_cast<std::size_t>(n_values(family_));
        const std::vector<std::size_t>& first = paths.first_like;
        std::vector<std::int64_t> numbers;
        for (std::int64_t g = 0; g < splits.n; ++g)
            if (splits.never_split(g))
                predict_by_root(paths, out + static_cast<std::size_t>(g) * first.size() * n);
            else
                numbers.push_back(g);
        for (std::size_t g = 0; g < numbers.size(); g += numerics::ScaledLanes::n) {
            lanes_.assign(
                numbers.begin() + static_cast<std::ptrdiff_t>(g),
                numbers.begin() + static_cast<std::ptrdiff_t>(std::min(g + numerics::ScaledLanes::n, numbers.size())));
            sweep(splits);
            for (const Group& group : paths.groups) predict_group(paths, group, out, first.size() * n);
        }
        for (std::int64_t g = 0; g < splits.n; ++g, out += first.size() * n)
            for (std::size_t i = 0; i < first.size(); ++i)
                if (first[i] != i) std::memcpy(out + i * n, out + first[i] * n, sizeof(double) * n);
    }

    // The same for `prior` of the leaves where no prior of the splits ever splits: of numbers that stand alone, the
    // root is all that is asked. Returns false, and writes nothing, where `use` and `predict` must do it.
    bool predict_without_splits(const double* prior, const HeldOutRows& held, const HeldOutPaths& paths,
                                const SplitPriors& splits, double* out) {
        if constexpr (writes_classes) {
            return false;
        } else {
            for (std::int64_t g = 0; g < splits.n; ++g)
                if (!splits.never_split(g)) return false;
            for (const Group& group : paths.groups)
                if (!is_plain_row(held, paths, group)) return false;
            if (rest_.size() != paths.touched.size() * size_) {
                rest_.resize(paths.touched.size() * size_);
                rest_summary_.resize(paths.touched.size());
                for (const Group& group : paths.groups) sum_rows(held, paths, group);
            }
            evidence_.use(prior);
            const double every = evidence_(summary_[0]);
            for (const Group& group : paths.groups) {
                const double value = every - evidence_(rest_summary_[group.last_node - 1]);
                for (std::int64_t g = 0; g < splits.n; ++g)
                    out[static_cast<std::size_t>(g) * paths.first_like.size() +
                        paths.predicted[group.first_predicted].answer] = value;
            }
            return true;
        }
    }

    // The mixture that predicts each scored row: log weights of the nodes on its path, the end first, and the posterior
    // parameters of each, all without the row's group; and what it says of the row, as `predict` does.
    void components(const HeldOutRows& held, const HeldOutPaths& paths, const SplitPriors& splits,
                    std::vector<std::int64_t>& start, std::vector<double>& log_weights, std::vector<double>& parameters,
                    std::vector<double>& values) {
        take_out_groups(held, paths, &parameters);
        lanes_.assign(1, 0);
        sweep(splits);
        start.assign(1, 0);
        for (const Group& group : paths.groups)
            for_each_prior_and_row(paths, group, [&](std::size_t, std::size_t k) {
                for (const double weight : weight_) log_weights.push_back(std::log(weight));
                start.push_back(static_cast<std::int64_t>(log_weights.size()));
                values.resize(values.size() + static_cast<std::size_t>(n_values(family_)));
                predict_row(k, values.data() + values.size() - n_values(family_));
            });
    }

  private:
    using Group = HeldOutPaths::Group;
    static constexpr double farthest = 200.0;  // nats between densities whose ratios are multiplied
    struct Fates {                             // probabilities, one for each prior of the splits
        double stop[numerics::ScaledLanes::n], split[numerics::ScaledLanes::n];
    };

    const double* stat(std::size_t s) const { return statistics_ + s * size_; }
    double evidence(const double* of_rows) const { return evidence_(evidence_.summary(of_rows)); }
    numerics::Scaled win_of_split(std::size_t s) const {
        const double* children = leaf_.data() + tree_.first_child[s];
        double together = 0.0;
        for (std::int32_t c = 0; c < tree_.n_children[s]; ++c) together += children[c];
        return numerics::Scaled::exp(together - leaf_[s]);
    }

    // For each group what its touched nodes win by their splits without it, and what the nodes on the paths of its rows
    // say of them, the end first. None of it depends on the prior of the splits.
    void take_out_groups(const HeldOutRows& held, const HeldOutPaths& paths,
                         std::vector<double>* parameters = nullptr) {
        if (rest_.size() != paths.touched.size() * size_) rest_.clear();
        const bool is_known = !rest_.empty();  // the statistics without the rows do not depend on any prior
        rest_.resize(paths.touched.size() * size_);
        rest_summary_.resize(paths.touched.size());
        win_without_.clear();
        win_without_.reserve(paths.touched.size());
        predictions_.clear();
        first_prediction_.clear();
        density_.clear();
        top_.clear();
        for (const Group& group : paths.groups) {
            if constexpr (writes_classes)
                if (!parameters && group.is_alone() && held.rows[group.first_row].weight == 1.0) {
                    take_out_one(held, paths, group);
                    continue;
                }
            if (!is_known) sum_rows(held, paths, group);
            if constexpr (!writes_classes)
                if (!parameters && is_plain_row(held, paths, group) && take_out_row(held, paths, group)) continue;
            take_out(held, paths, group, parameters);
        }
    }

    // One row of a class that counts once. All that is needed is its probability p given the other rows of a node:
    // without it, the evidence of the node as a leaf is what it was over p.
    void take_out_one(const HeldOutRows& held, const HeldOutPaths& paths, const Group& group) {
        const std::int64_t i = group.first_row;
        const auto n = static_cast<std::size_t>(n_classes(family_)), label = static_cast<std::size_t>(held.rows[i].y);
        const double removed = held.counted[i] ? 1.0 : 0.0;
        first_prediction_.push_back(predictions_.size());
        double below = 1.0;  // p at the child on the path, which changes too; at the end no child does
        for (std::size_t k = group.first_node; k < group.last_node; ++k) {
            const auto s = static_cast<std::size_t>(paths.touched[k]);
            predictions_.resize(predictions_.size() + n);
            double* const prediction = predictions_.data() + predictions_.size() - n;
            double total = -removed;
            for (std::size_t c = 0; c < n; ++c) total += prediction[c] = prior_[c] + stat(s)[c];
            prediction[label] -= removed;
            if (prediction[label] < prior_[label] * (1.0 - 1e-9)) complain(i);
            for (std::size_t c = 0; c < n; ++c) prediction[c] /= total;
            win_without_.push_back(win_[place_at(s)]);
            if (removed > 0.0) win_without_.back().times(prediction[label] / below);
            below = prediction[label];
        }
    }

    // One row that counts once and ends in a terminal.
    bool is_plain_row(const HeldOutRows& held, const HeldOutPaths& paths, const Group& group) const {
        const std::int64_t i = group.first_row;
        return group.is_alone() && held.counted[i] && held.rows[i].weight == 1.0 &&
               place_[static_cast<std::size_t>(paths.touched[group.first_node])] == 0;
    }
    // Its density p given the other rows of a node, as for classes, here over the largest on the path. Returns false,
    // and changes nothing, where densities lie too far apart for that.
    bool take_out_row(const HeldOutRows& held, const HeldOutPaths& paths, const Group& group) {
        const std::size_t begin = predictions_.size(), n = group.last_node - group.first_node;
        const std::int32_t* const nodes = paths.touched.data() + group.first_node;
        predictions_.resize(begin + n);
        density_.resize(begin + n);
        double *const log_density = predictions_.data() + begin, *const density = density_.data() + begin;
        double top = -std::numeric_limits<double>::infinity(), least = std::numeric_limits<double>::infinity();
        for (std::size_t k = 0; k < n; ++k) {
            const double every = leaf_[static_cast<std::size_t>(nodes[k])];
            log_density[k] = every - leaf_without(held, group, group.first_node + k, every);
            top = std::fmax(top, log_density[k]);
            least = std::fmin(least, log_density[k]);
        }
        if (!(top - least < farthest)) {
            predictions_.resize(begin);
            density_.resize(begin);
            return false;
        }
        for (std::size_t k = 0; k < n; ++k) density[k] = std::exp(log_density[k] - top);
        win_without_.emplace_back();
        for (std::size_t k = 1; k < n; ++k) {
            numerics::Scaled win = win_[place_at(static_cast<std::size_t>(nodes[k]))];
            win.times(density[k] / density[k - 1]);
            win_without_.push_back(win);
        }
        first_prediction_.push_back(begin);
        top_.push_back(top);
        return true;
    }

    // Any group of any family.
    void take_out(const HeldOutRows& held, const HeldOutPaths& paths, const Group& group,
                  std::vector<double>* parameters) {
        leaf_before_.clear();
        for (std::size_t k = group.first_node; k < group.last_node; ++k) {  // children first
            const auto s = static_cast<std::size_t>(paths.touched[k]);
            leaf_before_.push_back(leaf_[s]);
            leaf_[s] = leaf_without(held, group, k, leaf_[s]);
            win_without_.push_back(tree_.n_children[s] > 0 ? win_of_split(s) : numerics::Scaled{});
        }
        for (std::size_t k = group.first_predicted; k < group.last_predicted; ++k)
            predict_on_path(held, paths, paths.predicted[k], group, parameters);
        for (std::size_t k = group.first_node; k < group.last_node; ++k)  // as it was
            leaf_[static_cast<std::size_t>(paths.touched[k])] = leaf_before_[k - group.first_node];
    }

    // The evidence of a touched node as a leaf without the rows of the group. By the chain rule where the family knows
    // what the other rows say of one.
    double leaf_without(const HeldOutRows& held, const Group& group, std::size_t k, double with_them) {
        if constexpr (knows_predictive) {
            const Row row = held.rows[group.first_row];
            if (group.is_alone() && row.weight == 1.0 && held.counted[group.first_row])
                return with_them - family_.log_predictive(rest(k), prior_, row);
        }
        return evidence_(rest_summary_[k]);
    }
    static constexpr bool knows_predictive =
        requires(const Family& f, const double* x, const Row& row) { f.log_predictive(x, x, row); };

    // The statistics of each touched node without the rows of the group.
    void sum_rows(const HeldOutRows& held, const HeldOutPaths& paths, const Group& group) {
        const std::size_t n_touched = group.last_node - group.first_node;
        removed_.assign(n_touched * size_, 0.0);
        const auto removed = [&](std::size_t k) { return removed_.data() + (k - group.first_node) * size_; };
        for (std::int64_t i = group.first_row; i < group.last_row; ++i)
            if (held.counted[i]) family_.add(removed(end_of(held, paths, group, i)), held.rows[i]);
        for (std::size_t k = group.first_node; k < group.last_node; ++k) {
            if (paths.above[k] != k) family_.layout.add(removed(paths.above[k]), removed(k));
            std::memcpy(rest(k), stat(static_cast<std::size_t>(paths.touched[k])), sizeof(double) * size_);
            if (!family_.layout.subtract(rest(k), removed(k))) complain(group.first_row);
            rest_summary_[k] = evidence_.summary(rest(k));
        }
    }
    double* rest(std::size_t k) { return rest_.data() + k * size_; }
    // The place of a row's terminal among the touched nodes; those at the ends of paths come first.
    static std::size_t end_of(const HeldOutRows& held, const HeldOutPaths& paths, const Group& group, std::int64_t i) {
        std::size_t k = group.first_node;
        while (paths.touched[k] != held.at[i]) ++k;
        return k;
    }
    [[noreturn]] static void complain(std::int64_t row) {
        throw std::invalid_argument("row " + std::to_string(row) + " is not in this posterior");
    }

    // What the nodes on a row's path say of it.
    void predict_on_path(const HeldOutRows& held, const HeldOutPaths& paths, const HeldOutPaths::Predicted& predicted,
                         const Group& group, std::vector<double>* parameters) {
        const Row row = held.rows[predicted.row];
        const bool leaves_all = group.is_alone() && held.counted[predicted.row] && row.weight == 1.0;
        first_prediction_.push_back(predictions_.size());
        once_.assign(size_, 0.0);
        family_.add(once_.data(), {row.y, 1.0, row.extra});
        for (std::size_t k = predicted.end;; k = paths.above[k]) {
            const auto s = static_cast<std::size_t>(paths.touched[k]);
            if (parameters || writes_classes) {
                of_node_.resize(static_cast<std::size_t>(family_.n_parameters));
                family_.posterior(rest(k), prior_, of_node_.data());
            }
            if (parameters) parameters->insert(parameters->end(), of_node_.begin(), of_node_.end());
            if constexpr (writes_classes) {
                predictions_.resize(predictions_.size() + static_cast<std::size_t>(family_.n_expected()));
                family_.expected(of_node_.data(), &predictions_.back() + 1 - family_.n_expected());
            } else if (leaves_all) {  // with the row is as it was
                predictions_.push_back(leaf_before_[k - group.first_node] - leaf_[s]);
            } else if constexpr (knows_predictive) {
                predictions_.push_back(family_.log_predictive(rest(k), prior_, row));
            } else {
                with_row_.assign(rest(k), rest(k) + size_);
                family_.layout.add(with_row_.data(), once_.data());
                predictions_.push_back(evidence(with_row_.data()) - leaf_[s]);
            }
            if (paths.above[k] == k) break;
        }
        if constexpr (!writes_classes) {
            const auto begin = predictions_.begin() + static_cast<std::ptrdiff_t>(first_prediction_.back());
            top_.push_back(*std::max_element(begin, predictions_.end()));
            for (auto each = begin; each != predictions_.end(); ++each)
                density_.push_back(std::exp(*each - top_.back()));
        }
    }

    // Where nothing is ever split, the root predicts all.
    void predict_by_root(const HeldOutPaths& paths, double* out) const {
        const auto n = static_cast<std::size_t>(n_values(family_));
        for (std::size_t k = 0; k < paths.predicted.size(); ++k) {
            const std::size_t end = k + 1 < first_prediction_.size() ? first_prediction_[k + 1] : predictions_.size();
            for (std::size_t c = 0; c < n; ++c) out[paths.predicted[k].answer * n + c] = predictions_[end - n + c];
        }
    }

    // Answers for one prior of the splits after another are `apart`.
    void predict_group(const HeldOutPaths& paths, const Group& group, double* out, std::size_t apart) {
        const auto n = static_cast<std::size_t>(n_values(family_));
        const auto answer = [&](std::size_t prior, std::size_t k) {
            return out + prior * apart + paths.predicted[k].answer * n;
        };
        if (group.is_alone() &&
            predict_alone(paths, group, [&](std::size_t prior) { return answer(prior, group.first_predicted); }))
            return;
        for_each_prior_and_row(paths, group,
                               [&](std::size_t prior, std::size_t k) { predict_row(k, answer(prior, k)); });
    }

    // rho of all inner nodes for the priors of the splits in use.
    void sweep(const SplitPriors& splits) {
        split_.prepare(splits, lanes_, tree_.n_nodes);
        for (std::size_t i = 1; i < inner_.size(); ++i) {
            const auto s = static_cast<std::size_t>(inner_[i]);
            numerics::ScaledLanes rho = rho_of_split(s, win_[i]);
            rho.plus(split_.stop(s));
            rho_[i] = rho;
        }
    }
    std::size_t place_at(std::size_t s) const { return static_cast<std::size_t>(place_[s]); }

    // The part of rho in which the node is split.
    numerics::ScaledLanes rho_of_split(std::size_t s, const numerics::Scaled& win) const {
        const auto child = static_cast<std::size_t>(tree_.first_child[s]);
        const auto n_children = static_cast<std::size_t>(tree_.n_children[s]);
        const numerics::ScaledLanes& second = rho_[n_children > 1 ? place_at(child + 1) : 0];
        numerics::ScaledLanes rho = numerics::ScaledLanes::product(win, split_.split(s), rho_[place_at(child)], second);
        for (std::size_t c = 2; c < n_children; ++c) rho.times(rho_[place_at(child + c)]);
        return rho;
    }
    // The same with another rho of one child.
    numerics::ScaledLanes rho_of_split(std::size_t s, const numerics::Scaled& win, std::size_t changed,
                                       const numerics::ScaledLanes& of_changed) const {
        const auto child = static_cast<std::size_t>(tree_.first_child[s]);
        const auto n_children = static_cast<std::size_t>(tree_.n_children[s]);
        const std::size_t other = changed == child && n_children > 1 ? child + 1 : child;
        const numerics::ScaledLanes& second = rho_[other == changed ? 0 : place_at(other)];
        numerics::ScaledLanes rho = numerics::ScaledLanes::product(win, split_.split(s), of_changed, second);
        if (n_children > 2)
            for (std::size_t c = child; c < child + n_children; ++c)
                if (c != changed && c != other) rho.times(rho_[place_at(c)]);
        return rho;
    }

    // A row that stands alone: only its path changes, and the prediction of a subtree follows from that of the child on
    // the path. Returns false for densities beyond the range of doubles.
    template <class AnswerOf>
    bool predict_alone(const HeldOutPaths& paths, const Group& group, AnswerOf answer_of) {
        constexpr int n_lanes = numerics::ScaledLanes::n;
        const auto n = static_cast<std::size_t>(n_values(family_));
        const double* prediction =
            (writes_classes ? predictions_ : density_).data() + first_prediction_[group.first_predicted];
        answer_.resize(n * n_lanes);
        for (std::size_t j = 0; j < answer_.size(); ++j) answer_[j] = prediction[j / n_lanes];
        numerics::ScaledLanes below;  // rho of the node on the path
        Fates fates;
        std::size_t k = group.first_node;
        auto s = static_cast<std::size_t>(paths.touched[k]);
        if (place_[s] != 0) {
            below = rho_of_split(s, win_without_[k]);
            below.plus(split_.stop(s));
        }
        for (++k; k < group.last_node; ++k) {
            const std::size_t child = s;
            s = static_cast<std::size_t>(paths.touched[k]);
            prediction += n;
            below = rho_of_split(s, win_without_[k], child, below);
            below.plus(split_.stop(s), fates.split, fates.stop);
            double* answer = answer_.data();
            for (std::size_t c = 0; c < n; ++c, answer += n_lanes)
                for (int l = 0; l < n_lanes; ++l)
                    answer[l] = fates.stop[l] * prediction[c] + fates.split[l] * answer[l];
        }
        for (std::size_t l = 0; l < lanes_.size(); ++l) {
            double* const out = answer_of(static_cast<std::size_t>(lanes_[l]));
            for (std::size_t c = 0; c < n; ++c) out[c] = answer_[c * n_lanes + l];
            if constexpr (!writes_classes) {
                if (!(*out > 0.0)) return false;
                *out = top_[group.first_predicted] + std::log(*out);
            }
        }
        return true;
    }

    // Calls use(prior, k) for each prior of the splits in use and each predicted row k of a group, while
    // weight_ holds the weights on its path.
    template <class Use>
    void for_each_prior_and_row(const HeldOutPaths& paths, const Group& group, Use use) {
        before_.clear();
        fates_.clear();
        for (std::size_t k = group.first_node; k < group.last_node; ++k) {
            const auto s = static_cast<std::size_t>(paths.touched[k]);
            fates_.push_back({});
            before_.push_back(rho_[place_at(s)]);
            if (place_[s] == 0) continue;
            numerics::ScaledLanes rho = rho_of_split(s, win_without_[k]);
            rho.plus(split_.stop(s), fates_.back().split, fates_.back().stop);
            rho_[place_at(s)] = rho;
        }
        for (std::size_t k = group.first_predicted; k < group.last_predicted; ++k)
            for (std::size_t l = 0; l < lanes_.size(); ++l) {
                weigh_path(paths, paths.predicted[k].end, group.first_node, l);
                use(static_cast<std::size_t>(lanes_[l]), k);
            }
        for (std::size_t k = group.first_node; k < group.last_node; ++k)
            rho_[place_at(static_cast<std::size_t>(paths.touched[k]))] = before_[k - group.first_node];
    }

    // Weights of the nodes on a row's path, the end first; a row that stops at an inner node stays there.
    void weigh_path(const HeldOutPaths& paths, std::size_t end, std::size_t first_node, std::size_t lane) {
        path_.clear();
        for (std::size_t k = end; path_.empty() || path_.back() != k; k = paths.above[k]) path_.push_back(k);
        weight_.resize(path_.size());
        double reached = 1.0;
        for (std::size_t j = path_.size(); j-- > 1;) {
            const Fates& fates = fates_[path_[j] - first_node];
            weight_[j] = reached * fates.stop[lane];
            reached *= fates.split[lane];
        }
        weight_[0] = reached;
    }

    void predict_row(std::size_t row, double* out) {
        const std::size_t n = weight_.size();
        const double* prediction = predictions_.data() + first_prediction_[row];
        if constexpr (writes_classes) {
            const int n_classes = family_.n_classes;
            for (int c = 0; c < n_classes; ++c) out[c] = 0.0;
            for (std::size_t j = 0; j < n; ++j, prediction += n_classes)
                for (int c = 0; c < n_classes; ++c) out[c] += weight_[j] * prediction[c];
        } else {
            double top = -std::numeric_limits<double>::infinity(), sum = 0.0;
            for (std::size_t j = 0; j < n; ++j)
                if (weight_[j] > 0.0) top = std::fmax(top, prediction[j]);
            for (std::size_t j = 0; j < n; ++j)
                if (weight_[j] > 0.0) sum += weight_[j] * std::exp(prediction[j] - top);
            *out = top + std::log(sum);
        }
    }

    // Prior probabilities of the two fates of each node, or of all, for some priors of the splits.
    class Splits {
      public:
        // The lanes beyond those used hold the last prior.
        void prepare(const SplitPriors& splits, const std::vector<std::int64_t>& lanes, std::int64_t n_nodes) {
            const std::int64_t n = splits.per_prior == 1 ? 1 : n_nodes;
            stride_ = splits.per_prior == 1 ? 0 : numerics::ScaledLanes::n;
            split_.resize(static_cast<std::size_t>(n * numerics::ScaledLanes::n));
            stop_.resize(split_.size());
            for (std::size_t l = 0; l < numerics::ScaledLanes::n; ++l) {
                const SplitPrior prior = splits[lanes[std::min(l, lanes.size() - 1)]];
                for (std::int64_t s = 0; s < n; ++s) {
                    const auto at = static_cast<std::size_t>(s) * numerics::ScaledLanes::n + l;
                    split_[at] = std::exp(prior.log_split[s]);
                    stop_[at] = std::exp(prior.log_stop[s]);
                }
            }
        }
        const double* split(std::size_t s) const { return split_.data() + s * stride_; }
        const double* stop(std::size_t s) const { return stop_.data() + s * stride_; }

      private:
        std::size_t stride_ = 0;
        std::vector<double> split_, stop_;
    };

    Family family_;
    Evidence<Family> evidence_;
    TreeView tree_;
    const double *statistics_, *prior_ = nullptr;
    std::size_t size_;
    // One entry a node: its evidence as a leaf, and its place among the inner nodes; 0 for a terminal.
    std::vector<double> leaf_;
    std::vector<typename Evidence<Family>::Summary> summary_;
    std::vector<std::int32_t> place_;
    // One entry an inner node, children first, after one for all terminals, whose rho is 1.
    std::vector<std::int32_t> inner_;
    std::vector<numerics::Scaled> win_;
    std::vector<numerics::ScaledLanes> rho_;
    Splits split_;
    std::vector<std::int64_t> lanes_;  // numbers of the priors of the splits that are in use
    // One entry a touched node of a group, groups one after another.
    std::vector<numerics::Scaled> win_without_;
    // What the nodes on the path of each predicted row say of it, and where that begins.
    // Log densities are there as densities too, over the largest of the path.
    std::vector<double> predictions_, density_, top_;
    std::vector<std::size_t> first_prediction_;
    // Each touched node without the rows of its group.
    std::vector<double> rest_;
    std::vector<typename Evidence<Family>::Summary> rest_summary_;
    // Of one group or row at a time.
    std::vector<double> removed_, leaf_before_, once_, with_row_, of_node_, weight_, answer_;
    std::vector<numerics::ScaledLanes> before_;
    std::vector<Fates> fates_;
    std::vector<std::size_t> path_;
};

}  // namespace everytree::held_out
