// The table of an exact sum: the possible splits of a column, and rows as bits.
#pragma once
#include <bit>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/families.hpp"
#include "core/tree.hpp"
#include "exact/conditions.hpp"

namespace everytree::exact {

// Calls row(place) for each set bit of words first .. last.
template <class OneRow>
void each_bit(const std::uint64_t* words, std::size_t first, std::size_t last, OneRow row) {
    for (std::size_t w = first; w < last; ++w)
        for (std::uint64_t left = words[w]; left; left &= left - 1)
            row(w * 64 + static_cast<std::size_t>(std::countr_zero(left)));
}

inline void check_codes(const std::uint16_t* codes, std::int64_t n_rows, const std::vector<int>& n_codes) {
    const std::size_t n_columns = n_codes.size();
    for (std::int64_t i = 0; i < n_rows; ++i)
        for (std::size_t k = 0; k < n_columns; ++k)
            if (codes[i * n_columns + k] >= n_codes[k]) throw std::invalid_argument("code out of range");
}

// The bits of all rows, each at its position.
inline std::vector<std::uint64_t> rows_as_bits(const std::int64_t* place, std::int64_t n_rows, std::int64_t n_places) {
    std::vector<std::uint64_t> bits(static_cast<std::size_t>((n_places + 63) / 64), 0);
    for (std::int64_t i = 0; i < n_rows; ++i) {
        if (place[i] < 0 || place[i] >= n_places) throw std::invalid_argument("place out of range");
        bits[place[i] / 64] |= std::uint64_t{1} << (place[i] % 64);
    }
    return bits;
}

// Rows as bits, in an order in which each class starts a word of its own: a mask of rows for each code of a column. A
// wide column has more codes than a word has bits, so that masks would take more memory and time than its rows do: it
// stores the code of each row instead.
class BitTable {
  public:
    BitTable(const std::uint16_t* codes, std::int64_t n_rows, const std::vector<int>& n_codes,
             const std::vector<ColumnKind>& kinds, const std::vector<std::int64_t>& place, std::int64_t n_places)
        : n_codes_(n_codes), kinds_(kinds), n_words_((n_places + 63) / 64) {
        const std::size_t n_columns = n_codes.size();
        first_.resize(n_columns + 1, 0);
        codes_.resize(n_columns);
        for (std::size_t k = 0; k < n_columns; ++k) {
            first_[k + 1] = first_[k] + static_cast<std::size_t>(is_wide(k) ? 0 : n_codes[k]);
            if (is_wide(k)) codes_[k].assign(n_words_ * 64, 0);
        }
        equal_.assign(first_.back() * n_words_, 0);
        for (std::int64_t i = 0; i < n_rows; ++i)
            for (std::size_t k = 0; k < n_columns; ++k) {
                const std::uint16_t code = codes[i * n_columns + k];
                if (is_wide(k))
                    codes_[k][place[i]] = code;
                else
                    set(equal_.data() + (first_[k] + code) * n_words_, place[i]);
            }
        upto_ = equal_;
        for (std::size_t k = 0; k < n_columns; ++k)
            for (int c = 1; c < n_codes[k] && !is_wide(k); ++c)
                for (std::size_t w = 0; w < n_words_; ++w)
                    upto_[(first_[k] + c) * n_words_ + w] |= upto_[(first_[k] + c - 1) * n_words_ + w];
    }
    // Steps to count rows by a column with so many codes, and the memory of that column: both are known before a table
    // is made.
    static std::int64_t n_steps(std::int64_t n_words, int n_codes) {
        return has_many(n_codes) ? 64 * n_words + 16 * std::int64_t{n_codes} : n_words * n_codes;
    }
    static std::int64_t n_bytes(std::int64_t n_words, int n_codes) {
        const std::int64_t bytes_each =
            has_many(n_codes) ? 64 * sizeof(std::uint16_t) : 2 * sizeof(std::uint64_t) * n_codes;
        return n_words * bytes_each;
    }

    std::size_t n_words() const { return n_words_; }
    int n_columns() const { return static_cast<int>(n_codes_.size()); }
    int n_codes(int column) const { return n_codes_[column]; }
    ColumnKind kind(int column) const { return kinds_[column]; }
    bool is_wide(std::size_t column) const { return has_many(n_codes_[column]); }
    // For a wide column: the code of the row at each position.
    const std::uint16_t* codes(int column) const { return codes_[column].data(); }
    // For the others: the rows with a code.
    const std::uint64_t* equal(int column, int code) const {
        return equal_.data() + (first_[column] + code) * n_words_;
    }
    CodeSet all_codes(int column) const {
        const int n = n_codes_[column];
        if (kinds_[column] == ColumnKind::ordered) return interval(0, static_cast<std::uint64_t>(n - 1));
        return n == 64 ? ~CodeSet{0} : (CodeSet{1} << n) - 1;
    }

    // rows &= those that satisfy the condition
    void restrict_to(const Condition& condition, std::uint64_t* rows) const {
        if (is_wide(condition.column)) {
            const std::uint16_t* own = codes(condition.column);
            const int lo = lowest_of(condition.codes), hi = highest_of(condition.codes);
            each_bit(rows, 0, n_words_, [&](std::size_t at) {
                if (own[at] < lo || own[at] > hi) rows[at / 64] &= ~(std::uint64_t{1} << (at % 64));
            });
            return;
        }
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

    // Whether a column separates some rows.
    bool differ(int column, const std::vector<std::uint64_t>& rows) const {
        if (is_wide(column)) {
            const std::uint16_t* own = codes(column);
            int first = -1;
            bool is_other = false;
            each_bit(rows.data(), 0, n_words_, [&](std::size_t at) {
                if (first < 0) first = own[at];
                is_other |= own[at] != first;
            });
            return is_other;
        }
        int n_present = 0;
        for (int code = 0; code < n_codes_[column] && n_present < 2; ++code) {
            const std::uint64_t* mask = equal(column, code);
            std::size_t w = 0;
            while (w < n_words_ && !(rows[w] & mask[w])) ++w;
            n_present += w < n_words_ ? 1 : 0;
        }
        return n_present > 1;
    }

  private:
    static bool has_many(int n_codes) { return n_codes > 64; }
    static void set(std::uint64_t* words, std::int64_t bit) { words[bit / 64] |= std::uint64_t{1} << (bit % 64); }
    std::vector<int> n_codes_;
    std::vector<ColumnKind> kinds_;
    std::size_t n_words_;
    std::vector<std::size_t> first_;
    std::vector<std::uint64_t> equal_, upto_;        // of columns that are not wide
    std::vector<std::vector<std::uint16_t>> codes_;  // of wide ones
};

// Calls split(code, child sets) for each candidate split of a column, in one fixed order; code is the threshold, the
// single category, or -1 for a split into all.
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
        if (n == 2) return;  // the other category gives the same split
    }
}

inline int n_splits(ColumnKind kind, CodeSet codes) {
    if (kind == ColumnKind::ordered) return highest_of(codes) - lowest_of(codes);
    const int n = std::popcount(codes);
    if (n < 2) return 0;
    return kind == ColumnKind::multiway || n == 2 ? 1 : n;
}

// The source of the statistics of sets of rows: rows that count 1 each, by class, are counted as bits.
template <class Family>
class RowStatistics {
  public:
    RowStatistics(const Family& family, std::vector<double> of_row, std::vector<std::int64_t> class_start)
        : layout_(family.layout),
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

    // Number of rows in rows & mask, given their statistics: those of a single row may all be 0.
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
        layout_.clear(out);
        for (std::size_t w = 0; w < n_words; ++w)
            for (std::uint64_t left = mask ? rows[w] & mask[w] : rows[w]; left; left &= left - 1)
                layout_.add(out, of_row_.data() + (w * 64 + std::countr_zero(left)) * size_);
    }

    // Adds rows to the statistics of their codes, (n_codes, size), and counts them.
    void sum_by_code(const std::uint64_t* rows, const std::uint16_t* codes, std::size_t n_words, double* stats,
                     std::int64_t* n_rows) const {
        if (!counts_bits()) {
            each_bit(rows, 0, n_words, [&](std::size_t at) {
                layout_.add(stats + codes[at] * size_, of_row_.data() + at * size_);
                ++n_rows[codes[at]];
            });
            return;
        }
        for (std::size_t c = 0; c + 1 < class_start_.size(); ++c)
            each_bit(rows, static_cast<std::size_t>(class_start_[c]), static_cast<std::size_t>(class_start_[c + 1]),
                     [&](std::size_t at) {
                         stats[codes[at] * size_ + c] += 1.0;
                         ++n_rows[codes[at]];
                     });
    }

  private:
    Layout layout_;
    std::size_t size_;
    std::vector<double> of_row_;             // (n_places, size), empty where bits are counted
    std::vector<std::int64_t> class_start_;  // first word of each class and the end, empty where they are not
};

}  // namespace everytree::exact
