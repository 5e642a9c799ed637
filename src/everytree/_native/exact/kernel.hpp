// The exact sum over every tree and every choice of splits, to a given depth.
//
// A region is a set of conditions: for each column the codes that are still possible. The log evidence of its rows,
// averaged over all trees below it, depends on that set and on its depth alone, not on the order of the conditions:
//   Q(S) = (1 - g) leaf(S) + g * mean over candidate splits of prod over children Q(child).
// Regions are listed level by level, each set once, down to the last level but one; the last splits are counted from
// their parents without being listed. Regions without rows have Q = 1 and are not listed at all.
#pragma once
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "core/parallel.hpp"
#include "core/sweep.hpp"
#include "exact/key_index.hpp"
#include "exact/region.hpp"

namespace everytree::exact {

// All regions of one depth, each with at most `depth` conditions, sorted by column.
struct Level {
    std::vector<std::size_t> start{0};  // of each region's conditions
    std::vector<Condition> conditions;
    std::vector<double> leaf, subtree, best, upper;
    // Regions that were expanded: their candidates, and for each child its number on the next level, or -1 if empty.
    std::vector<std::size_t> first_child{0};
    std::vector<std::int32_t> children;

    std::size_t size() const { return start.size() - 1; }
    std::size_t n_expanded() const { return first_child.size() - 1; }
    const Condition* begin(std::size_t region) const { return conditions.data() + start[region]; }
    const Condition* end(std::size_t region) const { return conditions.data() + start[region + 1]; }
    // Memory of the lists.
    double n_bytes() const {
        return static_cast<double>((start.size() + first_child.size()) * sizeof(std::size_t) +
                                   conditions.size() * sizeof(Condition) + children.size() * sizeof(std::int32_t));
    }

    // Keeps only the first regions, this many of them expanded.
    void keep(std::size_t n_regions, std::size_t n_to_expand) {
        start.resize(n_regions + 1);
        conditions.resize(start.back());
        for (std::vector<double>* each : {&leaf, &subtree, &best, &upper})
            each->resize(std::min(each->size(), n_regions));
        first_child.resize(n_to_expand + 1);
        children.resize(first_child.back());
    }
};

// The budget of a run. Regions that are listed but not expanded when it is spent get bounds.
struct Budget {
    std::int64_t regions = std::numeric_limits<std::int64_t>::max();  // listed
    double seconds = std::numeric_limits<double>::infinity();
    // Regions to expand on each level, to repeat an earlier run; empty if not even the root was expanded.
    std::optional<std::vector<std::int64_t>> expansions;
    // Memory of the lists, and of each listed region what the caller and the index of a level add to it.
    double bytes = std::numeric_limits<double>::infinity(), bytes_each = 0.0;
};

// Posterior probabilities of a region: that it is a leaf, and of each candidate split.
struct RegionFate {
    double log_stop = 0.0;
    std::vector<double> log_split;  // of each candidate
};

// Calls work(first, last, part) for ranges of regions on several threads, each with its own part, and finish(first,
// part, worker) for each range in order.
template <class Part, class Work, class Finish>
void over_regions(std::size_t n_regions, std::size_t together, std::vector<Part>& parts, Work work, Finish finish) {
    in_ordered_chunks(
        static_cast<std::int64_t>((n_regions + together - 1) / together), static_cast<int>(parts.size()),
        [&](std::int64_t chunk, int worker) {
            const std::size_t first = static_cast<std::size_t>(chunk) * together;
            work(first, std::min(first + together, n_regions), parts[worker]);
        },
        [&](std::int64_t chunk, int worker) {
            finish(static_cast<std::size_t>(chunk) * together, parts[worker], worker);
        });
}

template <class Family>
class ExactKernel {
  public:
    using Reader = RegionReader<Family>;

    explicit ExactKernel(Reader reader) : reader_(std::move(reader)) {}

    const Reader& reader() const { return reader_; }
    const ExactOptions& options() const { return reader_.options(); }

    // Level by level down, then up again. proceed(depth, done, total) is called from time to time and may throw, and so
    // may the watch's poll. The watch has been running since the caller began.
    template <class Proceed>
    void run(const Budget& budget, Watch& watch, Proceed proceed) {
        list(budget, watch, proceed);
        sum_up(watch, proceed);
    }

    // The first half of a run.
    template <class Proceed>
    void list(const Budget& budget, Watch& watch, Proceed proceed) {
        levels_.assign(1, Level{});
        levels_[0].start.push_back(0);
        budget_ = budget;
        watch_ = &watch;
        n_listed_ = 1;
        seconds_each_.assign(1, 0.0);
        is_spent_ = lacks_memory_ = false;
        expands_root_ = !(budget.expansions && budget.expansions->empty());
        watch.set_deadline(listing_share * budget.seconds);
        for (int depth = 0; depth < last_level(); ++depth) expand(depth, proceed);
    }
    // The second half. Regions at max_depth have the evidence given, where it is given.
    template <class Proceed>
    void sum_up(Watch& watch, Proceed proceed, const double* given = nullptr) {
        watch_ = &watch;
        given_ = given;
        for (int depth = last_level(); depth >= 0; --depth) evaluate_in_time(depth, proceed);
        given_ = nullptr;
    }
    // Regions at max_depth are not listed unless more is to be known of them than what their parents count.
    int last_level() const {
        return options().is_continued ? options().max_depth : std::max(options().max_depth - 1, 0);
    }
    // The rows of a region, as bits.
    const std::vector<std::uint64_t>& rows_of(int depth, std::size_t region, RegionView& view) const {
        reader_.look_at(levels_[depth].begin(region), levels_[depth].end(region), view);
        return view.rows;
    }

    const std::vector<Level>& levels() const { return levels_; }
    // Whether it was memory that ended the list.
    bool lacks_memory() const { return lacks_memory_; }
    // Gives the levels of a run away; what reads regions one by one still works.
    std::vector<Level> take_levels() { return std::exchange(levels_, {}); }
    double log_evidence() const { return levels_[0].subtree[0]; }
    double log_upper() const { return levels_[0].upper[0]; }
    bool is_expanded(int depth, std::size_t region) const {
        return depth + 1 < static_cast<int>(levels_.size()) && region < levels_[depth].n_expanded();
    }
    // Number of regions whose children were listed, on each level; empty if not even the root was expanded.
    std::vector<std::int64_t> n_expanded() const {
        std::vector<std::int64_t> n;
        for (const Level& level : levels_)
            if (expands_root_) n.push_back(static_cast<std::int64_t>(level.n_expanded()));
        return n;
    }
    // Log of prior times evidence of a region that is a leaf; one that cannot be split is a leaf with certainty.
    double log_leaf(int depth, std::size_t region, bool can_be_split) const {
        return levels_[depth].leaf[region] + (can_be_split || !expands_root_ ? options().log_stop[depth] : 0.0);
    }
    // Memory of its own for each thread.
    template <class Part>
    std::vector<Part> parts(const Watch& watch) const {
        std::vector<Part> all(static_cast<std::size_t>(std::max(options().n_jobs, 1)));
        for (std::size_t worker = 0; worker < all.size(); ++worker) view_of(all[worker]).pace = {&watch, worker == 0};
        return all;
    }
    // Number of regions that a thread takes at once: fewer if each of them is much work.
    std::size_t together(std::size_t most) const {
        return static_cast<std::size_t>(
            std::clamp<std::int64_t>(steps_together / reader_.n_steps(), 1, static_cast<std::int64_t>(most)));
    }
    RegionFate fate(int depth, std::size_t region, RegionView& view) const {
        const Level& level = levels_[depth];
        reader_.look_at(level.begin(region), level.end(region), view);
        find_terms(depth, region, view);
        RegionFate out;
        if (view.terms.empty() || !expands_root_) return out;
        out.log_stop = options().log_stop[depth] + level.leaf[region] - level.subtree[region];
        const double each = options().log_split[depth] - std::log(static_cast<double>(view.terms.size()));
        for (const double term : view.terms) out.log_split.push_back(each + term - level.subtree[region]);
        return out;
    }

  private:
    // Shares of the available seconds. Listing ends after the first of them, or when the evidence of the listed regions
    // would take until the second. If that takes longer than estimated, the lowest level ends when there is just time
    // for the others, these end by the third, and the root by the fourth.
    static constexpr double listing_share = 0.5, forecast_share = 0.9, upper_share = 1.3, root_share = 1.4;
    static constexpr double least_seconds_for_root = 0.05;
    static constexpr std::int64_t steps_together = 1 << 20;

    static RegionView& view_of(RegionView& view) { return view; }
    template <class Part>
    static RegionView& view_of(Part& part) {
        return part.view;
    }

    // The next level: children of all regions of this one, each set of conditions once. Rows are counted on several
    // threads; the results are listed in order, so that the numbers of regions do not depend on the number of threads.
    template <class Proceed>
    void expand(int depth, Proceed proceed) {
        levels_.emplace_back();
        const Level& from = levels_[depth];
        std::size_t n_to_expand = is_spent_ ? 0 : from.size();
        if (budget_.expansions)
            n_to_expand = static_cast<std::size_t>(depth) < budget_.expansions->size()
                              ? std::min(n_to_expand, static_cast<std::size_t>((*budget_.expansions)[depth]))
                              : 0;
        if (n_to_expand == 0) return;
        KeyIndex known(n_children_expected(depth));
        std::vector<Expansion> found = parts<Expansion>(*watch_);
        const auto work = [&](std::size_t first, std::size_t last, Expansion& own) {
            own.children.clear();
            own.n_children.clear();
            own.n_wanted = last - first;
            try {
                if (!is_spent_) find_children(from, first, last, own);
            } catch (const BudgetSpent&) {
                is_spent_ = true;
            }
        };
        const auto finish = [&](std::size_t first, Expansion& own, int worker) {
            if (worker == 0) proceed(depth, first, from.size());
            if (depth == 0) seconds_each_[0] = watch_->elapsed();  // the root's children are found again
            std::size_t at = 0;
            for (std::size_t i = 0; i < own.n_children.size() && !is_spent_; ++i) {
                if (!list_children(depth, first + i, own, at, at + own.n_children[i], known)) is_spent_ = true;
                at += own.n_children[i];
            }
            if (own.n_children.size() < own.n_wanted) is_spent_ = true;
        };
        // Small batches if there are few in total, so that listing begins soon.
        const std::size_t few = std::clamp<std::size_t>(from.size() / 64, 16, 64);
        over_regions(n_to_expand, together(few), found, work, finish);
    }

    // Two regions per column and region, each of which is found once from each of its conditions.
    std::size_t n_children_expected(int depth) const {
        const std::size_t n = 2 * levels_[depth].size() * reader_.n_columns() / static_cast<std::size_t>(depth + 1);
        const std::size_t most = budget_.seconds == std::numeric_limits<double>::infinity() ? n : std::size_t{1} << 16;
        const std::size_t listed = std::min({n, most, static_cast<std::size_t>(budget_.regions)});
        return static_cast<std::size_t>(
            std::min(static_cast<double>(listed), budget_.bytes / budget_.bytes_each));  // infinite without a limit
    }

    struct Child {
        Key key;
        Condition condition;
        bool has_rows;
    };
    struct Expansion {
        RegionView view;
        std::vector<Child> children;
        std::vector<std::size_t> n_children;  // of each region that was completed
        std::size_t n_wanted = 0;             // regions to be completed
    };
    void find_children(const Level& level, std::size_t first, std::size_t last, Expansion& found) const {
        for (std::size_t region = first; region < last; ++region) {
            const Condition *begin = level.begin(region), *end = level.end(region);
            reader_.look_at(begin, end, found.view);
            const Key own = key_of(begin, end);
            const std::size_t n_before = found.children.size();
            std::int64_t n_with_rows = 0;
            reader_.each_candidate(found.view, [&](int k, int, const std::vector<CodeSet>& sets, const double*) {
                Key others = own;
                for (const Condition* old = begin; old != end; ++old)
                    if (old->column == k) others = others - key_of(*old);
                for (std::size_t c = 0; c < sets.size(); ++c) {
                    const bool has_rows = found.view.child_rows[c] > 0;
                    if (has_rows && ++n_with_rows > budget_.regions) throw BudgetSpent{};  // they are all different
                    found.children.push_back({others + key_of({k, sets[c]}), {k, sets[c]}, has_rows});
                }
            });
            found.n_children.push_back(found.children.size() - n_before);
        }
    }
    // Lists children at .. end of one region, each with its number on the next level; all of them, or none and false if
    // that would exceed the budget.
    bool list_children(int depth, std::size_t region, Expansion& found, std::size_t at, std::size_t end,
                       KeyIndex& known) {
        Level &from = levels_[depth], &to = levels_[depth + 1];
        const std::size_t n_before = to.size();
        bool is_within = true;
        try {
            for (; at < end && is_within; ++at) {
                if (at % 1024 == 0) found.view.pace.spend(16 * 1024);
                const Child& child = found.children[at];
                known.expect(found.children[std::min(at + 16, found.children.size() - 1)].key);
                if (!child.has_rows) {
                    from.children.push_back(-1);
                    continue;
                }
                const auto [number, is_new] = known.number(child.key);
                if (is_new) {
                    append_with(from.begin(region), from.end(region), child.condition, to.conditions);
                    to.start.push_back(to.conditions.size());
                    is_within = ++n_listed_ <= budget_.regions;
                }
                from.children.push_back(number);
            }
            is_within = is_within && has_memory() && is_time_for_evidence(depth + 1, found.view);
        } catch (const BudgetSpent&) {
            is_within = false;
        }
        if (is_within) {
            from.first_child.push_back(from.children.size());
            return true;
        }
        n_listed_ -= static_cast<std::int64_t>(to.size() - n_before);
        to.keep(n_before, 0);
        from.children.resize(from.first_child.back());
        return false;
    }

    // Whether the lists, and what the caller will keep, still fit.
    bool has_memory() {
        if (budget_.bytes == std::numeric_limits<double>::infinity()) return true;
        double bytes = static_cast<double>(n_listed_) * budget_.bytes_each;
        for (const Level& level : levels_) bytes += level.n_bytes();
        if (bytes > budget_.bytes) lacks_memory_ = true;
        return !lacks_memory_;
    }
    // Whether the evidence of all listed regions can still be computed in time. The time for a level is measured on a
    // few of its regions when the first ones are listed.
    bool is_time_for_evidence(int depth, RegionView& view) {
        if (budget_.seconds == std::numeric_limits<double>::infinity()) return true;
        if (static_cast<int>(seconds_each_.size()) <= depth) seconds_each_.push_back(measure_evidence(depth, view));
        return watch_->elapsed() + seconds_of_levels(depth + 1) < forecast_share * budget_.seconds;
    }
    // Seconds for the evidence of one region of a level, the median of some.
    double measure_evidence(int depth, RegionView& view) const {
        constexpr std::size_t most = 9;
        const std::size_t n = levels_[depth].size();
        std::vector<double> seconds;
        for (std::size_t i = 0; i < std::min(n, most); ++i) {
            const double begun = watch_->elapsed();
            const std::size_t region = i * n / std::min(n, most);
            reader_.look_at(levels_[depth].begin(region), levels_[depth].end(region), view);
            find_terms(depth, region, view);
            seconds.push_back(watch_->elapsed() - begun);
        }
        if (n == 0) return 0.0;
        std::nth_element(seconds.begin(), seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2),
                         seconds.end());
        return seconds[seconds.size() / 2] / static_cast<double>(std::max(options().n_jobs, 1));
    }
    // Seconds for the evidence of the first levels.
    double seconds_of_levels(int n_levels) const {
        double seconds = 0.0;
        for (int depth = 0; depth < std::min(n_levels, static_cast<int>(seconds_each_.size())); ++depth)
            seconds += static_cast<double>(levels_[depth].size()) * seconds_each_[depth];
        return seconds;
    }

    // Evidence of a level. Regions for which there is no time are removed from the list, so that the regions above that
    // lead there count as not expanded; the root is expanded only if there is time.
    template <class Proceed>
    void evaluate_in_time(int depth, Proceed proceed) {
        const std::size_t n = levels_[depth].size();
        watch_->set_deadline(deadline_of(depth));
        const std::size_t n_done = evaluate(depth, proceed);
        if (n_done == n) return;
        if (depth > 0) return forget_from(depth, n_done);
        levels_[0].keep(1, 0);
        for (std::size_t below = 1; below < levels_.size(); ++below) levels_[below].keep(0, 0);
        expands_root_ = false;
        RegionView view;
        evaluate_region(0, 0, view);
    }
    double deadline_of(int depth) const {
        if (budget_.seconds == std::numeric_limits<double>::infinity()) return budget_.seconds;
        if (depth == 0) return std::max(root_share * budget_.seconds, watch_->elapsed() + least_seconds_for_root);
        const bool is_lowest = depth + 1 == static_cast<int>(levels_.size()) || levels_[depth + 1].size() == 0;
        return (is_lowest ? 1.0 : upper_share) * budget_.seconds - seconds_of_levels(depth);
    }

    // Removes the regions of a level from `first` on, and all below that nothing else leads to.
    void forget_from(int depth, std::size_t first) {
        Level& above = levels_[depth - 1];
        const auto is_there = [&](std::int32_t child) { return child < static_cast<std::int32_t>(first); };
        std::size_t n_kept = 0;
        while (n_kept < above.n_expanded() &&
               std::all_of(above.children.begin() + static_cast<std::ptrdiff_t>(above.first_child[n_kept]),
                           above.children.begin() + static_cast<std::ptrdiff_t>(above.first_child[n_kept + 1]),
                           is_there))
            ++n_kept;
        above.keep(above.size(), n_kept);
        for (std::size_t below = static_cast<std::size_t>(depth); below < levels_.size(); ++below) {
            const std::vector<std::int32_t>& children = levels_[below - 1].children;
            // Numbers were given in order: the remaining ones come first.
            const auto last = std::max_element(children.begin(), children.end());
            const auto n = static_cast<std::size_t>(last == children.end() ? 0 : *last + 1);
            levels_[below].keep(n, std::min(n, levels_[below].n_expanded()));
        }
    }

    // Evidence of all regions of a level, the one below being done; on several threads, the same bits for any number.
    // Returns how many of them were done in time.
    template <class Proceed>
    std::size_t evaluate(int depth, Proceed proceed) {
        Level& level = levels_[depth];
        const std::size_t n = level.size();
        level.leaf.resize(n);
        level.subtree.resize(n);
        level.best.resize(n);
        level.upper.resize(n);
        std::vector<RegionView> views = parts<RegionView>(*watch_);
        const std::size_t at_once = together(256);
        std::mutex mutex;
        std::atomic<std::size_t> n_done = n;
        in_chunks(static_cast<std::int64_t>((n + at_once - 1) / at_once), static_cast<int>(views.size()),
                  [&](std::int64_t chunk, int worker) {
                      std::size_t region = static_cast<std::size_t>(chunk) * at_once;
                      if (region >= n_done) return;
                      if (worker == 0) proceed(depth, region, n);
                      try {
                          for (const std::size_t end = std::min(region + at_once, n); region < end; ++region)
                              evaluate_region(depth, region, views[static_cast<std::size_t>(worker)]);
                      } catch (const BudgetSpent&) {
                          std::lock_guard alone(mutex);
                          n_done = std::min(n_done.load(), region);
                      }
                  });
        return n_done;
    }

    void evaluate_region(int depth, std::size_t region, RegionView& view) {
        Level& level = levels_[depth];
        reader_.look_at(level.begin(region), level.end(region), view);
        const bool is_given = given_ != nullptr && depth == options().max_depth;
        const double leaf = level.leaf[region] =
            is_given ? options().temperature * given_[region] : reader_.leaf_evidence(view.total.data());
        const double best_below = find_terms(depth, region, view);
        finish(depth, leaf, view.terms, level.subtree[region]);
        level.upper[region] = level.subtree[region];
        if (!view.upper_terms.empty()) finish(depth, leaf, view.upper_terms, level.upper[region]);
        level.best[region] =
            view.terms.empty()
                ? leaf
                : std::fmax(options().log_stop[depth] + leaf,
                            options().log_split[depth] - std::log(static_cast<double>(view.terms.size())) + best_below);
    }

    // The region's terms if its children, which were not visited, are leaves by choice.
    void frontier_terms(int depth, RegionView& view) const {
        reader_.each_candidate(view, [&](int k, int, const std::vector<CodeSet>& sets, const double* stats) {
            double product = 0.0;
            for (std::size_t c = 0; c < sets.size(); ++c)
                product += reader_.leaf_evidence(stats + c * reader_.size()) +
                           reader_.stop_of_child(view, k, sets[c], c, depth + 1);
            view.terms.push_back(product);
        });
    }

    // The log of each candidate's product over children, in view.terms; returns the best of them if each child were its
    // best tree. Bounds from above, where they differ, are in view.upper_terms.
    double find_terms(int depth, std::size_t region, RegionView& view) const {
        view.terms.clear();
        view.upper_terms.clear();
        if (depth >= options().max_depth) return 0.0;
        if (!expands_root_) {  // one split stands for all: only an upper bound is known
            view.terms.push_back(-std::numeric_limits<double>::infinity());
            view.upper_terms.push_back(reader_.most(view.total.data()));
            return view.terms[0];
        }
        if (is_expanded(depth, region)) return inner_terms(depth, region, view);
        if (depth + 1 < options().max_depth) {  // the levels below were not visited: the children are leaves at least
            frontier_terms(depth, view);
            view.upper_terms.assign(view.terms.size(), reader_.most(view.total.data()));
        } else {
            reader_.last_terms(view);
        }
        return view.terms.empty() ? 0.0 : *std::max_element(view.terms.begin(), view.terms.end());
    }

    // Terms of a region that was expanded, and the best of them if each child were its best tree.
    double inner_terms(int depth, std::size_t region, RegionView& view) const {
        const Level &level = levels_[depth], &below = levels_[depth + 1];
        std::size_t at = level.first_child[region];
        double best = -std::numeric_limits<double>::infinity();
        const double n_possible = reader_.n_possible_splits(view);
        reader_.each_candidate(view, [&](int k, int, const std::vector<CodeSet>& sets, const double*) {
            double product = 0.0, best_product = 0.0, upper_product = 0.0;
            for (std::size_t c = 0; c < sets.size(); ++c) {
                const std::int32_t child = level.children[at++];
                product += child >= 0 ? below.subtree[child] : 0.0;
                upper_product += child >= 0 ? below.upper[child] : 0.0;
                best_product +=
                    child >= 0 ? below.best[child] : reader_.best_unseen(view, n_possible, k, sets[c], depth + 1);
            }
            view.terms.push_back(product);
            view.upper_terms.push_back(upper_product);
            best = std::fmax(best, best_product);
        });
        return best;
    }

    void finish(int depth, double leaf, const std::vector<double>& terms, double& subtree) const {
        if (terms.empty()) {
            subtree = leaf;
            return;
        }
        constexpr double infinity = std::numeric_limits<double>::infinity();
        const double top = *std::max_element(terms.begin(), terms.end());
        double average = top;  // infinite either way: nothing to add up
        if (std::fabs(top) != infinity) {
            double sum = 0.0;
            for (const double term : terms) sum += std::exp(term - top);
            average = top + std::log(sum / static_cast<double>(terms.size()));
        }
        // A prior that never splits against an infinite average: never.
        const double split = options().log_split[depth] == -infinity ? -infinity : options().log_split[depth] + average;
        subtree = weigh(options().log_stop[depth] + leaf, split).subtree_log_evidence;
    }

    Reader reader_;
    std::vector<Level> levels_;
    bool expands_root_ = true;  // false if there was no time even for that: the root is a leaf then
    // Of the current run.
    Budget budget_;
    Watch* watch_ = nullptr;
    const double* given_ = nullptr;     // evidence of the regions at max_depth
    std::vector<double> seconds_each_;  // for the evidence of one region, on each level
    std::int64_t n_listed_ = 0;
    std::atomic<bool> is_spent_ = false;
    bool lacks_memory_ = false;
};

}  // namespace everytree::exact
