// The exact sum over every tree and every choice of splits, to a given depth.
//
// A region is a set of conditions: for each column the codes that are still possible. The log evidence of its rows,
// averaged over all trees below it, depends on that set and on its depth alone, not on the order of the questions:
//   Q(S) = (1 - g) leaf(S) + g * mean over candidate splits of prod over children Q(child).
// Regions are listed level by level, each set once, down to the last level but one; the last splits are counted from
// their parents without being listed. Regions without rows have Q = 1 and are not listed at all.
#pragma once
#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <unordered_map>
#include <utility>
#include <vector>

#include "families.hpp"
#include "parallel.hpp"
#include "scramble.hpp"

namespace everytree {

enum class ColumnKind : std::uint8_t { ordered, one_against_rest, multiway };

// The codes a column may still have: an interval lo | hi << 32 for ordered columns, a set of bits for categories.
using CodeSet = std::uint64_t;
inline CodeSet interval(std::uint64_t lo, std::uint64_t hi) { return lo | hi << 32; }
inline int lowest_of(CodeSet set) { return static_cast<int>(set & 0xffffffffu); }
inline int highest_of(CodeSet set) { return static_cast<int>(set >> 32); }

struct Condition {
    std::int32_t column;
    CodeSet codes;
    bool operator==(const Condition&) const = default;
};

// Rows as bits, in an order in which each class starts a word of its own.
class BitTable {
  public:
    BitTable(const std::uint16_t* codes, std::int64_t n_rows, const std::vector<int>& n_codes,
             const std::vector<ColumnKind>& kinds, const std::vector<std::int64_t>& place, std::int64_t n_places)
        : n_codes_(n_codes), kinds_(kinds), n_words_((n_places + 63) / 64) {
        const std::size_t n_columns = n_codes.size();
        first_.resize(n_columns + 1, 0);
        for (std::size_t k = 0; k < n_columns; ++k) first_[k + 1] = first_[k] + static_cast<std::size_t>(n_codes[k]);
        equal_.assign(first_.back() * n_words_, 0);
        for (std::int64_t i = 0; i < n_rows; ++i)
            for (std::size_t k = 0; k < n_columns; ++k)
                set(equal_.data() + (first_[k] + codes[i * n_columns + k]) * n_words_, place[i]);
        upto_ = equal_;
        for (std::size_t k = 0; k < n_columns; ++k)
            for (int c = 1; c < n_codes[k]; ++c)
                for (std::size_t w = 0; w < n_words_; ++w)
                    upto_[(first_[k] + c) * n_words_ + w] |= upto_[(first_[k] + c - 1) * n_words_ + w];
    }
    std::size_t n_words() const { return n_words_; }
    int n_columns() const { return static_cast<int>(n_codes_.size()); }
    int n_codes(int column) const { return n_codes_[column]; }
    ColumnKind kind(int column) const { return kinds_[column]; }
    std::size_t first(int column) const { return first_[column]; }
    std::size_t n_entries() const { return first_.back(); }
    const std::uint64_t* equal(int column, int code) const {
        return equal_.data() + (first_[column] + code) * n_words_;
    }
    CodeSet all_codes(int column) const {
        const int n = n_codes_[column];
        if (kinds_[column] == ColumnKind::ordered) return interval(0, static_cast<std::uint64_t>(n - 1));
        return n == 64 ? ~CodeSet{0} : (CodeSet{1} << n) - 1;
    }

    // rows &= those that meet the condition
    void restrict_to(const Condition& condition, std::uint64_t* rows) const {
        if (kinds_[condition.column] == ColumnKind::ordered) {
            const int lo = lowest_of(condition.codes), hi = highest_of(condition.codes);
            const std::uint64_t* up = upto_.data() + (first_[condition.column] + hi) * n_words_;
            if (lo == 0) {
                for (std::size_t w = 0; w < n_words_; ++w) rows[w] &= up[w];
                return;
            }
            const std::uint64_t* below = upto_.data() + (first_[condition.column] + lo - 1) * n_words_;
            for (std::size_t w = 0; w < n_words_; ++w) rows[w] &= up[w] & ~below[w];
            return;
        }
        for (std::size_t w = 0; w < n_words_; ++w) {
            std::uint64_t any = 0;
            for (CodeSet left = condition.codes; left; left &= left - 1)
                any |= equal(condition.column, std::countr_zero(left))[w];
            rows[w] &= any;
        }
    }

  private:
    static void set(std::uint64_t* words, std::int64_t bit) { words[bit / 64] |= std::uint64_t{1} << (bit % 64); }
    std::vector<int> n_codes_;
    std::vector<ColumnKind> kinds_;
    std::size_t n_words_;
    std::vector<std::size_t> first_;
    std::vector<std::uint64_t> equal_, upto_;
};

// Calls split(code, child sets) for each candidate split of a column, in one fixed order; code is the threshold, the
// category set apart, or -1 for a split into all.
template <class Split>
void each_split(ColumnKind kind, CodeSet codes, std::vector<CodeSet>& children, Split split) {
    if (kind == ColumnKind::ordered) {
        children.resize(2);
        const int lo = lowest_of(codes), hi = highest_of(codes);
        for (int t = lo; t < hi; ++t) {
            children[0] = interval(static_cast<std::uint64_t>(lo), static_cast<std::uint64_t>(t));
            children[1] = interval(static_cast<std::uint64_t>(t) + 1, static_cast<std::uint64_t>(hi));
            split(t, children);
        }
        return;
    }
    const int n = std::popcount(codes);
    if (n < 2) return;
    if (kind == ColumnKind::multiway) {
        children.clear();
        for (CodeSet left = codes; left; left &= left - 1) children.push_back(left & (~left + 1));
        split(-1, children);
        return;
    }
    children.resize(2);
    for (CodeSet left = codes; left; left &= left - 1) {
        children[0] = left & (~left + 1);
        children[1] = codes ^ children[0];
        split(std::countr_zero(left), children);
        if (n == 2) return;  // the other one is the same split
    }
}

inline int n_splits(ColumnKind kind, CodeSet codes) {
    if (kind == ColumnKind::ordered) return highest_of(codes) - lowest_of(codes);
    const int n = std::popcount(codes);
    if (n < 2) return 0;
    return kind == ColumnKind::multiway || n == 2 ? 1 : n;
}

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
    int n_jobs;
};

// What a run may spend. Regions that are listed but not expanded when it is spent get bounds.
struct Budget {
    std::int64_t regions = std::numeric_limits<std::int64_t>::max();
    double seconds = std::numeric_limits<double>::infinity();
};

// The prior's own answers about what is below a region.
struct Unseen {
    double leaves = 1.0, entropy = 0.0, log_best = 0.0;
};

// A region being looked at: its rows, what each column may still be, and the statistics of each code of each column.
template <class Family>
struct RegionView {
    std::vector<std::uint64_t> rows;
    std::vector<CodeSet> codes;
    std::vector<double> by_code;  // (n_entries, size)
    std::vector<double> total;
    std::vector<double> scratch;
    std::vector<CodeSet> child_sets;
    std::vector<double> terms, upper_terms, child_statistics;
    std::vector<std::int64_t> rows_by_code, child_rows;
};

// Where the statistics of sets of rows come from: rows that count 1 each, by class, are counted as bits.
template <class Family>
class RowStatistics {
  public:
    RowStatistics(const Family& family, std::vector<double> of_row, std::vector<std::int64_t> class_start)
        : family_(family),
          size_(static_cast<std::size_t>(family.layout.size())),
          of_row_(std::move(of_row)),
          class_start_(std::move(class_start)) {}
    std::size_t size() const { return size_; }
    bool counts_bits() const { return !class_start_.empty(); }

    std::int64_t count(const std::uint64_t* rows, const std::uint64_t* mask, int c) const {
        std::int64_t count = 0;
        for (std::int64_t w = class_start_[c]; w < class_start_[c + 1]; ++w) count += std::popcount(rows[w] & mask[w]);
        return count;
    }

    // Rows of rows & mask, whose statistics are known: a row's own may all be 0.
    std::int64_t n_rows(const std::uint64_t* rows, const std::uint64_t* mask, std::size_t n_words,
                        const double* stat) const {
        std::int64_t n = 0;
        if (counts_bits())
            for (std::size_t c = 0; c < size_; ++c) n += static_cast<std::int64_t>(stat[c]);
        else
            for (std::size_t w = 0; w < n_words; ++w) n += std::popcount(rows[w] & mask[w]);
        return n;
    }

    // Statistics of rows & mask (mask may be null).
    void sum(const std::uint64_t* rows, const std::uint64_t* mask, std::size_t n_words, double* out) const {
        if (counts_bits()) {
            for (std::size_t c = 0; c + 1 < class_start_.size(); ++c) {
                const int of_class = static_cast<int>(c);
                out[c] = static_cast<double>(count(rows, mask ? mask : rows, of_class));
            }
            return;
        }
        family_.layout.clear(out);
        for (std::size_t w = 0; w < n_words; ++w)
            for (std::uint64_t left = mask ? rows[w] & mask[w] : rows[w]; left; left &= left - 1)
                family_.layout.add(out, of_row_.data() + (w * 64 + std::countr_zero(left)) * size_);
    }

  private:
    Family family_;
    std::size_t size_;
    std::vector<double> of_row_;             // (n_places, size), empty where bits are counted
    std::vector<std::int64_t> class_start_;  // first word of each class and the end, empty where they are not
};

template <class Family>
class ExactKernel {
  public:
    using View = RegionView<Family>;

    ExactKernel(const Family& family, const double* prior, BitTable table, RowStatistics<Family> statistics,
                std::vector<std::uint64_t> all_rows, ExactOptions options)
        : family_(family),
          prior_(prior, prior + family.n_prior),
          table_(std::move(table)),
          statistics_(std::move(statistics)),
          all_rows_(std::move(all_rows)),
          options_(std::move(options)) {
        std::int64_t n_rows = 0;
        for (const std::uint64_t word : all_rows_) n_rows += std::popcount(word);
        if constexpr (requires { family_.tabulate(prior, 1); }) family_.tabulate(prior_.data(), n_rows + 1);
        for (int k = 0; k < table_.n_columns(); ++k) {
            all_ordered_ &= table_.kind(k) == ColumnKind::ordered;
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
    const Family& family() const { return family_; }
    const BitTable& table() const { return table_; }
    const ExactOptions& options() const { return options_; }
    std::size_t size() const { return statistics_.size(); }

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
        view.scratch.resize(2 * size());
        statistics_.sum(view.rows.data(), nullptr, table_.n_words(), view.total.data());
    }
    double leaf_evidence(const double* stat) const { return family_.log_evidence(stat, prior_.data()); }

    // Calls candidate(column, code, n_children, child sets, child statistics, child has rows) for every candidate split
    // of the region in view.
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

    // The region's terms if its children are leaves: log of the product of each candidate's children, in order.
    void last_terms(View& view) const {
        view.terms.clear();
        if constexpr (requires { family_.tabulated(0); })
            if (statistics_.counts_bits() && all_ordered_ && !options_.only_nontrivial) return last_terms_of_bits(view);
        const std::size_t size = statistics_.size();
        each_candidate(view, [&](int, int, const std::vector<CodeSet>& sets, const double* stats) {
            double product = 0.0;
            for (std::size_t c = 0; c < sets.size(); ++c) product += leaf_evidence(stats + c * size);
            view.terms.push_back(product);
        });
    }

  private:
    struct Edges {
        std::vector<std::int32_t> column, code, children;
        std::vector<std::size_t> n_children;
        std::vector<double> share;
    };
    static double weighted_log(double log_p) {
        return log_p == -std::numeric_limits<double>::infinity() ? 0.0 : std::exp(log_p) * log_p;
    }

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
                view.terms.push_back(product - of_total[n_left] - of_total[n_all - n_left]);
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

    struct Key {
        std::uint64_t one, two;
        bool operator==(const Key&) const = default;
    };
    struct KeyHash {
        std::size_t operator()(const Key& key) const { return key.one; }
    };
    static Key key_of(const Condition& condition) {
        const std::uint64_t mixed = scramble(condition.codes + 0x9e3779b97f4a7c15ull * (condition.column + 1));
        return {mixed, scramble(mixed ^ 0xd1b54a32d192ed03ull)};
    }

    // The next level: children of all regions of this one, each set of conditions once.
    template <class Proceed>
    void expand(int depth, Proceed proceed) {
        std::unordered_map<Key, std::int32_t, KeyHash> known;
        levels_.emplace_back();
        Level &from = levels_[depth], &to = levels_[depth + 1];
        View view;
        std::vector<Condition> child;
        for (std::size_t region = 0; region < from.size(); ++region) {
            if (region % 64 == 0) proceed(depth, region, from.size());
            if (is_spent(static_cast<std::int64_t>(to.size()))) return;
            const Condition *begin = from.begin(region), *end = from.end(region);
            look_at(begin, end, view);
            Key own{0, 0};
            for (const Condition* c = begin; c != end; ++c) {
                const Key key = key_of(*c);
                own = {own.one + key.one, own.two + key.two};
            }
            each_candidate(view, [&](int k, int, const std::vector<CodeSet>& sets, const double*) {
                for (std::size_t c = 0; c < sets.size(); ++c) {
                    if (view.child_rows[c] == 0) {
                        from.children.push_back(-1);
                        continue;
                    }
                    Key key = key_of({k, sets[c]});
                    key = {key.one + own.one, key.two + own.two};
                    for (const Condition* old = begin; old != end; ++old)
                        if (old->column == k) {
                            const Key gone = key_of(*old);
                            key = {key.one - gone.one, key.two - gone.two};
                        }
                    const auto [at, is_new] = known.try_emplace(key, static_cast<std::int32_t>(to.size()));
                    if (is_new) add_region(to, begin, end, {k, sets[c]});
                    from.children.push_back(at->second);
                }
            });
            from.first_child.push_back(from.children.size());
            if (static_cast<std::int64_t>(to.size()) > options_.max_regions)
                throw std::length_error("more regions than max_regions");
        }
    }
    bool is_spent(std::int64_t n_listed) const {
        for (const Level& level : levels_) n_listed += static_cast<std::int64_t>(level.size());
        n_listed -= static_cast<std::int64_t>(levels_.back().size());
        const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start_;
        return n_listed >= budget_.regions || spent.count() >= budget_.seconds;
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
        const bool can_split = depth < options_.max_depth, is_last = depth + 1 >= options_.max_depth;
        double best_below = 0.0;
        view.terms.clear();
        view.upper_terms.clear();
        if (can_split && is_expanded(depth, region)) {
            best_below = inner_terms(depth, region, view);
        } else if (can_split) {
            if (is_last) {
                last_terms(view);
            } else {  // what is below was not looked at: its children are leaves at least
                frontier_terms(depth, view);
                view.upper_terms.assign(view.terms.size(), most(view.total.data()));
            }
            if (!view.terms.empty()) best_below = *std::max_element(view.terms.begin(), view.terms.end());
        }
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
        view.terms.clear();
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
    // The posterior as a graph of regions, for prediction. A split whose share of the whole posterior is below the
    // threshold is left out, and its region a leaf instead; `dropped` is all that was left out.
    struct Graph {
        std::vector<double> statistics;  // (n_nodes, size); node 0 is the root
        std::vector<double> stop;        // probability that a row that is here ends here
        std::vector<std::int64_t> first_edge{0};
        std::vector<std::int32_t> column, code;
        std::vector<double> share;  // of each edge, given that a row is here
        std::vector<std::int64_t> first_child{0};
        std::vector<std::int32_t> children;
        double dropped = 0.0;
    };
    Graph compile(double threshold) const {
        Graph graph;
        std::vector<double> mass{1.0};
        std::vector<std::int32_t> node_of{0}, next_node_of;  // by region of the level, -1 where it is not reached
        std::vector<double> next_mass;
        graph.statistics.resize(size());
        graph.stop.assign(1, 1.0);
        std::vector<Edges> edges(1);
        const auto new_node = [&](const double* stat) {
            graph.statistics.insert(graph.statistics.end(), stat, stat + size());
            graph.stop.push_back(1.0);
            edges.emplace_back();
            return static_cast<std::int32_t>(graph.stop.size() - 1);
        };
        const std::vector<double> zeros(size(), 0.0);
        View view;
        for (int depth = 0; depth < static_cast<int>(levels_.size()); ++depth) {
            const Level& level = levels_[depth];
            const std::size_t n_below = depth + 1 < static_cast<int>(levels_.size()) ? levels_[depth + 1].size() : 0;
            next_node_of.assign(n_below, -1);
            next_mass.assign(n_below, 0.0);
            std::int32_t nothing = -1;  // the one node below this level of all regions without rows
            for (std::size_t region = 0; region < level.size(); ++region) {
                const std::int32_t node = node_of[region];
                if (node < 0) continue;
                const Fate here = fate(depth, region, view);
                std::copy(view.total.begin(), view.total.end(), graph.statistics.begin() + node * size());
                if (here.log_split.empty()) continue;
                graph.stop[node] = std::exp(here.log_stop);
                std::size_t i = 0, at = is_expanded(depth, region) ? level.first_child[region] : 0;
                each_candidate(view, [&](int k, int code, const std::vector<CodeSet>& sets, const double* stats) {
                    const double share = std::exp(here.log_split[i++]);
                    const std::size_t first = at;
                    if (is_expanded(depth, region)) at += sets.size();
                    if (share * mass[region] < threshold || share == 0.0) {
                        graph.stop[node] += share;
                        graph.dropped += share * mass[region];
                        return;
                    }
                    edges[node].column.push_back(k);
                    edges[node].code.push_back(code);
                    edges[node].share.push_back(share);
                    for (std::size_t c = 0; c < sets.size(); ++c) {
                        const std::int32_t child = is_expanded(depth, region) ? level.children[first + c] : -2;
                        std::int32_t to;
                        if (child >= 0) {
                            if (next_node_of[child] < 0) next_node_of[child] = new_node(zeros.data());
                            to = next_node_of[child];
                            next_mass[child] += share * mass[region];
                        } else if (view.child_rows[c] > 0) {
                            to = new_node(stats + c * size());
                        } else {
                            to = nothing = nothing < 0 ? new_node(zeros.data()) : nothing;
                        }
                        edges[node].children.push_back(to);
                    }
                    edges[node].n_children.push_back(sets.size());
                });
            }
            node_of.swap(next_node_of);
            mass.swap(next_mass);
        }
        for (const Edges& own : edges) {
            std::size_t at = 0;
            for (std::size_t e = 0; e < own.column.size(); ++e) {
                graph.column.push_back(own.column[e]);
                graph.code.push_back(own.code[e]);
                graph.share.push_back(own.share[e]);
                for (std::size_t c = 0; c < own.n_children[e]; ++c) graph.children.push_back(own.children[at++]);
                graph.first_child.push_back(static_cast<std::int64_t>(graph.children.size()));
            }
            graph.first_edge.push_back(static_cast<std::int64_t>(graph.column.size()));
        }
        return graph;
    }

    // What a region's posterior says about its own fate.
    struct Fate {
        double log_stop;
        std::vector<double> log_split;  // of each candidate
    };
    Fate fate(int depth, std::size_t region, View& view) const {
        const Level& level = levels_[depth];
        look_at(level.begin(region), level.end(region), view);
        view.terms.clear();
        if (depth < options_.max_depth) {
            if (is_expanded(depth, region)) {
                inner_terms(depth, region, view);
            } else if (depth + 1 < options_.max_depth) {
                frontier_terms(depth, view);
            } else {
                last_terms(view);
            }
        }
        Fate out{0.0, {}};
        if (view.terms.empty()) return out;
        out.log_stop = options_.log_stop[depth] + level.leaf[region] - level.subtree[region];
        const double each = options_.log_split[depth] - std::log(static_cast<double>(view.terms.size()));
        for (const double term : view.terms) out.log_split.push_back(each + term - level.subtree[region]);
        return out;
    }

    // Sums over the whole joint posterior, from the root down.
    struct Summary {
        std::vector<double> root_feature, expected_splits;  // by column
        double expected_leaves = 0.0, entropy = 0.0;
    };
    Summary summary() const {
        Summary out;
        const auto n_columns = static_cast<std::size_t>(table_.n_columns());
        out.root_feature.assign(n_columns, 0.0);
        out.expected_splits.assign(n_columns, 0.0);
        std::vector<double> mass{1.0}, next;
        View view;
        for (int depth = 0; depth < static_cast<int>(levels_.size()); ++depth) {
            const Level& level = levels_[depth];
            next.assign(depth + 1 < static_cast<int>(levels_.size()) ? levels_[depth + 1].size() : 0, 0.0);
            for (std::size_t region = 0; region < level.size(); ++region) {
                if (!(mass[region] > 0.0)) continue;
                const bool is_last = !is_expanded(depth, region);
                const Fate here = fate(depth, region, view);
                out.expected_leaves += mass[region] * std::exp(here.log_stop);
                out.entropy -= mass[region] * weighted_log(here.log_stop);
                std::size_t i = 0, at = is_last ? 0 : level.first_child[region];
                if (here.log_split.empty()) continue;
                each_candidate(view, [&](int k, int, const std::vector<CodeSet>& sets, const double*) {
                    const double log_share = here.log_split[i++], share = mass[region] * std::exp(log_share);
                    out.entropy -= mass[region] * weighted_log(log_share);
                    out.expected_splits[k] += share;
                    if (depth == 0) out.root_feature[k] += share;
                    for (std::size_t c = 0; c < sets.size(); ++c) {
                        const std::int32_t child = is_last ? -1 : level.children[at++];
                        if (child >= 0) {
                            next[child] += share;
                            continue;
                        }
                        const Unseen below = is_last ? Unseen{} : unseen(view, k, sets[c], depth + 1);
                        out.expected_leaves += share * below.leaves;
                        out.entropy += share * below.entropy;
                    }
                });
            }
            mass.swap(next);
        }
        return out;
    }

    // Terms of a region that was expanded, and the best of them if each child were its best tree.
    double inner_terms(int depth, std::size_t region, View& view) const {
        const Level &level = levels_[depth], &below = levels_[depth + 1];
        std::size_t at = level.first_child[region];
        double best = -std::numeric_limits<double>::infinity();
        view.terms.clear();
        view.upper_terms.clear();
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
        Shapes shapes;
        for (int k = 0; k < table_.n_columns(); ++k) {
            const CodeSet set = k == column ? codes : view.codes[k];
            const int n =
                table_.kind(k) == ColumnKind::ordered ? n_splits(table_.kind(k), set) : std::popcount(set) - 1;
            if (n > 0) ++shapes[{table_.kind(k), n}];
        }
        return unseen_of(shapes, depth);
    }

  private:
    // Only how many columns there are of each kind and number of splits matters, so few of these are ever computed.
    using Shapes = std::map<std::pair<ColumnKind, int>, int>;
    Unseen unseen_of(const Shapes& shapes, int depth) const {
        if (depth >= options_.max_depth || shapes.empty()) return {};
        std::lock_guard alone(*unseen_lock_);
        return unseen_locked(shapes, depth);
    }
    Unseen unseen_locked(const Shapes& shapes, int depth) const {
        if (depth >= options_.max_depth || shapes.empty()) return {};
        const auto known = unseen_.find({depth, shapes});
        if (known != unseen_.end()) return known->second;
        double n = 0.0, leaves = 0.0, entropy = 0.0, best = -std::numeric_limits<double>::infinity();
        for (const auto& [shape, n_columns] : shapes) {
            const auto [kind, n_own] = shape;
            const int n_codes = n_own + 1;
            Shapes others = shapes;
            if (--others[shape] == 0) others.erase(shape);
            // Sizes of the children of each split of such a column, and how many splits are alike.
            std::vector<std::pair<std::vector<int>, double>> splits;
            if (kind == ColumnKind::multiway) {
                splits.push_back({std::vector<int>(static_cast<std::size_t>(n_codes), 1), 1.0});
            } else if (kind == ColumnKind::one_against_rest) {
                splits.push_back({{1, n_codes - 1}, n_codes == 2 ? 1.0 : static_cast<double>(n_codes)});
            } else {
                for (int t = 1; t < n_codes; ++t) splits.push_back({{t, n_codes - t}, 1.0});
            }
            for (const auto& [sizes, alike] : splits) {
                double below_leaves = 0.0, below_entropy = 0.0, below_best = 0.0;
                for (const int size : sizes) {
                    Shapes child = others;
                    if (size > 1) ++child[{kind, size - 1}];
                    const Unseen below = unseen_locked(child, depth + 1);
                    below_leaves += below.leaves;
                    below_entropy += below.entropy;
                    below_best += below.log_best;
                }
                n += alike * n_columns;
                leaves += alike * n_columns * below_leaves;
                entropy += alike * n_columns * below_entropy;
                best = std::fmax(best, below_best);
            }
        }
        const double g = std::exp(options_.log_split[depth]), stop = std::exp(options_.log_stop[depth]);
        Unseen out;
        out.leaves = stop + g * leaves / n;
        out.entropy = g * entropy / n + (g > 0.0 ? g * (std::log(n) - options_.log_split[depth]) : 0.0) -
                      (stop > 0.0 ? stop * options_.log_stop[depth] : 0.0);
        out.log_best = std::fmax(options_.log_stop[depth], options_.log_split[depth] - std::log(n) + best);
        return unseen_[{depth, shapes}] = out;
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
    bool all_ordered_ = true;
    Budget budget_;
    std::chrono::steady_clock::time_point start_;
    std::vector<Level> levels_;
    std::unique_ptr<std::mutex> unseen_lock_ = std::make_unique<std::mutex>();
    mutable std::map<std::pair<int, Shapes>, Unseen> unseen_;
};

}  // namespace everytree
