// The exact sum over every tree and every choice of splits, to a given depth.
//
// A region is a set of conditions: for each column the codes that are still possible. The log evidence of its rows,
// averaged over all trees below it, depends on that set and on its depth alone, not on the order of the questions:
//   Q(S) = (1 - g) leaf(S) + g * mean over candidate splits of prod over children Q(child).
// Regions are listed level by level, each set once, down to the last level but one; the last splits are counted from
// their parents without being listed. Regions without rows have Q = 1 and are not listed at all.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "exact_region.hpp"
#include "key_index.hpp"
#include "parallel.hpp"

namespace everytree {

// All regions of one depth, each with at most `depth` conditions, sorted by column.
struct Level {
    std::vector<std::size_t> start{0};  // of each region's conditions
    std::vector<Condition> conditions;
    std::vector<double> leaf, subtree, best, upper;
    // Regions that were expanded: their candidates, and for each child its number on the next level, or -1 if empty.
    std::vector<std::size_t> first_child{0};
    std::vector<std::int32_t> children;

    std::size_t size() const { return start.size() - 1; }
    const Condition* begin(std::size_t region) const { return conditions.data() + start[region]; }
    const Condition* end(std::size_t region) const { return conditions.data() + start[region + 1]; }
};

// What a run may spend. Regions that are listed but not expanded when it is spent get bounds.
struct Budget {
    std::int64_t regions = std::numeric_limits<std::int64_t>::max();     // listed
    std::int64_t expansions = std::numeric_limits<std::int64_t>::max();  // regions whose children are listed
    double seconds = std::numeric_limits<double>::infinity();
};

// What a region's posterior says about its own fate.
struct RegionFate {
    double log_stop = 0.0;
    std::vector<double> log_split;  // of each candidate
};

// Calls work(first, last, part) for stretches of regions on several threads, a part to each, and finish(first, part,
// worker) for each stretch in order.
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
class ExactKernel : public RegionReader<Family> {
    using Reader = RegionReader<Family>;

  public:
    using View = RegionView;
    using Reader::each_candidate;
    using Reader::leaf_evidence;
    using Reader::look_at;
    using Reader::options;
    using Reader::Reader;
    using Reader::size;
    using Reader::stop_of_child;
    using Reader::unseen;

    // Level by level down, then up again. proceed(depth, done, total) is called now and then and may throw.
    template <class Proceed>
    void run(const Budget& budget, Proceed proceed) {
        levels_.assign(1, Level{});
        levels_[0].start.push_back(0);
        const int last = std::max(options().max_depth - 1, 0);
        budget_ = budget;
        start_ = std::chrono::steady_clock::now();
        for (int depth = 0; depth < last; ++depth) expand(depth, proceed);
        for (int depth = last; depth >= 0; --depth) evaluate(depth, proceed);
    }

    const std::vector<Level>& levels() const { return levels_; }
    double log_evidence() const { return levels_[0].subtree[0]; }
    double log_upper() const { return levels_[0].upper[0]; }
    bool is_expanded(int depth, std::size_t region) const {
        return depth + 1 < static_cast<int>(levels_.size()) && region + 1 < levels_[depth].first_child.size();
    }
    // Regions whose children were listed.
    std::int64_t n_expanded() const {
        std::size_t n = 0;
        for (const Level& level : levels_) n += level.first_child.size() - 1;
        return static_cast<std::int64_t>(n);
    }
    // Room of its own for each thread.
    template <class Part>
    std::vector<Part> parts() const {
        return std::vector<Part>(static_cast<std::size_t>(std::max(options().n_jobs, 1)));
    }

  private:
    // The next level: children of all regions of this one, each set of conditions once. Rows are counted on several
    // threads; what was found is listed in order, so that the numbers of regions do not depend on how many.
    template <class Proceed>
    void expand(int depth, Proceed proceed) {
        levels_.emplace_back();
        Level &from = levels_[depth], &to = levels_[depth + 1];
        KeyIndex known(n_children_expected(depth));
        std::vector<Expansion> found = parts<Expansion>();
        std::atomic<bool> is_over = false;
        const auto work = [&](std::size_t first, std::size_t last, Expansion& own) {
            own.children.clear();
            own.n_children.assign(is_over || is_out_of_time() ? 1 : 0, 0);  // no more will be listed
            if (own.n_children.empty()) find_children(from, first, last, own);
        };
        const auto finish = [&](std::size_t first, const Expansion& own, int worker) {
            if (worker == 0) proceed(depth, first, from.size());
            std::size_t at = 0;
            for (std::size_t i = 0; i < own.n_children.size(); ++i) {
                is_over = is_over || is_spent();
                if (is_over) return;
                list_children(from, to, first + i, own, at, at + own.n_children[i], known);
                at += own.n_children[i];
                if (static_cast<std::int64_t>(to.size()) > options().max_regions)
                    throw std::length_error("more regions than max_regions");
            }
        };
        // Few of them together where there are few in all, so that listing begins soon.
        over_regions(from.size(), std::clamp<std::size_t>(from.size() / 64, 16, 64), found, work, finish);
    }

    // Two regions a column and region, each of which is found once from each of its conditions.
    std::size_t n_children_expected(int depth) const {
        return 2 * levels_[depth].size() * Reader::n_columns() / static_cast<std::size_t>(depth + 1);
    }

    struct Child {
        Key key;
        Condition condition;
        bool has_rows;
    };
    struct Expansion {
        RegionView view;
        std::vector<Child> children;
        std::vector<std::size_t> n_children;  // of each region
    };
    void find_children(const Level& level, std::size_t first, std::size_t last, Expansion& found) const {
        for (std::size_t region = first; region < last; ++region) {
            const Condition *begin = level.begin(region), *end = level.end(region);
            look_at(begin, end, found.view);
            const Key own = key_of(begin, end);
            const std::size_t n_before = found.children.size();
            each_candidate(found.view, [&](int k, int, const std::vector<CodeSet>& sets, const double*) {
                Key others = own;
                for (const Condition* old = begin; old != end; ++old)
                    if (old->column == k) others = others - key_of(*old);
                for (std::size_t c = 0; c < sets.size(); ++c)
                    found.children.push_back(
                        {others + key_of({k, sets[c]}), {k, sets[c]}, found.view.child_rows[c] > 0});
            });
            found.n_children.push_back(found.children.size() - n_before);
        }
    }
    // Children at .. end of one region, each with its number on the next level.
    static void list_children(Level& from, Level& to, std::size_t region, const Expansion& found, std::size_t at,
                              std::size_t end, KeyIndex& known) {
        for (; at < end; ++at) {
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
            }
            from.children.push_back(number);
        }
        from.first_child.push_back(from.children.size());
    }
    bool is_out_of_time() const {
        const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start_;
        return spent.count() >= budget_.seconds;
    }
    bool is_spent() const {
        std::size_t n_listed = 0;
        for (const Level& level : levels_) n_listed += level.size();
        return static_cast<std::int64_t>(n_listed) >= budget_.regions || n_expanded() >= budget_.expansions ||
               is_out_of_time();
    }

    // Evidence of all regions of a level, the one below being done; on several threads, the same bits for any number.
    template <class Proceed>
    void evaluate(int depth, Proceed proceed) {
        Level& level = levels_[depth];
        const std::size_t n = level.size();
        level.leaf.resize(n);
        level.subtree.resize(n);
        level.best.resize(n);
        level.upper.resize(n);
        std::vector<View> views = parts<View>();
        constexpr std::size_t together = 256;
        in_chunks(static_cast<std::int64_t>((n + together - 1) / together), static_cast<int>(views.size()),
                  [&](std::int64_t chunk, int worker) {
                      const std::size_t first = static_cast<std::size_t>(chunk) * together;
                      if (worker == 0) proceed(depth, first, n);
                      for (std::size_t region = first; region < std::min(first + together, n); ++region)
                          evaluate_region(depth, region, views[static_cast<std::size_t>(worker)]);
                  });
    }

    void evaluate_region(int depth, std::size_t region, View& view) {
        Level& level = levels_[depth];
        look_at(level.begin(region), level.end(region), view);
        const double leaf = level.leaf[region] = leaf_evidence(view.total.data());
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

    // The region's terms if its children, which were not looked at, are leaves by choice.
    void frontier_terms(int depth, View& view) const {
        each_candidate(view, [&](int k, int, const std::vector<CodeSet>& sets, const double* stats) {
            double product = 0.0;
            for (std::size_t c = 0; c < sets.size(); ++c)
                product += leaf_evidence(stats + c * size()) + stop_of_child(view, k, sets[c], c, depth + 1);
            view.terms.push_back(product);
        });
    }

  public:
    RegionFate fate(int depth, std::size_t region, View& view) const {
        const Level& level = levels_[depth];
        look_at(level.begin(region), level.end(region), view);
        find_terms(depth, region, view);
        RegionFate out;
        if (view.terms.empty()) return out;
        out.log_stop = options().log_stop[depth] + level.leaf[region] - level.subtree[region];
        const double each = options().log_split[depth] - std::log(static_cast<double>(view.terms.size()));
        for (const double term : view.terms) out.log_split.push_back(each + term - level.subtree[region]);
        return out;
    }

    // The log of each candidate's product over children, in view.terms; returns the best of them if each child were its
    // best tree. Bounds from above, where they differ, are in view.upper_terms.
    double find_terms(int depth, std::size_t region, View& view) const {
        view.terms.clear();
        view.upper_terms.clear();
        if (depth >= options().max_depth) return 0.0;
        if (is_expanded(depth, region)) return inner_terms(depth, region, view);
        if (depth + 1 < options().max_depth) {  // what is below was not looked at: its children are leaves at least
            frontier_terms(depth, view);
            view.upper_terms.assign(view.terms.size(), Reader::most(view.total.data()));
        } else {
            Reader::last_terms(view);
        }
        return view.terms.empty() ? 0.0 : *std::max_element(view.terms.begin(), view.terms.end());
    }

    // Terms of a region that was expanded, and the best of them if each child were its best tree.
    double inner_terms(int depth, std::size_t region, View& view) const {
        const Level &level = levels_[depth], &below = levels_[depth + 1];
        std::size_t at = level.first_child[region];
        double best = -std::numeric_limits<double>::infinity();
        each_candidate(view, [&](int k, int, const std::vector<CodeSet>& sets, const double*) {
            double product = 0.0, best_product = 0.0, upper_product = 0.0;
            for (std::size_t c = 0; c < sets.size(); ++c) {
                const std::int32_t child = level.children[at++];
                product += child >= 0 ? below.subtree[child] : 0.0;
                upper_product += child >= 0 ? below.upper[child] : 0.0;
                best_product += child >= 0 ? below.best[child] : unseen(view, k, sets[c], depth + 1).log_best;
            }
            view.terms.push_back(product);
            view.upper_terms.push_back(upper_product);
            best = std::fmax(best, best_product);
        });
        return best;
    }

  private:
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
        const double split = options().log_split[depth] == -infinity ? -infinity : options().log_split[depth] + average;
        const double stop = options().log_stop[depth] + leaf;
        const double larger = std::fmax(split, stop), smaller = std::fmin(split, stop);
        subtree = std::fabs(larger) == infinity ? larger : larger + std::log1p(std::exp(smaller - larger));
    }

    Budget budget_;
    std::chrono::steady_clock::time_point start_;
    std::vector<Level> levels_;
};

}  // namespace everytree
