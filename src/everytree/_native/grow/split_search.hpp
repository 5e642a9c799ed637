// The split of a node's rows: which column, and at which code.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "grow/cells.hpp"
#include "grow/columns.hpp"
#include "grow/gathered.hpp"
#include "grow/histogram.hpp"
#include "grow/random.hpp"
#include "grow/rule.hpp"

namespace everytree::grow {

template <class Code, class Criterion>
class SplitSearch {
  public:
    using Table = CodeColumns<Code>;
    using Cell = typename Criterion::Cell;
    using NodeCells = Cells<Cell, Criterion::fixed_cells>;
    using Rows = std::span<const SampledRow<Criterion>>;

    SplitSearch(const CodeColumns<Code>& columns, const Criterion& criterion, const GrowRule& rule)
        : columns_(columns),
          criterion_(criterion),
          rule_(rule),
          used_(all_of(columns)),
          order_(columns.n_columns()),
          histogram_(criterion.n_cells(), columns.most_codes()),
          total_(criterion.n_cells()),
          missing_(total_),
          left_(total_),
          with_missing_(total_),
          right_(total_) {}

    void use_columns(std::vector<int> columns) {
        used_ = std::move(columns);
        order_ = RandomOrder(static_cast<int>(used_.size()));
    }

    // Takes the rows of a node. Returns whether their targets differ.
    bool start(Rows rows) {
        n_rows_ = static_cast<std::int64_t>(rows.size());
        total_.clear();
        if constexpr (requires { criterion_.add_all(total_.data(), rows); })
            criterion_.add_all(total_.data(), rows);
        else
            for (const auto& each : rows) criterion_.add(total_.data(), each.target);
        return !criterion_.all_same(total_.data(), rows);
    }

    // The best split of some columns drawn at random; none where all columns are constant or sides would be too small.
    Split find(Rows rows, NodeRandom& random) {
        if (rule_.splitter == Splitter::random) gathered_.take_targets(rows);
        Split best;
        int n_looked_at = 0;
        bool any_varies = false;
        for (; !order_.is_over() && (n_looked_at < rule_.max_features || !any_varies); ++n_looked_at) {
            const int feature = used_[static_cast<std::size_t>(order_.next(random))];
            any_varies |= rule_.splitter == Splitter::best ? look_at_all(feature, rows, best)
                                                           : look_at_one(feature, rows, random, best);
        }
        order_.start_again();
        return best;
    }

    // What a split of the node that was searched last wins over none.
    double gain(const Split& split) const { return split.score - criterion_.value(total_.data()); }

  private:
    static std::vector<int> all_of(const CodeColumns<Code>& columns) {
        std::vector<int> all(static_cast<std::size_t>(columns.n_columns()));
        std::iota(all.begin(), all.end(), 0);
        return all;
    }

    // Every threshold between two codes that some rows have. Returns whether the column varies.
    bool look_at_all(int feature, Rows rows, Split& best) {
        const int n_codes = columns_.n_codes(feature);
        histogram_.fill(criterion_, columns_.column(feature), n_codes, rows);
        missing_.clear();
        const bool some_missing = histogram_.drain_one(static_cast<std::size_t>(n_codes),
                                                       [&](int, const Cell* cells) { missing_.add(cells); });
        NodeCells left = std::move(left_);
        left.clear();
        int last = -1, n_seen = 0;
        histogram_.drain(n_codes, [&](int code, const Cell* cells) {
            if (last >= 0) judge_both_sides({feature, (last + code) / 2, false}, some_missing, left, best);
            left.add(cells);
            last = code;
            ++n_seen;
        });
        if (some_missing && n_seen) judge({feature, n_codes - 1, false}, some_missing, left, best);
        left_ = std::move(left);
        return n_seen + some_missing > 1;
    }

    // One threshold, drawn evenly. Returns whether the column varies.
    bool look_at_one(int feature, Rows rows, NodeRandom& random, Split& best) {
        const int n_codes = columns_.n_codes(feature);
        const CodeRange range = gathered_.take_codes(columns_.column(feature), n_codes, rows);
        if (range.least > range.most || (range.least == range.most && !range.some_missing)) return false;
        Split split{feature, n_codes - 1, false};
        if (range.least < range.most) {
            const auto n_cuts = static_cast<std::uint64_t>(range.most - range.least);
            split.threshold = range.least + static_cast<int>(random.below(n_cuts));
            split.missing_left = range.some_missing && random.below(2) == 0;
        }
        left_.clear();
        gathered_.sum_upto(criterion_, split.threshold, left_.data());
        if (split.missing_left) gathered_.sum_missing(criterion_, n_codes, left_.data());
        judge(split, range.some_missing, left_, best);
        return true;
    }

    void judge_both_sides(Split split, bool some_missing, const NodeCells& left, Split& best) {
        judge(split, some_missing, left, best);
        if (!some_missing) return;
        with_missing_ = left;
        with_missing_.add(missing_.data());
        split.missing_left = true;
        judge(split, some_missing, with_missing_, best);
    }

    // Where no row of the node is missing, missing values will go where most rows go.
    void judge(Split split, bool some_missing, const NodeCells& left, Split& best) {
        const std::int64_t n_left = criterion_.n_rows(left.data()), n_right = n_rows_ - n_left;
        if (std::min(n_left, n_right) < rule_.min_samples_leaf) return;
        if (!some_missing) split.missing_left = n_left > n_right;
        right_.set_difference(total_, left);
        split.score = criterion_.value(left.data()) + criterion_.value(right_.data());
        if (!best.is_found() || split.score > best.score) best = split;
    }

    const CodeColumns<Code>& columns_;
    Criterion criterion_;
    GrowRule rule_;
    std::vector<int> used_;
    RandomOrder order_;
    Histogram<Code, Criterion> histogram_;
    Gathered<Code, Criterion> gathered_;
    std::int64_t n_rows_ = 0;
    NodeCells total_, missing_, left_, with_missing_, right_;
};

}  // namespace everytree::grow
