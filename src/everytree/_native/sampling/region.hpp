// The region under way: the codes that each column may still have, and the candidate splits.
#pragma once
#include <bit>
#include <cstdint>
#include <vector>

#include "exact/conditions.hpp"
#include "exact/key_index.hpp"
#include "exact/table.hpp"
#include "sampling/points.hpp"

namespace everytree::sampling {

using exact::Condition;
using exact::highest_of;
using exact::Key;
using exact::key_of;
using exact::lowest_of;

// A split: the column, and the threshold, the single category, or -1 for all categories.
struct Split {
    std::int32_t column = -1;
    std::int32_t code = -1;
    bool operator==(const Split&) const = default;
};

// Codes of the children of a split of a column with these codes, in the order of the children.
inline void child_sets(ColumnKind kind, CodeSet codes, int code, std::vector<CodeSet>& children) {
    children.clear();
    if (kind == ColumnKind::ordered) {
        const auto t = static_cast<std::uint64_t>(code);
        children.push_back(interval(static_cast<std::uint64_t>(lowest_of(codes)), t));
        children.push_back(interval(t + 1, static_cast<std::uint64_t>(highest_of(codes))));
    } else if (kind == ColumnKind::multiway) {
        for (CodeSet left = codes; left; left &= left - 1) children.push_back(left & (~left + 1));
    } else {
        children.push_back(CodeSet{1} << code);
        children.push_back(codes ^ children[0]);
    }
}

// Number of the child that a code goes to. A multiway column is split once, with all its codes: child number = code.
inline std::size_t child_of(ColumnKind kind, int split_code, int code) {
    if (kind == ColumnKind::ordered) return code > split_code ? 1 : 0;
    if (kind == ColumnKind::one_against_rest) return code != split_code ? 1 : 0;
    return static_cast<std::size_t>(code);
}

struct Region {
    struct Before {
        CodeSet codes;
        Key key;
        double n_possible;
    };

    std::vector<CodeSet> codes;
    Key key;                  // of the set of conditions
    double n_possible = 0.0;  // splits of the codes, whether they separate points or not

    template <class Family>
    void start(const Points<Family>& points) {
        codes = points.all_codes();
        key = {};
        n_possible = points.n_possible();
    }
    // Restricts a column; `leave` undoes it.
    Before enter(ColumnKind kind, int column, CodeSet set, CodeSet all) {
        const Before before{codes[column], key, n_possible};
        if (before.codes != all) key = key - key_of(Condition{column, before.codes});
        key = key + key_of(Condition{column, set});
        n_possible += n_splits(kind, set) - n_splits(kind, before.codes);
        codes[column] = set;
        return before;
    }
    void leave(int column, const Before& before) {
        codes[column] = before.codes;
        key = before.key;
        n_possible = before.n_possible;
    }
};

// The candidates of a region in one order: column by column, codes increasing.
class Candidates {
  public:
    // All splits of the codes, or only those that separate the points.
    template <class Family>
    void list(const Points<Family>& points, const Region& region, const Point* begin, const Point* end,
              bool only_nontrivial) {
        codes_ = &region.codes;
        n_columns_ = points.n_columns();
        if (!only_nontrivial) {
            candidate_codes_ = region.codes.data();
            n_ = region.n_possible;
            return;
        }
        present_.resize(region.codes.size());
        n_ = 0.0;
        for (int k = 0; k < n_columns_; ++k) {
            present_[k] = present(points, k, region.codes[k], begin, end);
            n_ += n_of(points.kind(k), k, present_.data());
        }
        candidate_codes_ = present_.data();
    }
    double n() const { return n_; }

    template <class Family>
    Split pick(const Points<Family>& points, std::int64_t number) const {
        for (int k = 0; k < n_columns_; ++k) {
            const int n = n_of(points.kind(k), k, candidate_codes_);
            if (number < n) return {k, code_at(points.kind(k), candidate_codes_[k], static_cast<int>(number))};
            number -= n;
        }
        return {};
    }
    template <class Family>
    bool has(const Points<Family>& points, const Split& split) const {
        const ColumnKind kind = points.kind(split.column);
        const CodeSet own = candidate_codes_[split.column];
        if (n_of(kind, split.column, candidate_codes_) == 0) return false;
        if (kind == ColumnKind::ordered) return split.code >= lowest_of(own) && split.code < highest_of(own);
        if (kind == ColumnKind::multiway) return true;
        const CodeSet codes = (*codes_)[split.column];
        if (std::popcount(codes) == 2) return split.code == std::countr_zero(codes);
        return (own >> split.code & 1) != 0;
    }
    // Number of a split among the candidates.
    template <class Family>
    std::size_t number_of(const Points<Family>& points, const Split& split) const {
        std::size_t before = 0;
        for (int k = 0; k < split.column; ++k)
            before += static_cast<std::size_t>(n_of(points.kind(k), k, candidate_codes_));
        const CodeSet own = candidate_codes_[split.column];
        const ColumnKind kind = points.kind(split.column);
        if (kind == ColumnKind::ordered) return before + static_cast<std::size_t>(split.code - lowest_of(own));
        if (kind == ColumnKind::multiway) return before;
        return before + static_cast<std::size_t>(std::popcount(own & ((CodeSet{1} << split.code) - 1)));
    }
    // Thresholds of an ordered column: from the first to before the second.
    CodeSet of_column(int column) const { return candidate_codes_[column]; }
    int n_of_column(ColumnKind kind, int column) const { return n_of(kind, column, candidate_codes_); }

  private:
    int n_of(ColumnKind kind, int column, const CodeSet* codes) const {
        if (kind == ColumnKind::ordered) return highest_of(codes[column]) - lowest_of(codes[column]);
        const int n = std::popcount(codes[column]);
        if (n < 2) return 0;
        return kind == ColumnKind::multiway || std::popcount((*codes_)[column]) == 2 ? 1 : n;
    }
    static int code_at(ColumnKind kind, CodeSet codes, int number) {
        if (kind == ColumnKind::ordered) return lowest_of(codes) + number;
        if (kind == ColumnKind::multiway) return -1;
        for (; number > 0; --number) codes &= codes - 1;
        return std::countr_zero(codes);
    }
    // The codes of a column that some point has; of an ordered one, the interval that holds them.
    template <class Family>
    static CodeSet present(const Points<Family>& points, int column, CodeSet codes, const Point* begin,
                           const Point* end) {
        const std::uint16_t* own = points.codes(column);
        if (points.kind(column) != ColumnKind::ordered) {
            CodeSet all = 0;
            for (const Point* p = begin; p != end; ++p) all |= CodeSet{1} << own[*p];
            return all;
        }
        if (begin == end || lowest_of(codes) == highest_of(codes)) return interval(0, 0);
        std::uint16_t lo = 65535, hi = 0;
        for (const Point* p = begin; p != end; ++p) {
            lo = std::min(lo, own[*p]);
            hi = std::max(hi, own[*p]);
        }
        return interval(lo, hi);
    }

    const std::vector<CodeSet>* codes_ = nullptr;
    const CodeSet* candidate_codes_ = nullptr;
    std::vector<CodeSet> present_;
    int n_columns_ = 0;
    double n_ = 0.0;
};

}  // namespace everytree::sampling
