// One region: its rows, its possible splits, and the statistics of the children.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "exact/prior.hpp"
#include "exact/table.hpp"
#include "exact/watch.hpp"

namespace everytree::exact {

// The current region: its rows, the codes each column may still have, and the statistics of each code of each column.
struct RegionView {
    std::vector<std::uint64_t> rows;
    std::vector<CodeSet> codes;
    std::vector<double> by_code;  // (n_codes, size) of the current column
    std::vector<double> total;
    std::vector<CodeSet> child_sets;
    std::vector<double> above;  // (n_codes, size) of all codes from each one on, of an ordered column
    std::vector<double> terms, upper_terms, child_statistics;
    std::vector<std::int64_t> rows_by_code, child_rows;
    Pace pace;
};

struct ExactOptions {
    int max_depth;
    bool only_nontrivial;                     // candidates are the splits that separate the rows present
    std::vector<double> log_split, log_stop;  // by depth, 0 .. max_depth - 1
    double negligible;   // maximum posterior mass of all regions together whose splits are left out
    double temperature;  // power of the evidence of leaves
    bool is_continued;   // regions at max_depth are listed too, and their evidence is given
    int n_jobs;
};

template <class Family>
class RegionReader {
  public:
    using View = RegionView;
    static constexpr int max_bit_classes = 64;

    RegionReader(const Family& family, const double* prior, BitTable table, RowStatistics<Family> statistics,
                 std::vector<std::uint64_t> all_rows, ExactOptions options)
        : RegionReader(std::make_shared<const Family>(family), prior, std::move(table), std::move(statistics),
                       std::move(all_rows), std::move(options)) {}
    // A family that comes with a table for this prior is shared: the table may be as large as the rows.
    RegionReader(std::shared_ptr<const Family> family, const double* prior, BitTable table,
                 RowStatistics<Family> statistics, std::vector<std::uint64_t> all_rows, ExactOptions options)
        : prior_(prior, prior + family->n_prior),
          table_(std::move(table)),
          statistics_(std::move(statistics)),
          all_rows_(std::move(all_rows)),
          options_(std::move(options)),
          unseen_(options_.log_split, options_.log_stop) {
        std::int64_t n_rows = 0;
        for (const std::uint64_t word : all_rows_) n_rows += std::popcount(word);
        family_ = with_table(std::move(family), n_rows);
        if constexpr (requires { family_->tabulated(0); }) {
            counts_whole_ = statistics_.counts_bits() && !options_.only_nontrivial && n_rows < family_->n_tabulated() &&
                            family_->n_classes <= max_bit_classes;
            for (int k = 0; k < table_.n_columns(); ++k) counts_whole_ &= table_.kind(k) == ColumnKind::ordered;
        }
        for (int k = 0; k < table_.n_columns(); ++k) n_steps_ += n_steps_of(k);
    }

    std::size_t size() const { return statistics_.size(); }
    const ExactOptions& options() const { return options_; }
    std::size_t n_columns() const { return static_cast<std::size_t>(table_.n_columns()); }
    bool counts_bits() const { return statistics_.counts_bits(); }

    // Maximum number of steps for one region.
    std::int64_t n_steps() const { return n_steps_; }

    // Rows, code sets and statistics of a region.
    void look_at(const Condition* begin, const Condition* end, View& view) const {
        if (!is_long_work()) view.pace.spend(n_steps_);
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
    double leaf_evidence(const double* stat) const {
        return options_.temperature * family_->log_evidence(stat, prior_.data());
    }

    // Calls candidate(column, code, child sets, child statistics) for every candidate split of the current region,
    // with the number of rows of each child in view.child_rows.
    template <class Candidate>
    void each_candidate(View& view, Candidate candidate) const {
        const std::size_t size = statistics_.size();
        std::vector<double>& stats = view.child_statistics;
        for (int k = 0; k < table_.n_columns(); ++k) {
            const ColumnKind kind = table_.kind(k);
            if (n_splits(kind, view.codes[k]) == 0) continue;
            count_codes(view, k);
            if (kind == ColumnKind::ordered) {
                each_threshold(view, k, candidate);
                continue;
            }
            each_split(kind, view.codes[k], view.child_sets, [&](int code, const std::vector<CodeSet>& sets) {
                stats.resize(sets.size() * size);
                view.child_rows.assign(sets.size(), 0);
                int n_filled = 0;
                for (std::size_t c = 0; c < sets.size(); ++c) {
                    view.child_rows[c] = gather(view, sets[c], stats.data() + c * size);
                    n_filled += view.child_rows[c] > 0 ? 1 : 0;
                }
                if (options_.only_nontrivial && n_filled < 2) return;
                candidate(k, code, sets, stats.data());
            });
        }
    }

    // Calls candidate(column, number of children) for every candidate split of the current region, in the same order.
    template <class Candidate>
    void each_candidate_size(View& view, Candidate candidate) const {
        if (options_.only_nontrivial) {  // the rows decide which ones these are
            each_candidate(
                view, [&](int k, int, const std::vector<CodeSet>& sets, const double*) { candidate(k, sets.size()); });
            return;
        }
        for (int k = 0; k < table_.n_columns(); ++k) {
            const ColumnKind kind = table_.kind(k);
            const std::size_t n_children =
                kind == ColumnKind::multiway ? static_cast<std::size_t>(std::popcount(view.codes[k])) : 2;
            for (int i = n_splits(kind, view.codes[k]); i > 0; --i) candidate(k, n_children);
        }
    }

    // The region's terms if its children are leaves: log of the product of each candidate's children, in order.
    void last_terms(View& view) const {
        if constexpr (requires { family_->tabulated(0); })
            if (counts_whole_) return last_terms_of_bits(view);
        const std::size_t size = statistics_.size();
        each_candidate(view, [&](int, int, const std::vector<CodeSet>& sets, const double* stats) {
            double product = 0.0;
            for (std::size_t c = 0; c < sets.size(); ++c) product += leaf_evidence(stats + c * size);
            view.terms.push_back(product);
        });
    }

    // Log prior probability that a child in view is a leaf: it is one with certainty if it cannot be split.
    double stop_of_child(View& view, int column, CodeSet codes, std::size_t child, int depth) const {
        if (depth >= options_.max_depth) return 0.0;
        if (options_.only_nontrivial)
            return view.child_rows[child] > 1 && rows_differ(view, {column, codes}) ? options_.log_stop[depth] : 0.0;
        for (int k = 0; k < table_.n_columns(); ++k)
            if (n_splits(table_.kind(k), k == column ? codes : view.codes[k]) > 0) return options_.log_stop[depth];
        return 0.0;
    }

    // Number of splits of all codes of a region in view.
    double n_possible_splits(const View& view) const {
        double n = 0.0;
        for (int k = 0; k < table_.n_columns(); ++k) n += n_splits(table_.kind(k), view.codes[k]);
        return n;
    }

    // Log probability of the best tree below a child without rows of a region in view that has n_possible splits.
    double best_unseen(View& view, double n_possible, int column, CodeSet codes, int depth) const {
        if (options_.only_nontrivial || depth >= options_.max_depth) return 0.0;
        const ColumnKind kind = table_.kind(column);
        const double n = n_possible - n_splits(kind, view.codes[column]) + n_splits(kind, codes);
        if (n == 0.0) return 0.0;
        // No tree that goes on is more probable than its first split alone.
        const double log_stop = options_.log_stop[depth];
        if (log_stop >= options_.log_split[depth] - std::log(n)) return log_stop;
        return unseen(view, column, codes, depth).log_best;
    }

    // Prior expectations for a region without rows: nothing is learnt there, but trees may go on.
    Unseen unseen(View& view, int column, CodeSet codes, int depth) const {
        if (options_.only_nontrivial || depth >= options_.max_depth) return {};
        UnseenRegions::Shapes shapes;
        for (int k = 0; k < table_.n_columns(); ++k) {
            const CodeSet set = k == column ? codes : view.codes[k];
            const int n =
                table_.kind(k) == ColumnKind::ordered ? n_splits(table_.kind(k), set) : std::popcount(set) - 1;
            if (n > 0) ++shapes[{table_.kind(k), n}];
        }
        return unseen_.of(shapes, depth, view.pace);
    }

    // An upper bound of the log evidence of these rows for any division: as many leaves as there are classes, each of
    // one class; 1 for probabilities; densities have no bound.
    double most(const double* stat) const {
        if constexpr (requires { family_->tabulated(0); }) {
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

  private:
    // The same for classes that are counted as bits and columns with threshold splits: whole numbers throughout.
    void last_terms_of_bits(View& view) const
        requires requires(const Family& f) { f.tabulated(0); }
    {
        const int n_classes = family_->n_classes;
        std::int64_t all[max_bit_classes], n_all = 0;
        const double* log_rising_of[max_bit_classes + 1];
        for (int c = 0; c <= n_classes; ++c) log_rising_of[c] = family_->tabulated(c);
        for (int c = 0; c < n_classes; ++c) n_all += all[c] = static_cast<std::int64_t>(view.total[c]);
        const double* of_total = log_rising_of[n_classes];
        std::size_t n_terms = 0;
        for (int k = 0; k < table_.n_columns(); ++k)
            n_terms += static_cast<std::size_t>(n_splits(table_.kind(k), view.codes[k]));
        view.terms.resize(n_terms);
        double* term = view.terms.data();
        // Terms of one column's thresholds, where count_of(code, class) counts rows.
        const auto add_terms = [&](CodeSet codes, auto count_of) {
            std::int64_t left[max_bit_classes], n_left = 0;
            for (int c = 0; c < n_classes; ++c) left[c] = 0;
            for (int t = lowest_of(codes); t < highest_of(codes); ++t) {
                double product = 0.0;
                for (int c = 0; c < n_classes; ++c) {
                    const std::int64_t count = count_of(t, c);
                    n_left += count;
                    left[c] += count;
                    product += log_rising_of[c][left[c]] + log_rising_of[c][all[c] - left[c]];
                }
                *term++ = options_.temperature * (product - of_total[n_left] - of_total[n_all - n_left]);
            }
        };
        for (int k = 0; k < table_.n_columns(); ++k) {
            if (!table_.is_wide(k)) {
                spend_on(view, k);
                add_terms(view.codes[k], [&](int code, int c) {
                    return statistics_.count(view.rows.data(), table_.equal(k, code), c);
                });
                continue;
            }
            count_codes(view, k);
            add_terms(view.codes[k], [&](int code, int c) {
                return static_cast<std::int64_t>(view.by_code[static_cast<std::size_t>(code * n_classes + c)]);
            });
        }
    }

    // The family with what it tabulates: itself if its table is large enough, otherwise a copy.
    std::shared_ptr<const Family> with_table(std::shared_ptr<const Family> given, std::int64_t n_rows) const {
        if constexpr (requires { given->tabulated(0); }) {
            if (given->n_tabulated() > (statistics_.counts_bits() ? n_rows : 0)) return given;
            auto made = std::make_shared<Family>(*given);
            made->tabulate(prior_.data(), n_rows + 1);
            return made;
        } else if constexpr (requires(Family& family) { family.tabulate(nullptr); }) {
            auto made = std::make_shared<Family>(*given);
            made->tabulate(prior_.data());
            return made;
        } else {
            return given;
        }
    }

    // The work on a region is counted at once, or column by column if it is long, so that the watch is checked.
    bool is_long_work() const { return n_steps_ > (1 << 16); }
    void spend_on(View& view, int k) const {
        if (is_long_work()) view.pace.spend(n_steps_of(k));
    }
    std::int64_t n_steps_of(int k) const {
        return BitTable::n_steps(static_cast<std::int64_t>(table_.n_words()), table_.n_codes(k));
    }

    // Statistics of the rows in view for each code that column k may still have.
    void count_codes(View& view, int k) const {
        spend_on(view, k);
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
        if (table_.is_wide(k)) {
            for (int code = lo; code <= hi; ++code) family_->layout.clear(view.by_code.data() + code * size);
            std::fill(view.rows_by_code.begin() + lo, view.rows_by_code.begin() + hi + 1, 0);
            statistics_.sum_by_code(view.rows.data(), table_.codes(k), table_.n_words(), view.by_code.data(),
                                    view.rows_by_code.data());
            return;
        }
        if (statistics_.counts_bits() && hi == lo + 1) {  // the rows of one of two codes are those without the other
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
    // Every threshold of an ordered column whose codes were counted: sums up to it and sums beyond it.
    template <class Candidate>
    void each_threshold(View& view, int k, Candidate& candidate) const {
        const std::size_t size = statistics_.size();
        const int lo = lowest_of(view.codes[k]), hi = highest_of(view.codes[k]);
        const auto at = [&](std::vector<double>& of, int code) { return of.data() + code * size; };
        view.above.resize(view.by_code.size());
        std::copy_n(at(view.by_code, hi), size, at(view.above, hi));
        std::int64_t n_rows = view.rows_by_code[hi];
        for (int code = hi - 1; code > lo; --code) {
            std::copy_n(at(view.above, code + 1), size, at(view.above, code));
            family_->layout.add(at(view.above, code), at(view.by_code, code));
            n_rows += view.rows_by_code[code];
        }
        n_rows += view.rows_by_code[lo];
        view.child_statistics.resize(2 * size);
        view.child_rows.assign(2, 0);
        double* upto = view.child_statistics.data();
        family_->layout.clear(upto);
        each_split(ColumnKind::ordered, view.codes[k], view.child_sets, [&](int t, const std::vector<CodeSet>& sets) {
            family_->layout.add(upto, at(view.by_code, t));
            std::copy_n(at(view.above, t + 1), size, upto + size);
            view.child_rows[0] += view.rows_by_code[t];
            view.child_rows[1] = n_rows - view.child_rows[0];
            if (options_.only_nontrivial && (view.child_rows[0] == 0 || view.child_rows[1] == 0)) return;
            candidate(k, t, sets, upto);
        });
    }

    // Statistics of a child of some categories, and its number of rows.
    std::int64_t gather(const View& view, CodeSet set, double* out) const {
        const std::size_t size = statistics_.size();
        std::int64_t n_rows = 0;
        family_->layout.clear(out);
        for (; set; set &= set - 1) {
            const int code = std::countr_zero(set);
            family_->layout.add(out, view.by_code.data() + code * size);
            n_rows += view.rows_by_code[code];
        }
        return n_rows;
    }

    // Whether some column separates the rows of a child.
    bool rows_differ(View& view, const Condition& condition) const {
        std::vector<std::uint64_t> rows = view.rows;
        table_.restrict_to(condition, rows.data());
        for (int k = 0; k < table_.n_columns(); ++k) {
            view.pace.spend(n_steps_of(k));
            if (table_.differ(k, rows)) return true;
        }
        return false;
    }

    std::shared_ptr<const Family> family_;
    std::vector<double> prior_;
    BitTable table_;
    RowStatistics<Family> statistics_;
    std::vector<std::uint64_t> all_rows_;
    ExactOptions options_;
    std::int64_t n_steps_ = 1;
    bool counts_whole_ = false;  // classes by thresholds: counts are whole numbers that the family has tabulated
    UnseenRegions unseen_;
};

}  // namespace everytree::exact
