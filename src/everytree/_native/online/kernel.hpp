// An online forest: Mondrian trees that grow with the rows, each averaged over all its prunings.
//
// A node stands for all of its cell from the time of its parent to its own. Detail goes on while 1 + time doubles with
// probability `split_prior`, so that from time a to time b it does with G(a, b) = split_prior^log2((1 + b) / (1 + a)).
// As G(a, b) G(b, c) = G(a, c), a split that is put in between changes nothing about the rows before it:
//   (1 - G(a, b)) leaf + G(a, b) ((1 - G(b, c)) leaf + G(b, c) q) = (1 - G(a, c)) leaf + G(a, c) q.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/families.hpp"
#include "core/sweep.hpp"
#include "core/tree.hpp"
#include "online/classes.hpp"
#include "online/heap.hpp"
#include "online/split.hpp"

namespace everytree {

struct OnlineOptions {
    std::uint64_t seed;
    double split_prior;
    double half_life;        // in rows; infinite: nothing decays
    std::int64_t max_nodes;  // of all trees together
};

// A part of a row's predictive in one tree; node -1 is the prior.
struct OnlineShare {
    std::int32_t node;
    double weight;
};

template <class Family>
class OnlineKernel {
  public:
    OnlineKernel(const Family& family, const double* leaf_prior, const OnlineOptions& options)
        : family_(family), options_(options), exponent_(std::log2(options.split_prior)) {
        set_family(family, leaf_prior);
    }

    void attach(const OnlineArrays& arrays) {
        pool_.attach(arrays);
        view_.resize(static_cast<std::size_t>(arrays.n_features));
        nominal_.clear();
        for (std::int64_t f = 0; f < arrays.n_features; ++f)
            if (arrays.kinds[f] & is_nominal) nominal_.push_back(f);
        see_classes();
        useless_.clear(arrays.capacity);
        for (std::int64_t s = 0; s < pool_.count(slots_used); ++s) rank(static_cast<std::int32_t>(s));
    }

    // Another prior, or more classes, for which the arrays have room. All evidence must be derived anew: at once where
    // rows decay, else when it is next needed. It is a function of the statistics then, whenever that may be.
    void use_family(const Family& family, const double* leaf_prior) {
        const bool were_seen = seen_.is_kept();
        set_family(family, leaf_prior);
        if (!were_seen) see_classes();
        is_settled_ = false;
        if (decays()) refresh();
    }
    // Evidence that waits to be derived.
    void settle() {
        if (!is_settled_) derive_all();
    }

    // False, and nothing done, where the arrays must grow first: each tree may need two nodes.
    bool learn(const double* row, const Row& target) {
        const OnlineArrays& arrays = pool_.arrays();
        if (pool_.room() < 2 * arrays.n_trees && arrays.capacity < options_.max_nodes) return false;
        finder_.measure(arrays, row);
        ++pool_.count(n_seen);
        for (std::int64_t tree = 0; tree < arrays.n_trees; ++tree) {
            while (pool_.room() < 2) {
                settle();
                forget(useless_.top());
            }
            walk(tree, view_of(row, tree));
            for (const std::int32_t s : path_) {
                age(s);
                family_.add(statistics(s), target);
                if constexpr (has_classes)
                    if (seen_.is_kept()) seen_.add(s, static_cast<std::int64_t>(target.y));
            }
            for (auto s = path_.rbegin(); s != path_.rend(); ++s) evaluate(*s);
            if (decays()) refresh_some(tree);
        }
        return true;
    }

    // The average of one tree over its prunings, for one row; after `settle`.
    void shares(const double* row, std::int64_t tree, std::vector<OnlineShare>& out) {
        std::int32_t s = pool_.root(tree);
        if (s < 0) {
            out.push_back({-1, 1.0});
            return;
        }
        const double* view = view_of(row, tree);
        double reached = 1.0;  // probability that all nodes above are split; not in logs: one exponential a node
        for (; !pool_.is_leaf(s); s = pool_.child(s, view)) {
            const OnlineNode& at = pool_.node(s);
            const double odds = std::exp(at.log_stop + at.leaf - at.log_split - children(s));
            out.push_back({s, std::isinf(odds) ? reached : reached * (odds / (1.0 + odds))});
            reached /= 1.0 + odds;
        }
        out.push_back({s, reached});
    }

    // Statistics of a node's rows as they weigh now; none for -1.
    const double* statistics_now(std::int32_t s) {
        if (s >= 0 && !decays()) return statistics(s);
        present_.assign(static_cast<std::size_t>(size_), 0.0);
        if (s >= 0) {
            std::copy(statistics(s), statistics(s) + size_, present_.begin());
            family_.layout.scale(present_.data(), fraction(pool_.node(s).stamp));
        }
        return present_.data();
    }

    // Every node as of now.
    void refresh() {
        each_node([this](std::int32_t s) { bring_up_to_date(s); });
        is_settled_ = true;
    }

    const Family& family() const { return family_; }
    const double* leaf_prior() const { return leaf_prior_; }
    std::int64_t n_trees() const { return pool_.arrays().n_trees; }

  private:
    double* statistics(std::int32_t s) const { return pool_.arrays().statistics + s * pool_.arrays().stride; }

    void set_family(const Family& family, const double* leaf_prior) {
        family_ = family;
        leaf_prior_ = leaf_prior;
        size_ = static_cast<std::int64_t>(family.layout.size());
        if constexpr (has_classes) {
            family_.tabulate(leaf_prior);
            prior_total_ = 0.0;
            for (std::int64_t c = 0; c < size_; ++c) prior_total_ += leaf_prior[c];
            if (size_ < SeenClasses::worth_it) return;
            look_ahead(prior_total_, risen_total_);
            const bool is_symmetric =
                std::all_of(leaf_prior, leaf_prior + size_, [&](double x) { return x == *leaf_prior; });
            if (is_symmetric)
                look_ahead(*leaf_prior, risen_class_);
            else
                risen_class_.clear();
        }
    }
    void see_classes() {
        const OnlineArrays& arrays = pool_.arrays();
        if constexpr (has_classes)
            seen_.build(arrays.statistics, pool_.count(slots_used), arrays.capacity, size_, arrays.stride);
    }

    // The row as a tree sees it: categories at their places in this tree.
    const double* view_of(const double* row, std::int64_t tree) {
        if (nominal_.empty()) return row;
        std::copy(row, row + view_.size(), view_.begin());
        for (const std::int64_t f : nominal_)
            if (!std::isnan(row[f])) view_[f] = place_of_category(row[f], seed_of_tree(options_.seed, tree));
        return view_.data();
    }

    // ---- structure -------------------------------------------------------------------------------------------------

    // The row's path, the tree grown where the row parts from the rows before it.
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
        std::fill_n(statistics(s), pool_.arrays().stride, 0.0);
        seen_.clear(s);
        pool_.empty_box(s);
        pool_.widen_box(s, row);
        return s;
    }
    // All rows of s are on one side of the split: the new branch begins with their statistics, its leaf with none.
    std::int32_t split_above(std::int32_t s, const double* row, const Split& split) {
        age(s);
        const std::int32_t tree = pool_.node(s).tree, parent = pool_.node(s).parent;
        const std::int32_t branch = pool_.take(tree, parent), leaf = new_leaf(tree, branch, row);
        std::copy_n(statistics(s), pool_.arrays().stride, statistics(branch));
        seen_.copy(s, branch);
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
        evaluate(s);
        if (parent >= 0) useless_.remove(parent);
        return branch;
    }

    // ---- evidence --------------------------------------------------------------------------------------------------

    void set_odds(std::int32_t s) const {
        OnlineNode& at = pool_.node(s);
        if (pool_.is_leaf(s)) return;
        const double above = at.parent < 0 ? 0.0 : pool_.node(at.parent).time;
        at.log_split = exponent_ * std::log1p((at.time - above) / (1.0 + above));
        at.log_stop = std::log(-std::expm1(at.log_split));
    }
    double children(std::int32_t s) const {
        return pool_.node(pool_.node(s).left).subtree + pool_.node(pool_.node(s).right).subtree;
    }
    void evaluate(std::int32_t s) {
        OnlineNode& at = pool_.node(s);
        at.leaf = at.subtree = leaf_evidence(s);
        if (!pool_.is_leaf(s)) weigh_fates(s);
    }
    EVERYTREE_NOINLINE void derive_all() {  // seldom: apart from what every row does
        each_node([this](std::int32_t s) { evaluate(s); });
        is_settled_ = true;
    }
    double leaf_evidence(std::int32_t s) {
        if constexpr (has_classes)
            if (seen_.is_kept()) return evidence_of_seen(s);
        return family_.log_evidence(statistics(s), leaf_prior_);
    }
    // The same from the classes that the node has: the others change nothing, and are one class without rows.
    EVERYTREE_NOINLINE double evidence_of_seen(std::int32_t s) {
        const double* counts = statistics(s);
        double total = 0.0;
        seen_.each(s, [&](std::int64_t c) { total += counts[c]; });
        if (total < few_rows) {
            double log_ratio = -log_rising_of(prior_total_, total, risen_total_);
            seen_.each(s, [&](std::int64_t c) { log_ratio += log_rising_of(leaf_prior_[c], counts[c], risen_class_); });
            return log_ratio;
        }
        double others = prior_total_;
        seen_prior_.clear();
        seen_counts_.clear();
        seen_.each(s, [&](std::int64_t c) {
            seen_prior_.push_back(leaf_prior_[c]);
            seen_counts_.push_back(counts[c]);
            others -= leaf_prior_[c];
        });
        if (static_cast<std::int64_t>(seen_prior_.size()) < size_) {
            seen_prior_.push_back(others);
            seen_counts_.push_back(0.0);
        }
        const auto n = static_cast<int>(seen_prior_.size());
        scratch_.resize(seen_prior_.size());
        return log_beta_ratio(seen_prior_.data(), seen_counts_.data(), n, log_beta(seen_prior_.data(), n),
                              scratch_.data());
    }
    // log of Gamma(x + count) / Gamma(x), looked up where rows weigh 1.
    static double log_rising_of(double x, double count, const std::vector<double>& known) {
        const auto whole = static_cast<std::size_t>(count);
        if (static_cast<double>(whole) == count && whole < known.size()) return known[whole];
        return count == 0.0 ? 0.0 : log_rising(x, count);
    }
    // Known values for one x, which is that of all classes where their prior is symmetric.
    static void look_ahead(double x, std::vector<double>& known) {
        known.assign(256, 0.0);
        for (std::size_t k = 1; k < known.size(); ++k) known[k] = log_rising(x, static_cast<double>(k));
    }
    void weigh_fates(std::int32_t s) {
        OnlineNode& at = pool_.node(s);
        at.subtree = weigh(at.log_stop + at.leaf, at.log_split + children(s)).subtree_log_evidence;
        rank(s);
    }

    // ---- decay -----------------------------------------------------------------------------------------------------

    bool decays() const { return std::isfinite(options_.half_life); }
    // What is left of the weight that a row had at the time of the stamp.
    double fraction(std::int64_t stamp) const {
        const std::int64_t rows = pool_.count(n_seen) - stamp;
        return !decays() || rows == 0 ? 1.0 : std::exp2(-static_cast<double>(rows) / options_.half_life);
    }
    void age(std::int32_t s) const {
        OnlineNode& at = pool_.node(s);
        const double left = fraction(at.stamp);
        if (left != 1.0) family_.layout.scale(statistics(s), left);
        at.stamp = pool_.count(n_seen);
    }
    void bring_up_to_date(std::int32_t s) {
        age(s);
        evaluate(s);
    }
    // Of all trees, children before parents.
    template <class Use>
    void each_node(Use use) const {
        for (std::int64_t tree = 0; tree < pool_.arrays().n_trees; ++tree) {
            const std::int32_t root = pool_.root(tree);
            if (root < 0) continue;
            for (std::int32_t s = first_below(root); s != root; s = next(s)) use(s);
            use(root);
        }
    }
    std::int32_t first_below(std::int32_t s) const {
        while (!pool_.is_leaf(s)) s = pool_.node(s).left;
        return s;
    }
    // Round and round a tree, children before parents.
    std::int32_t next(std::int32_t s) const {
        const std::int32_t parent = pool_.node(s).parent;
        if (parent < 0) return first_below(s);
        return pool_.node(parent).left == s ? first_below(pool_.node(parent).right) : parent;
    }
    // So many nodes a row that a round takes an eighth of the half-life, but at least 4 and at most 16.
    void refresh_some(std::int64_t tree) {
        const double round = static_cast<double>(pool_.n_nodes()) / static_cast<double>(pool_.arrays().n_trees);
        const int n = static_cast<int>(std::clamp(std::ceil(8.0 * round / options_.half_life), 4.0, 16.0));
        std::int32_t& cursor = pool_.cursor(tree);
        for (int i = 0; i < n; ++i) {
            bring_up_to_date(cursor);
            cursor = next(cursor);
        }
    }

    // ---- forgetting ------------------------------------------------------------------------------------------------

    // What a pair of leaves is worth: the log evidence that its cell loses without it.
    void rank(std::int32_t s) {
        const OnlineNode& at = pool_.node(s);
        if (at.tree < 0 || pool_.is_leaf(s)) return;
        if (pool_.is_leaf(at.left) && pool_.is_leaf(at.right)) useless_.set(s, at.subtree - at.leaf);
    }
    // The node knows all rows of its two leaves: statistics stay as they are, evidence is weighed anew above it.
    void forget(std::int32_t s) {
        OnlineNode& at = pool_.node(s);
        std::int32_t& cursor = pool_.cursor(at.tree);
        if (cursor == at.left || cursor == at.right) cursor = s;
        pool_.give_back(at.left);
        pool_.give_back(at.right);
        at.left = at.right = at.feature = -1;
        at.time = std::numeric_limits<double>::infinity();
        at.subtree = at.leaf;
        useless_.remove(s);
        for (std::int32_t up = at.parent; up >= 0; up = pool_.node(up).parent) weigh_fates(up);
    }

    static constexpr double few_rows =
        4096.0;  // up to which the terms of a sum are so small that what cancels is below 1e-11
    static constexpr bool has_classes = requires(Family family) { family.tabulate(nullptr); };

    Family family_;
    const double* leaf_prior_;
    OnlineOptions options_;
    double exponent_;  // G(a, b) = ((1 + b) / (1 + a))^exponent
    std::int64_t size_;
    bool is_settled_ = true;  // whether all evidence is that of the present prior
    double prior_total_ = 0.0;
    OnlinePool pool_;
    SeenClasses seen_;
    SplitFinder finder_;
    LeastUseful useless_;
    std::vector<std::int64_t> nominal_;
    std::vector<std::int32_t> path_;
    std::vector<double> view_, present_, seen_prior_, seen_counts_, scratch_, risen_total_, risen_class_;
};

}  // namespace everytree
