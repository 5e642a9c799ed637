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

#include "exact_prior.hpp"
#include "exact_table.hpp"
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

struct ExactOptions {
    int max_depth;
    bool only_nontrivial;                     // candidates are the splits that separate the rows present
    std::vector<double> log_split, log_stop;  // by depth, 0 .. max_depth - 1
    std::int64_t max_regions;
    double negligible;  // posterior mass that regions have together at most, of which nothing is asked
    int n_jobs;
};

// What a run may spend. Regions that are listed but not expanded when it is spent get bounds.
struct Budget {
    std::int64_t regions = std::numeric_limits<std::int64_t>::max();
    double seconds = std::numeric_limits<double>::infinity();
};

// A region being looked at: its rows, what each column may still be, and the statistics of each code of each column.
struct RegionView {
    std::vector<std::uint64_t> rows;
    std::vector<CodeSet> codes;
    std::vector<double> by_code;  // (n_codes, size) of the column looked at last
    std::vector<double> total;
    std::vector<CodeSet> child_sets;
    std::vector<double> terms, upper_terms, child_statistics;
    std::vector<std::int64_t> rows_by_code, child_rows;
};

// What a region's posterior says about its own fate.
struct RegionFate {
    double log_stop = 0.0;
    std::vector<double> log_split;  // of each candidate
};

template <class Family>
class ExactKernel {
  public:
    using View = RegionView;

    ExactKernel(const Family& family, const double* prior, BitTable table, RowStatistics<Family> statistics,
                std::vector<std::uint64_t> all_rows, ExactOptions options)
        : family_(family),
          prior_(prior, prior + family.n_prior),
          table_(std::move(table)),
          statistics_(std::move(statistics)),
          all_rows_(std::move(all_rows)),
          options_(std::move(options)),
          unseen_(options_.log_split, options_.log_stop) {
        std::int64_t n_rows = 0;
        for (const std::uint64_t word : all_rows_) n_rows += std::popcount(word);
        if constexpr (requires { family_.tabulate(prior, 1); }) {
            family_.tabulate(prior_.data(), n_rows + 1);
            counts_whole_ = statistics_.counts_bits() && !options_.only_nontrivial && n_rows < family_.n_tabulated();
            for (int k = 0; k < table_.n_columns(); ++k) counts_whole_ &= table_.kind(k) == ColumnKind::ordered;
        }
    }

    // Level by level down, then up again. proceed(depth, done, total) is called now and then and may throw.
    template <class Proceed>
    void run(const Budget& budget, Proceed proceed) {
        levels_.assign(1, Level{});
        levels_[0].start.push_back(0);
        const int last = std::max(options_.max_depth - 1, 0);
        budget_ = budget;
        start_ = std::chrono::steady_clock::now();
        for (int depth = 0; depth < last; ++depth) expand(depth, proceed);
        for (int depth = last; depth >= 0; --depth) evaluate(depth, proceed);
    }

    const std::vector<Level>& levels() const { return levels_; }
    double log_evidence() const { return levels_[0].subtree[0]; }
    double log_best() const { return levels_[0].best[0]; }
    double log_upper() const { return levels_[0].upper[0]; }
    bool is_expanded(int depth, std::size_t region) const {
        return depth + 1 < static_cast<int>(levels_.size()) && region + 1 < levels_[depth].first_child.size();
    }
    std::size_t size() const { return statistics_.size(); }
    int n_jobs() const { return options_.n_jobs; }
    double negligible() const { return options_.negligible; }
    const BitTable& table() const { return table_; }
    std::size_t n_columns() const { return static_cast<std::size_t>(table_.n_columns()); }

    // Rows, code sets and statistics of a region.
    void look_at(const Condition* begin, const Condition* end, View& view) const {
        view.rows = all_rows_;
        view.codes.resize(static_cast<std::size_t>(table_.n_columns()));
        for (int k = 0; k < table_.n_columns(); ++k) view.codes[k] = table_.all_codes(k);
        for (const Condition* c = begin; c != end; ++c) {
            table_.restrict_to(*c, view.rows.data());
            view.codes[c->column] = c->codes;
        }
        view.total.resize(size());
        statistics_.sum(view.rows.data(), nullptr, table_.n_words(), view.total.data());
    }
    double leaf_evidence(const double* stat) const { return family_.log_evidence(stat, prior_.data()); }

    // Calls candidate(column, code, child sets, child statistics) for every candidate split of the region in view,
    // whose view.child_rows then tells how many rows each child has.
    template <class Candidate>
    void each_candidate(View& view, Candidate candidate) const {
        const std::size_t size = statistics_.size();
        std::vector<double>& stats = view.child_statistics;
        for (int k = 0; k < table_.n_columns(); ++k) {
            const ColumnKind kind = table_.kind(k);
            if (n_splits(kind, view.codes[k]) == 0) continue;
            count_codes(view, k);
            each_split(kind, view.codes[k], view.child_sets, [&](int code, const std::vector<CodeSet>& sets) {
                stats.resize(sets.size() * size);
                view.child_rows.assign(sets.size(), 0);
                int n_filled = 0;
                for (std::size_t c = 0; c < sets.size(); ++c) {
                    view.child_rows[c] = gather(view, kind, sets[c], stats.data() + c * size);
                    n_filled += view.child_rows[c] > 0 ? 1 : 0;
                }
                if (options_.only_nontrivial && n_filled < 2) return;
                candidate(k, code, sets, stats.data());
            });
        }
    }

    // Calls asked(column, number of children) for every candidate split of the region in view, in the same order.
    template <class Asked>
    void each_asked(View& view, Asked asked) const {
        if (options_.only_nontrivial) {  // which ones these are is told by the rows
            each_candidate(view,
                           [&](int k, int, const std::vector<CodeSet>& sets, const double*) { asked(k, sets.size()); });
            return;
        }
        for (int k = 0; k < table_.n_columns(); ++k) {
            const ColumnKind kind = table_.kind(k);
            const std::size_t n_children =
                kind == ColumnKind::multiway ? static_cast<std::size_t>(std::popcount(view.codes[k])) : 2;
            for (int i = n_splits(kind, view.codes[k]); i > 0; --i) asked(k, n_children);
        }
    }

    // The region's terms if its children are leaves: log of the product of each candidate's children, in order.
    void last_terms(View& view) const {
        if constexpr (requires { family_.tabulated(0); })
            if (counts_whole_) return last_terms_of_bits(view);
        const std::size_t size = statistics_.size();
        each_candidate(view, [&](int, int, const std::vector<CodeSet>& sets, const double* stats) {
            double product = 0.0;
            for (std::size_t c = 0; c < sets.size(); ++c) product += leaf_evidence(stats + c * size);
            view.terms.push_back(product);
        });
    }

  private:
    // The same for classes that are counted as bits and columns that are asked by thresholds: whole numbers throughout.
    void last_terms_of_bits(View& view) const
        requires requires(const Family& f) { f.tabulated(0); }
    {
        const int n_classes = family_.n_classes;
        std::int64_t left[max_bit_classes], all[max_bit_classes], n_all = 0;
        const double* log_rising_of[max_bit_classes + 1];
        for (int c = 0; c <= n_classes; ++c) log_rising_of[c] = family_.tabulated(c);
        for (int c = 0; c < n_classes; ++c) n_all += all[c] = static_cast<std::int64_t>(view.total[c]);
        const double* of_total = log_rising_of[n_classes];
        std::size_t n_terms = 0;
        for (int k = 0; k < table_.n_columns(); ++k)
            n_terms += static_cast<std::size_t>(n_splits(table_.kind(k), view.codes[k]));
        view.terms.resize(n_terms);
        double* term = view.terms.data();
        for (int k = 0; k < table_.n_columns(); ++k) {
            const int lo = lowest_of(view.codes[k]), hi = highest_of(view.codes[k]);
            std::int64_t n_left = 0;
            for (int c = 0; c < n_classes; ++c) left[c] = 0;
            for (int t = lo; t < hi; ++t) {
                const std::uint64_t* mask = table_.equal(k, t);
                double product = 0.0;
                for (int c = 0; c < n_classes; ++c) {
                    const std::int64_t count = statistics_.count(view.rows.data(), mask, c);
                    n_left += count;
                    left[c] += count;
                    product += log_rising_of[c][left[c]] + log_rising_of[c][all[c] - left[c]];
                }
                *term++ = product - of_total[n_left] - of_total[n_all - n_left];
            }
        }
    }
    static constexpr int max_bit_classes = 64;

    // Statistics of the rows in view for each code that column k may still have.
    void count_codes(View& view, int k) const {
        const std::size_t size = statistics_.size();
        view.by_code.resize(static_cast<std::size_t>(table_.n_codes(k)) * size);
        view.rows_by_code.resize(static_cast<std::size_t>(table_.n_codes(k)));
        const auto one = [&](int code) {
            double* stat = view.by_code.data() + code * size;
            statistics_.sum(view.rows.data(), table_.equal(k, code), table_.n_words(), stat);
            view.rows_by_code[code] =
                statistics_.n_rows(view.rows.data(), table_.equal(k, code), table_.n_words(), stat);
        };
        if (table_.kind(k) != ColumnKind::ordered) {
            for (CodeSet left = view.codes[k]; left; left &= left - 1) one(std::countr_zero(left));
            return;
        }
        const int lo = lowest_of(view.codes[k]), hi = highest_of(view.codes[k]);
        if (statistics_.counts_bits() && hi == lo + 1) {  // of two codes, what is not the one is the other
            one(lo);
            view.rows_by_code[hi] = 0;
            for (std::size_t i = 0; i < size; ++i) {
                view.by_code[hi * size + i] = view.total[i] - view.by_code[lo * size + i];
                view.rows_by_code[hi] += static_cast<std::int64_t>(view.by_code[hi * size + i]);
            }
            return;
        }
        for (int code = lo; code <= hi; ++code) one(code);
    }
    // Statistics of a child, and how many rows it has.
    std::int64_t gather(const View& view, ColumnKind kind, CodeSet set, double* out) const {
        const std::size_t size = statistics_.size();
        std::int64_t n_rows = 0;
        family_.layout.clear(out);
        const auto add = [&](int code) {
            family_.layout.add(out, view.by_code.data() + code * size);
            n_rows += view.rows_by_code[code];
        };
        if (kind == ColumnKind::ordered)
            for (int code = lowest_of(set); code <= highest_of(set); ++code) add(code);
        else
            for (; set; set &= set - 1) add(std::countr_zero(set));
        return n_rows;
    }

    // The next level: children of all regions of this one, each set of conditions once. Rows are counted on several
    // threads; what was found is listed in order, so that the numbers of regions do not depend on how many.
    template <class Proceed>
    void expand(int depth, Proceed proceed) {
        levels_.emplace_back();
        Level &from = levels_[depth], &to = levels_[depth + 1];
        KeyIndex known;
        constexpr std::size_t together = 64;
        std::vector<Expansion> found(static_cast<std::size_t>(std::max(options_.n_jobs, 1)));
        std::atomic<bool> is_over = false;
        const auto work = [&](std::int64_t chunk, int worker) {
            const std::size_t first = static_cast<std::size_t>(chunk) * together;
            found[worker].children.clear();
            found[worker].n_children.assign(is_over || is_out_of_time() ? 1 : 0, 0);  // no more will be listed
            if (found[worker].n_children.empty())
                find_children(from, first, std::min(first + together, from.size()), found[worker]);
        };
        const auto finish = [&](std::int64_t chunk, int worker) {
            if (worker == 0) proceed(depth, static_cast<std::size_t>(chunk) * together, from.size());
            const std::size_t first = static_cast<std::size_t>(chunk) * together;
            std::size_t at = 0;
            for (std::size_t i = 0; i < found[worker].n_children.size() && !is_over; ++i) {
                is_over = is_spent(static_cast<std::int64_t>(to.size()));
                if (is_over) return;
                const std::size_t end = at + found[worker].n_children[i];
                for (; at < end; ++at) {
                    const Child& child = found[worker].children[at];
                    known.expect(found[worker].children[std::min(at + 16, found[worker].children.size() - 1)].key);
                    if (!child.has_rows) {
                        from.children.push_back(-1);
                        continue;
                    }
                    const auto [number, is_new] = known.number(child.key);
                    if (is_new) add_region(to, from.begin(first + i), from.end(first + i), child.condition);
                    from.children.push_back(number);
                }
                from.first_child.push_back(from.children.size());
                if (static_cast<std::int64_t>(to.size()) > options_.max_regions)
                    throw std::length_error("more regions than max_regions");
            }
        };
        const auto n_chunks = static_cast<std::int64_t>((from.size() + together - 1) / together);
        in_ordered_chunks(n_chunks, options_.n_jobs, work, finish);
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
    bool is_out_of_time() const {
        const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start_;
        return spent.count() >= budget_.seconds;
    }
    bool is_spent(std::int64_t n_listed) const {
        for (const Level& level : levels_) n_listed += static_cast<std::int64_t>(level.size());
        n_listed -= static_cast<std::int64_t>(levels_.back().size());
        return n_listed >= budget_.regions || is_out_of_time();
    }
    static void add_region(Level& level, const Condition* begin, const Condition* end, const Condition& more) {
        bool done = false;
        for (const Condition* c = begin; c != end; ++c) {
            if (c->column == more.column) {
                level.conditions.push_back(more);
                done = true;
                continue;
            }
            if (!done && c->column > more.column) {
                level.conditions.push_back(more);
                done = true;
            }
            level.conditions.push_back(*c);
        }
        if (!done) level.conditions.push_back(more);
        level.start.push_back(level.conditions.size());
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
        constexpr std::size_t together = 256;
        std::vector<View> views(static_cast<std::size_t>(std::max(options_.n_jobs, 1)));
        const auto work = [&](std::int64_t chunk, int worker) {
            const std::size_t first = static_cast<std::size_t>(chunk) * together;
            for (std::size_t region = first; region < std::min(first + together, n); ++region)
                evaluate_region(depth, region, views[worker]);
        };
        const auto n_chunks = static_cast<std::int64_t>((n + together - 1) / together);
        in_ordered_chunks(n_chunks, options_.n_jobs, work, [&](std::int64_t chunk, int worker) {
            if (worker == 0) proceed(depth, static_cast<std::size_t>(chunk) * together, n);
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
                : std::fmax(options_.log_stop[depth] + leaf,
                            options_.log_split[depth] - std::log(static_cast<double>(view.terms.size())) + best_below);
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
    // Log probability beforehand that a child in view is a leaf: it is one with certainty where nothing can be asked.
    double stop_of_child(const View& view, int column, CodeSet codes, std::size_t child, int depth) const {
        if (depth >= options_.max_depth) return 0.0;
        if (options_.only_nontrivial)
            return view.child_rows[child] > 1 && rows_differ(view, {column, codes}) ? options_.log_stop[depth] : 0.0;
        for (int k = 0; k < table_.n_columns(); ++k)
            if (n_splits(table_.kind(k), k == column ? codes : view.codes[k]) > 0) return options_.log_stop[depth];
        return 0.0;
    }

  private:
    // Whether some column tells the rows of a child apart.
    bool rows_differ(const View& view, const Condition& condition) const {
        std::vector<std::uint64_t> rows = view.rows;
        table_.restrict_to(condition, rows.data());
        for (int k = 0; k < table_.n_columns(); ++k) {
            int n_codes = 0;
            for (int code = 0; code < table_.n_codes(k) && n_codes < 2; ++code)
                for (std::size_t w = 0; w < rows.size(); ++w)
                    if (rows[w] & table_.equal(k, code)[w]) {
                        ++n_codes;
                        break;
                    }
            if (n_codes > 1) return true;
        }
        return false;
    }

    // The log evidence of these rows is never above this, however they are divided: as many leaves as there are
    // classes, each of one class; 1 for probabilities; densities have no bound.
    double most(const double* stat) const {
        if constexpr (requires { family_.tabulated(0); }) {
            std::vector<double> alone(statistics_.size());
            double sum = 0.0;
            for (std::size_t c = 0; c < statistics_.size(); ++c) {
                std::fill(alone.begin(), alone.end(), 0.0);
                alone[c] = stat[c];
                sum += leaf_evidence(alone.data());
            }
            return sum;
        }
        return Family::is_discrete ? 0.0 : std::numeric_limits<double>::infinity();
    }

  public:
    RegionFate fate(int depth, std::size_t region, View& view) const {
        const Level& level = levels_[depth];
        look_at(level.begin(region), level.end(region), view);
        find_terms(depth, region, view);
        RegionFate out;
        if (view.terms.empty()) return out;
        out.log_stop = options_.log_stop[depth] + level.leaf[region] - level.subtree[region];
        const double each = options_.log_split[depth] - std::log(static_cast<double>(view.terms.size()));
        for (const double term : view.terms) out.log_split.push_back(each + term - level.subtree[region]);
        return out;
    }

    // The log of each candidate's product over children, in view.terms; returns the best of them if each child were its
    // best tree. Bounds from above, where they differ, are in view.upper_terms.
    double find_terms(int depth, std::size_t region, View& view) const {
        view.terms.clear();
        view.upper_terms.clear();
        if (depth >= options_.max_depth) return 0.0;
        if (is_expanded(depth, region)) return inner_terms(depth, region, view);
        if (depth + 1 < options_.max_depth) {  // what is below was not looked at: its children are leaves at least
            frontier_terms(depth, view);
            view.upper_terms.assign(view.terms.size(), most(view.total.data()));
        } else {
            last_terms(view);
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

    // What the prior alone says of a region without rows: nothing to learn there, but trees may go on.
    Unseen unseen(const View& view, int column, CodeSet codes, int depth) const {
        if (options_.only_nontrivial || depth >= options_.max_depth) return {};
        UnseenRegions::Shapes shapes;
        for (int k = 0; k < table_.n_columns(); ++k) {
            const CodeSet set = k == column ? codes : view.codes[k];
            const int n =
                table_.kind(k) == ColumnKind::ordered ? n_splits(table_.kind(k), set) : std::popcount(set) - 1;
            if (n > 0) ++shapes[{table_.kind(k), n}];
        }
        return unseen_.of(shapes, depth);
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
        const double split = options_.log_split[depth] == -infinity ? -infinity : options_.log_split[depth] + average;
        const double stop = options_.log_stop[depth] + leaf;
        const double larger = std::fmax(split, stop), smaller = std::fmin(split, stop);
        subtree = std::fabs(larger) == infinity ? larger : larger + std::log1p(std::exp(smaller - larger));
    }

    Family family_;
    std::vector<double> prior_;
    BitTable table_;
    RowStatistics<Family> statistics_;
    std::vector<std::uint64_t> all_rows_;
    ExactOptions options_;
    bool counts_whole_ = false;  // classes by thresholds: counts are whole numbers that the family has tabulated
    Budget budget_;
    std::chrono::steady_clock::time_point start_;
    std::vector<Level> levels_;
    UnseenRegions unseen_;
};

}  // namespace everytree
