// What trees of many scores are grown by: the derivatives of a row in all scores, seen along a few random directions.
//
// Along n directions whose entries are drawn from N(0, 1/n), the squares of the sums of the first derivatives of a node
// add up to the square of the whole vector of sums, on average. So a few of them estimate what a split wins for all
// scores together, however many there are. With the number of rows and the second derivatives, six of them make eight
// cells, which processors add at once.
#pragma once
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "grow/criteria.hpp"

namespace everytree::grow {

class DirectionsCriterion {
  public:
    using Cell = float;  // enough to compare splits
    static constexpr int n_directions = 6;
    static constexpr int fixed_cells = n_directions + 2;
    struct Row {
        float of_cell[fixed_cells];  // 1, the mean of the second derivatives, and the first ones along each direction
    };

    // `rows` has an entry for every row of the table; those that no tree is grown on are never read.
    DirectionsCriterion(const std::vector<Row>& rows, double tau) : rows_(rows.data()), tau_(tau) {}
    int n_cells() const { return fixed_cells; }
    Row row(std::int64_t i) const { return rows_[i]; }
    void add(Cell* cells, const Row& row) const {
        // By way of a copy: the compiler sees that cells and rows do not overlap, and adds several at once.
        float sums[fixed_cells];
        std::memcpy(sums, cells, sizeof sums);
        for (int c = 0; c < fixed_cells; ++c) sums[c] += row.of_cell[c];
        std::memcpy(cells, sums, sizeof sums);
    }
    std::int64_t n_rows(const Cell* cells) const { return static_cast<std::int64_t>(cells[0]); }
    double value(const Cell* cells) const {
        double squares = 0.0;
        for (int c = 2; c < fixed_cells; ++c) squares += static_cast<double>(cells[c]) * static_cast<double>(cells[c]);
        return squares / (static_cast<double>(cells[1]) + tau_);
    }
    bool all_same(const Cell*, std::span<const SampledRow<DirectionsCriterion>>) const { return false; }

  private:
    const Row* rows_;
    double tau_;
};

}  // namespace everytree::grow
