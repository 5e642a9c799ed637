// A chain of boosted trees: each step grows a tree on the derivatives of the loss and adds its leaf values to the
// scores.
//
// Rows that are set aside are only scored. The loss of some of them says after which step to stop; the others are left
// out altogether.
#pragma once
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "boost/chain_lines.hpp"
#include "boost/leaf_values.hpp"
#include "boost/line_columns.hpp"
#include "boost/losses.hpp"
#include "boost/newton_grower.hpp"
#include "boost/routes.hpp"
#include "boost/shared_softmax.hpp"
#include "boost/trees.hpp"
#include "core/route.hpp"
#include "core/scramble.hpp"
#include "grow/tree.hpp"

namespace everytree::boost {

struct BoostRule {
    double learning_rate, tau, split_prior;
    int max_steps, patience;
    int max_leaf_nodes, max_depth;
    std::int64_t min_samples_leaf;
    double subsample, max_features;  // of the rows and columns that a tree is grown on
    std::int64_t max_rows;           // a tree is grown on no more
    std::vector<int> columns;        // that trees may split on
};

// What a row is there for.
enum class Role : std::uint8_t { trains, stops, left_out };

// Whether the trees of a loss have a value for each output, and a step is one tree.
template <class Loss>
concept SharesTrees = requires { Loss::shares_trees; };

// Steps one after another; of each step one tree, or one for each output.
struct Chain {
    Trees trees;
    Trees lined;  // whose nodes have a constant, and a slope for each of `line_columns`
    std::vector<std::int32_t> line_columns;
    std::vector<double> gain_of_line;  // of each of these: expected gain in log evidence by its slopes
    std::vector<double> base;          // score before the first step, of each output
    std::vector<double> losses;        // mean over the rows that stop, before the first step and after each
    std::vector<double> aside;         // (n_aside, n_outputs) scores of the rows set aside, after the last step; by
                                       // trees of all classes less a constant that is the row's own
    int n_steps = 0;
    int n_steps_of_aside = 0;  // that suit all rows set aside best; those left out have no say in n_steps
};

template <class Code, class Loss>
class ChainBooster {
  public:
    // `codes` are the same table as `columns`, row after row; `points` is null where nodes are constants.
    ChainBooster(const grow::CodeColumns<Code>& columns, const Codes<Code>& codes, const std::uint8_t* has_missing,
                 const Loss& loss, const BoostRows& rows, const BoostRule& rule, const Points* points)
        : columns_(columns),
          has_missing_(has_missing),
          loss_(loss),
          rows_(rows),
          rule_(rule),
          codes_(codes),
          grower_(columns, codes, {rule.tau, rule.min_samples_leaf, rule.max_depth, rule.max_leaf_nodes}),
          lines_(points, codes, rows.n_rows, rule_.columns) {}

    Chain run(const std::uint8_t* role, std::uint64_t seed, const std::atomic<bool>& is_stopped) {
        for (std::int64_t i = 0; i < rows_.n_rows; ++i) {
            const Role own{role[i]};
            (own == Role::trains ? train_ : aside_).push_back(static_cast<std::uint32_t>(i));
            if (own != Role::trains) stops_.push_back(own == Role::stops);
        }
        start();
        double least = chain_.losses[0], least_aside = mean_losses().aside;
        const bool any_stops = std::any_of(stops_.begin(), stops_.end(), [](std::uint8_t each) { return each != 0; });
        int n_kept = 0, last = 0;
        for (int step = 1; step <= rule_.max_steps && step - last <= rule_.patience && !is_stopped; ++step) {
            add_step(grow::NodeRandom(seed + static_cast<std::uint64_t>(step)));
            const auto [of_stopping, all_aside] = mean_losses();
            chain_.losses.push_back(of_stopping);
            if (aside_.empty() || all_aside < least_aside) {
                least_aside = all_aside;
                last = chain_.n_steps_of_aside = step;
            }
            if (any_stops && !(chain_.losses.back() < least)) continue;
            least = chain_.losses.back();
            last = n_kept = step;
            keep_scores();
        }
        cut(n_kept);
        if constexpr (SharesTrees<Loss>)
            for (double& each : chain_.aside) each = std::log(each);
        return std::move(chain_);
    }

  private:
    static constexpr std::int64_t most_grown_on = std::int64_t{1} << 23;

    void start() {
        const auto n = static_cast<std::size_t>(rows_.n_rows), n_outputs = static_cast<std::size_t>(loss_.n_outputs());
        chain_.base.resize(n_outputs);
        loss_.base(train_, chain_.base.data());
        if constexpr (SharesTrees<Loss>) {
            chain_.trees.n_values = static_cast<std::size_t>(loss_.n_outputs());
            loss_.start(chain_.base);
        } else {
            scores_.resize(n * n_outputs);
            for (std::size_t k = 0; k < n_outputs; ++k) std::fill_n(scores_.begin() + k * n, n, chain_.base[k]);
            first_.assign(n * n_outputs, 0.0);
            second_.assign(n * n_outputs, 0.0);
        }
        end_.resize(n);
        chain_.losses.push_back(mean_losses().stopping);
        keep_scores();
    }

    // The mean loss of the rows that stop the chain, and of all that are set aside; where there are none, NaN.
    struct Losses {
        double stopping, aside;
    };
    Losses mean_losses() const {
        double total = 0.0, sum = 0.0, total_stopping = 0.0, sum_stopping = 0.0;
        for (std::size_t k = 0; k < aside_.size(); ++k) {
            const double weight = rows_.weight_of(aside_[k]), loss = weight * loss_of(aside_[k]);
            total += weight;
            sum += loss;
            if (!stops_[k]) continue;
            total_stopping += weight;
            sum_stopping += loss;
        }
        return {sum_stopping / total_stopping, sum / total};
    }
    double mean_loss_of_training() const {
        double total = 0.0, sum = 0.0;
        for (const std::uint32_t i : train_) {
            total += rows_.weight_of(i);
            sum += rows_.weight_of(i) * loss_of(i);
        }
        return sum / total;
    }
    void keep_scores() {
        kept_ = {chain_.trees.size(), chain_.lined.size(), chain_.gain_of_line};
        const auto n_outputs = static_cast<std::size_t>(loss_.n_outputs());
        const auto n = static_cast<std::size_t>(rows_.n_rows);
        chain_.aside.resize(aside_.size() * n_outputs);
        for (std::size_t i = 0; i < aside_.size(); ++i)
            for (std::size_t k = 0; k < n_outputs; ++k) {
                if constexpr (SharesTrees<Loss>)
                    chain_.aside[i * n_outputs + k] = loss_.probs(aside_[i])[k];  // logarithms are taken at the end
                else
                    chain_.aside[i * n_outputs + k] = scores_[k * n + aside_[i]];
            }
    }
    double loss_of(std::int64_t i) const {
        if constexpr (SharesTrees<Loss>)
            return loss_.loss(i);
        else
            return loss_.loss(i, scores_.data());
    }

    void add_step(grow::NodeRandom random) {
        if constexpr (SharesTrees<Loss>) {
            add_shared_tree(random.child(0), random.child(1));
        } else {
            loss_.derivatives(train_, scores_.data(), first_.data(), second_.data());
            for (int k = 0; k < loss_.n_outputs(); ++k) add_tree(k, random.child(k));
        }
    }

    // A tree with a value for each output in every leaf.
    void add_shared_tree(grow::NodeRandom random, grow::NodeRandom of_directions) {
        const auto n_outputs = static_cast<std::size_t>(loss_.n_outputs());
        const Sample sample = some_of_table(random);
        loss_.project(sample.rows, Loss::directions(of_directions, n_outputs), along_);
        const grow::GrownTree tree = grown(grow::DirectionsCriterion(along_, rule_.tau), sample);
        find_ends(tree);
        NodeSums sums;
        sums.clear(tree.feature.size() * n_outputs);
        loss_.add_up(train_, end_, sums);
        LeafValues leaves = leaf_values_of_classes(tree, sums, n_outputs, {rule_.tau, rule_.split_prior});
        for (double& each : leaves.value) each *= rule_.learning_rate;
        loss_.move(end_, leaves.value);
        append(tree, leaves);
    }

    void add_tree(int output, grow::NodeRandom random) {
        const std::int64_t offset = output * rows_.n_rows;
        const std::vector<int> used = some_columns(random);
        const grow::GrownTree tree =
            grower_.grow(some_rows(random), first_.data() + offset, second_.data() + offset, used, has_missing_);
        find_ends(tree);
        if (lines_.are_offered()) return add_lines(tree);
        NodeSums sums;
        sums.clear(tree.feature.size());
        for (const std::uint32_t i : train_) {
            const auto end = static_cast<std::size_t>(end_[i]);
            sums.first[end] += first_[static_cast<std::size_t>(offset) + i];
            sums.second[end] += second_[static_cast<std::size_t>(offset) + i];
        }
        LeafValues leaves = leaf_values(tree, sums, {rule_.tau, rule_.split_prior, dispersion()});
        for (double& each : leaves.value) each *= rule_.learning_rate;
        double* const scores = scores_.data() + offset;
        for (std::size_t i = 0; i < end_.size(); ++i) scores[i] += leaves.value[static_cast<std::size_t>(end_[i])];
        append(tree, leaves);
        lines_.saw(tree, leaves.gain);
    }

    // A tree whose nodes are constants or lines.
    void add_lines(const grow::GrownTree& tree) {
        LineValues lines = lines_.values(tree, train_, end_, first_.data(), second_.data(),
                                         {rule_.tau, rule_.split_prior, dispersion()});
        for (double& each : lines.value) each *= rule_.learning_rate;
        for (std::size_t i = 0; i < end_.size(); ++i) scores_[i] += lines_.value_of(lines.value, end_[i], i);
        chain_.lined.n_values = 1 + lines_.columns().size();
        chain_.lined.append(tree, lines.value, lines.gain, mass_of_nodes(tree));
        chain_.gain_of_line.resize(lines_.columns().size());
        for (std::size_t j = 0; j < lines.gain_of_line.size(); ++j) chain_.gain_of_line[j] += lines.gain_of_line[j];
    }

    // The columns and rows that a tree is grown on, and the seed of its ties.
    struct Sample {
        std::vector<int> columns;
        std::uint64_t seed;
        std::vector<std::int64_t> rows;
    };
    Sample some_of_table(grow::NodeRandom& random) const {
        Sample sample{some_columns(random), random.below(std::uint64_t{1} << 32), {}};
        std::sort(sample.columns.begin(), sample.columns.end());
        const std::vector<std::uint32_t> rows = some_rows(random);
        sample.rows.assign(rows.begin(), rows.end());
        return sample;
    }
    template <class Criterion>
    grow::GrownTree grown(const Criterion& criterion, const Sample& sample) const {
        const grow::GrowRule rule{grow::Splitter::best, columns_.n_columns(), rule_.min_samples_leaf,
                                  rule_.max_depth,      rule_.max_leaf_nodes, 0.0};
        grow::TreeGrower<Code, Criterion> grower(columns_, criterion, rule);
        grower.use_columns(sample.columns);
        return grower.grow(sample.rows, has_missing_, sample.seed);
    }

    // In random order, which decides between splits that are equally good.
    std::vector<int> some_columns(grow::NodeRandom& random) const {
        const int n = static_cast<int>(rule_.columns.size());
        const int n_used = std::max(1, static_cast<int>(std::ceil(rule_.max_features * n)));
        grow::RandomOrder order(n);
        std::vector<int> used;
        while (static_cast<int>(used.size()) < std::min(n, n_used))
            used.push_back(rule_.columns[static_cast<std::size_t>(order.next(random))]);
        return used;
    }
    // Each row of the training set with the same probability.
    std::vector<std::uint32_t> some_rows(grow::NodeRandom& random) const {
        const auto n = static_cast<double>(train_.size());
        const auto most = static_cast<double>(std::min(rule_.max_rows, most_grown_on));
        const double share = std::min(rule_.subsample, most / std::max(n, 1.0));
        const auto limit = static_cast<std::uint64_t>(share * 4294967296.0);
        const std::uint64_t key = scramble(random.below(std::uint64_t{1} << 32));
        std::vector<std::uint32_t> sample(train_.size() + 1);
        std::size_t n_drawn = 0;
        for (const std::uint32_t i : train_) {  // without a branch that cannot be foreseen
            sample[n_drawn] = i;
            n_drawn += scramble(key + i) >> 32 < limit;
        }
        sample.resize(n_drawn);
        return sample;
    }

    // The terminal of every row.
    void find_ends(const grow::GrownTree& tree) {
        SmallTrees routes;
        routes.add(tree.feature.data(), tree.first_child.data(), tree.threshold.data(), tree.missing_child.data(),
                   static_cast<std::int32_t>(tree.feature.size()));
        std::fill(end_.begin(), end_.end(), 0);
        if (tree.feature.size() == 1) return;  // there may be no column to look at
        route(routes.view(0, !routes.has_missing(0)), codes_, 0, rows_.n_rows, end_.data());
    }

    // Of squared errors, their variance about the scores: the evidence is that of normal errors.
    double dispersion() const {
        if constexpr (!std::is_same_v<Loss, SquaredLoss>) return 1.0;
        const auto last = chain_.losses.back();
        return std::max(2.0 * (std::isnan(last) ? mean_loss_of_training() : last), std::numeric_limits<double>::min());
    }

    void append(const grow::GrownTree& tree, const LeafValues& leaves) {
        chain_.trees.append(tree, leaves.value, leaves.gain, mass_of_nodes(tree));
    }

    // Weight of the rows in each node, by their terminals.
    std::vector<double> mass_of_nodes(const grow::GrownTree& tree) const {
        const std::size_t n = tree.feature.size();
        std::vector<double> mass(n, 0.0);
        if (rows_.weight) {
            for (std::size_t i = 0; i < end_.size(); ++i) mass[static_cast<std::size_t>(end_[i])] += rows_.weight[i];
        } else {  // counts of rows, in turns: none need wait for the one before
            std::vector<std::uint32_t> counts(4 * n, 0);
            for (std::size_t i = 0; i < end_.size(); ++i) ++counts[4 * static_cast<std::size_t>(end_[i]) + i % 4];
            for (std::size_t k = 0; k < counts.size(); ++k) mass[k / 4] += counts[k];
        }
        for (std::size_t s = mass.size(); s-- > 0;)
            for (std::int32_t c = 0; c < tree.n_children[s]; ++c)
                mass[s] += mass[static_cast<std::size_t>(tree.first_child[s] + c)];
        return mass;
    }

    // Removes the steps after the best one.
    void cut(int n_steps) {
        chain_.n_steps = n_steps;
        chain_.trees.cut(kept_.n_trees);
        chain_.lined.cut(kept_.n_lined);
        chain_.gain_of_line = kept_.gain_of_line;
        chain_.line_columns.assign(lines_.columns().begin(), lines_.columns().end());
        chain_.gain_of_line.resize(chain_.line_columns.size());
    }

    const grow::CodeColumns<Code>& columns_;
    const std::uint8_t* has_missing_;
    Loss loss_;
    BoostRows rows_;
    BoostRule rule_;
    Codes<Code> codes_;
    NewtonGrower<Code> grower_;
    ChainLines<Code> lines_;
    std::vector<std::uint32_t> train_, aside_;
    std::vector<std::uint8_t> stops_;  // of the rows set aside, those that stop the chain
    std::vector<std::int32_t> end_;    // terminal of each row in the last tree
    std::vector<double> scores_, first_, second_;
    std::vector<grow::DirectionsCriterion::Row> along_;  // derivatives of each row, for trees of all outputs
    struct Kept {
        std::size_t n_trees = 0, n_lined = 0;
        std::vector<double> gain_of_line;
    } kept_;  // of the chain, up to its best step
    Chain chain_;
};

}  // namespace everytree::boost
