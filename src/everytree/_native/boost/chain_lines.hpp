// The lines of a chain: in which columns they run, and for how many trees they are offered.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "boost/leaf_values.hpp"
#include "boost/line_columns.hpp"
#include "boost/line_sums.hpp"
#include "boost/line_values.hpp"
#include "boost/losses.hpp"
#include "core/codes.hpp"
#include "grow/tree.hpp"

namespace everytree::boost {

// Where more columns have points, lines run in those of the largest gains by the splits of the first trees.
inline constexpr std::size_t most_line_columns = 10;
inline constexpr int trees_before_lines = 16;
// Lines are offered no more when their evidence has been against them in so many trees, one after another.
inline constexpr int most_trees_against = 20;

template <class Code>
class ChainLines {
  public:
    // points: null where no lines are offered. columns: those that trees may split on.
    ChainLines(const Points* points, const Codes<Code>& codes, std::int64_t n_rows, const std::vector<int>& columns)
        : points_(points), codes_(codes), n_rows_(n_rows) {
        if (!points_) return;
        for (const int column : columns)
            if (points_->has(column)) offered_.push_back(column);
        gain_.assign(points_->n_columns(), 0.0);
    }

    // Whether the next tree has lines.
    bool are_offered() {
        if (offered_.empty() || n_against_ >= most_trees_against) return false;
        if (chosen_.size() > 0) return true;
        if (offered_.size() > most_line_columns && n_trees_before_ < trees_before_lines) return false;
        chosen_.choose(offered_, gain_, most_line_columns);
        chosen_.read(*points_, codes_, n_rows_);
        return true;
    }
    const std::vector<int>& columns() const { return chosen_.columns(); }

    // A tree without lines was added.
    void saw(const grow::GrownTree& tree, const std::vector<double>& gain) {
        if (offered_.empty()) return;
        ++n_trees_before_;
        for (std::size_t s = 0; s < gain.size(); ++s)
            if (tree.feature[s] >= 0) gain_[static_cast<std::size_t>(tree.feature[s])] += gain[s];
    }
    // Values of a tree with lines, by the derivatives of the rows and their terminals.
    LineValues values(const grow::GrownTree& tree, RowNumbers train, const std::vector<std::int32_t>& end,
                      const double* first, const double* second, const LeafPrior& prior) {
        sums_.clear(tree.feature.size(), chosen_.size());
        sums_.add_all<most_line_columns>(train, end.data(), first, second,
                                         [&](std::uint32_t row) { return chosen_.row(row); });
        LineValues found = line_values(tree, sums_, prior);
        n_against_ = found.log_evidence_of_lines > 0.0 ? 0 : n_against_ + 1;
        return found;
    }
    // What the value of its terminal adds to the score of a row.
    double value_of(const std::vector<double>& value, std::int32_t end, std::size_t row) const {
        const std::size_t k = chosen_.size();
        const double *const own = value.data() + static_cast<std::size_t>(end) * (k + 1), *const point =
                                                                                              chosen_.row(row);
        double sum = own[0];
        for (std::size_t j = 0; j < k; ++j) sum += own[1 + j] * point[j];
        return sum;
    }

  private:
    const Points* points_;
    Codes<Code> codes_;
    std::int64_t n_rows_;
    std::vector<int> offered_;  // columns with points
    std::vector<double> gain_;  // of each column, by the splits of the trees before the first with lines
    int n_trees_before_ = 0, n_against_ = 0;
    LineColumns chosen_;
    LineSums sums_;
};

}  // namespace everytree::boost
