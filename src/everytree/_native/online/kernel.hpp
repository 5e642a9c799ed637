// An online forest: Mondrian trees that grow with the rows, each averaged over all its prunings.
//
// A node represents its cell from the time of its parent to its own. Splitting goes on while 1 + time doubles with
// probability `split_prior`, so that from time a to time b it does with G(a, b) = split_prior^log2((1 + b) / (1 + a)).
// As G(a, b) G(b, c) = G(a, c), a split that is inserted in between does not change the evidence of earlier rows:
//   (1 - G(a, b)) leaf + G(a, b) ((1 - G(b, c)) leaf + G(b, c) q) = (1 - G(a, c)) leaf + G(a, c) q.
#pragma once
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/sweep.hpp"
#include "core/tree.hpp"
#include "online/heap.hpp"
#include "online/leaves.hpp"
#include "online/nodes.hpp"
#include "online/split.hpp"

namespace everytree::online {

struct OnlineOptions {
    std::uint64_t seed;
    double split_prior;
    double half_life;        // in rows; infinite: nothing decays
    std::int64_t max_nodes;  // of all trees together
};

template <class Leaves, class Evidence>
class OnlineKernel {
  public:
    OnlineKernel(Leaves leaves, const OnlineOptions& options)
        : leaves_(std::move(leaves)), options_(options), exponent_(std::log2(options.split_prior)) {}
    OnlineKernel(const OnlineKernel&) = delete;  // its parts hold pointers to each other
    OnlineKernel& operator=(const OnlineKernel&) = delete;

    void attach(const OnlineArrays& arrays) {
        pool_.attach(arrays);
        view_.resize(static_cast<std::size_t>(arrays.n_features));
        nominal_.clear();
        for (std::int64_t f = 0; f < arrays.n_features; ++f)
            if (arrays.kinds[f] & is_nominal) nominal_.push_back(f);
        leaves_.attach(arrays);
        evidence_.attach();
    }

    // After a new prior, or more classes: all evidence must be derived again, at once if rows decay, else when it is
    // next needed. In both cases it is a function of the statistics.
    void prior_changed() {
        evidence_.prior_changed();
        if (decays()) refresh();
    }

    // Returns false without changes if the arrays must grow first: each tree may need two nodes.
    bool learn(const double* row, const Row& target) {
        const OnlineArrays& arrays = pool_.arrays();
        if (pool_.room() < 2 * arrays.n_trees && arrays.capacity < options_.max_nodes) return false;
        finder_.measure(arrays, row);
        ++pool_.count(n_seen);
        for (std::int64_t tree = 0; tree < arrays.n_trees; ++tree) {
            while (pool_.room() < 2) {
                evidence_.settle_ranks();
                forget(useless_.top());
            }
            walk(tree, view_of(row, tree));
            for (const std::int32_t s : path_) {
                age(s);
                leaves_.add(s, target);
            }
            evidence_.row_added(path_);
            if (decays()) refresh_some(tree);
        }
        return true;
    }

    // The average of one row over all trees and their prunings; the evidence is up to date.
    void shares(const double* row, std::vector<OnlineShare>& out) {
        out.clear();
        for (std::int64_t tree = 0; tree < n_trees(); ++tree) shares_of_tree(row, tree, out);
    }

    // Brings every node up to date.
    void refresh() {
        pool_.each_node([this](std::int32_t s) { age(s); });
        evidence_.derive_all();
    }

    Leaves& leaves() { return leaves_; }
    Evidence& evidence() { return evidence_; }
    std::int32_t root(std::int64_t tree) const { return pool_.root(tree); }
    std::int64_t n_trees() const { return pool_.arrays().n_trees; }
    std::int64_t n_slots() const { return pool_.count(slots_used); }

    // The row as a tree sees it: categories at their positions in this tree. Valid until the next call.
    const double* view_of(const double* row, std::int64_t tree) {
        if (nominal_.empty()) return row;
        std::copy(row, row + view_.size(), view_.begin());
        for (const std::int64_t f : nominal_)
            if (!std::isnan(row[f])) view_[f] = place_of_category(row[f], seed_of_tree(options_.seed, tree));
        return view_.data();
    }

  private:
    void shares_of_tree(const double* row, std::int64_t tree, std::vector<OnlineShare>& out) {
        double reached = 1.0 / static_cast<double>(n_trees());  // that all nodes above are split; not in logs: one
        std::int32_t s = pool_.root(tree);                      // exponential a node
        if (s < 0) {
            out.push_back({-1, reached, 1.0});
            return;
        }
        const double* view = view_of(row, tree);
        for (; !pool_.is_leaf(s); s = pool_.child(s, view)) {
            const double odds = evidence_.odds(s);
            add_share(s, std::isinf(odds) ? reached : reached * (odds / (1.0 + odds)), out);
            reached /= 1.0 + odds;
        }
        add_share(s, reached, out);
    }
    void add_share(std::int32_t s, double weight, std::vector<OnlineShare>& out) const {
        if (weight > 0.0) out.push_back({s, weight, fraction(pool_.node(s).stamp)});
    }

    // ---- structure -------------------------------------------------------------------------------------------------

    // The row's path; the tree is extended where the row separates from earlier rows.
    void walk(std::int64_t tree, const double* row) {
        path_.clear();
        std::int32_t s = pool_.root(tree);
        if (s < 0) {
            s = new_leaf(static_cast<std::int32_t>(tree), -1, row);
            pool_.root(tree) = pool_.cursor(tree) = s;
            path_.push_back(s);
            return;
        }
        Draws draws(seed_of_tree(options_.seed, tree), pool_.count(n_seen));
        double above = 0.0;
        for (Split split;;) {
            const Meeting meeting = finder_.meet(pool_, s, row, above, draws, split);
            if (meeting == Meeting::parts) {
                const std::int32_t branch = split_above(s, row, split);
                path_.push_back(branch);
                path_.push_back(split.new_right ? pool_.node(branch).right : pool_.node(branch).left);
                return;
            }
            if (meeting == Meeting::outside) pool_.widen_box(s, row);
            path_.push_back(s);
            if (pool_.is_leaf(s)) return;
            above = pool_.node(s).time;
            s = pool_.child(s, row);
        }
    }
    std::int32_t new_leaf(std::int32_t tree, std::int32_t parent, const double* row) {
        const std::int32_t s = pool_.take(tree, parent);
        leaves_.clear(s);
        pool_.empty_box(s);
        pool_.widen_box(s, row);
        return s;
    }
    // All rows of s are on one side of the split: the new branch begins with their statistics, its leaf with none.
    std::int32_t split_above(std::int32_t s, const double* row, const Split& split) {
        age(s);
        const std::int32_t tree = pool_.node(s).tree, parent = pool_.node(s).parent;
        const std::int32_t branch = pool_.take(tree, parent), leaf = new_leaf(tree, branch, row);
        leaves_.copy(s, branch);
        pool_.copy_box(s, branch);
        pool_.widen_box(branch, row);
        pool_.replace_child(parent, s, branch, tree);
        OnlineNode& made = pool_.node(branch);
        made.left = split.new_right ? s : leaf;
        made.right = split.new_right ? leaf : s;
        made.feature = split.feature;
        made.threshold = split.threshold;
        made.missing_right = split.missing_right;
        made.time = split.time;
        pool_.node(s).parent = branch;
        set_odds(branch);
        set_odds(s);
        evidence_.odds_changed(s);
        if (parent >= 0) useless_.remove(parent);
        return branch;
    }

    void set_odds(std::int32_t s) const {
        OnlineNode& at = pool_.node(s);
        if (pool_.is_leaf(s)) return;
        const double above = at.parent < 0 ? 0.0 : pool_.node(at.parent).time;
        at.log_split = exponent_ * std::log1p((at.time - above) / (1.0 + above));
        at.log_stop = std::log(-std::expm1(at.log_split));
    }

    // ---- decay -----------------------------------------------------------------------------------------------------

    bool decays() const { return std::isfinite(options_.half_life); }
    // The remaining fraction of a row's weight since the time of the stamp.
    double fraction(std::int64_t stamp) const {
        const std::int64_t rows = pool_.count(n_seen) - stamp;
        return !decays() || rows == 0 ? 1.0 : std::exp2(-static_cast<double>(rows) / options_.half_life);
    }
    void age(std::int32_t s) {
        OnlineNode& at = pool_.node(s);
        const double left = fraction(at.stamp);
        if (left != 1.0) leaves_.scale(s, left);
        at.stamp = pool_.count(n_seen);
    }
    // The number of nodes per row such that a round takes an eighth of the half-life, but at least 4 and at most 16.
    void refresh_some(std::int64_t tree) {
        const double round = static_cast<double>(pool_.n_nodes()) / static_cast<double>(pool_.arrays().n_trees);
        const int n = static_cast<int>(std::clamp(std::ceil(8.0 * round / options_.half_life), 4.0, 16.0));
        std::int32_t& cursor = pool_.cursor(tree);
        for (int i = 0; i < n; ++i) {
            age(cursor);
            evidence_.evaluate(cursor);
            cursor = pool_.next(cursor);
        }
    }

    // ---- removing nodes --------------------------------------------------------------------------------------------

    // The node holds all rows of its two leaves: its statistics do not change.
    void forget(std::int32_t s) {
        OnlineNode& at = pool_.node(s);
        std::int32_t& cursor = pool_.cursor(at.tree);
        if (cursor == at.left || cursor == at.right) cursor = s;
        for (const std::int32_t child : {at.left, at.right}) {
            leaves_.clear(child);
            pool_.give_back(child);
        }
        at.left = at.right = at.feature = -1;
        at.time = std::numeric_limits<double>::infinity();
        useless_.remove(s);
        evidence_.forgotten(s);
    }

    Leaves leaves_;
    OnlineOptions options_;
    double exponent_;  // G(a, b) = ((1 + b) / (1 + a))^exponent
    OnlinePool pool_;
    SplitFinder finder_;
    LeastUseful useless_;
    Evidence evidence_{pool_, leaves_, useless_};
    std::vector<std::int64_t> nominal_;
    std::vector<std::int32_t> path_;
    std::vector<double> view_;
};

}  // namespace everytree::online
