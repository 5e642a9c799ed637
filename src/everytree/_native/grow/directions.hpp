// What trees of many scores are grown by: the derivatives of a row in all scores, seen along a few random directions.
//
// Along n directions whose entries are drawn from N(0, 1/n), the squares of the sums of the first derivatives of a node
// add up to the square of the whole vector of sums, on average. So a few of them estimate what a split wins for all
// scores together, however many there are. With the second derivatives and the number of rows, six of them make eight
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
        float of_cell[fixed_cells];  // first derivatives along each direction, the mean of the second ones, and 1
    };

    // `rows` has an entry for every row of the table; those that no tree is grown on are never read.
    DirectionsCriterion(const std::vector<Row>& rows, double tau) : rows_(rows.data()), tau_(tau) {}
    int n_cells() const { return fixed_cells; }
    Row row(std::int64_t i) const { return rows_[i]; }
    void add(Cell* cells, const Row& row) const {
#if defined(__GNUC__) || defined(__clang__)
        using Four = float __attribute__((vector_size(16)));
        for (int c = 0; c < fixed_cells; c += 4) {
            Four sums, more;
            std::memcpy(&sums, cells + c, sizeof sums);
            std::memcpy(&more, row.of_cell + c, sizeof more);
            sums += more;
            std::memcpy(cells + c, &sums, sizeof sums);
        }
#else
        for (int c = 0; c < fixed_cells; ++c) cells[c] += row.of_cell[c];
#endif
    }
    std::int64_t n_rows(const Cell* cells) const { return static_cast<std::int64_t>(cells[n_directions + 1]); }
    double value(const Cell* cells) const {
        return sum_of_squares(cells) / (static_cast<double>(cells[n_directions]) + tau_);
    }
    bool all_same(const Cell*, std::span<const SampledRow<DirectionsCriterion>>) const { return false; }

  private:
    // In doubles: squares of large floats are none.
    static double sum_of_squares(const Cell* cells) {
#if defined(__GNUC__) || defined(__clang__)
        using TwoFloats = float __attribute__((vector_size(8)));
        using Two = double __attribute__((vector_size(16)));
        Two sum{0.0, 0.0};
        for (int c = 0; c < n_directions; c += 2) {
            TwoFloats own;
            std::memcpy(&own, cells + c, sizeof own);
            const Two wide = __builtin_convertvector(own, Two);
            sum += wide * wide;
        }
        return sum[0] + sum[1];
#else
        double sum = 0.0;
        for (int c = 0; c < n_directions; ++c) sum += static_cast<double>(cells[c]) * static_cast<double>(cells[c]);
        return sum;
#endif
    }

    const Row* rows_;
    double tau_;
};

}  // namespace everytree::grow
