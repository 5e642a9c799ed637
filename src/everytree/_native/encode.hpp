// From numbers to codes. The rule, in its only place: the code of x is the number of cuts strictly below x, so that
// `code <= t` exactly when `x <= cuts[t]`; NaN has the missing code.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "codes.hpp"
#include "parallel.hpp"
#include "rows.hpp"

namespace everytree {

// The cuts of one column, laid out as a full binary tree in level order: node k asks `cut < x` and leads to 2k or
// 2k + 1. Padded with infinity to 2^levels - 1 cuts, which no number is above, the number of the leaf below the last
// level is 2^levels + code. Where there are groups, one for each of the n_cuts + 1 codes, they are what is written.
class CutTree {
  public:
    CutTree(const double* cuts, std::size_t n_cuts, bool single, std::vector<std::uint16_t> groups = {})
        : groups_(std::move(groups)), n_cuts_(n_cuts), single_(single) {
        while ((std::size_t{1} << levels_) <= n_cuts) ++levels_;
        nodes_.assign(std::size_t{1} << levels_, std::numeric_limits<double>::infinity());
        std::size_t next = 0;
        lay_out(1, cuts, next);
    }
    // The largest code that a number can have, the missing one left aside.
    std::size_t largest_code() const {
        std::size_t largest = groups_.empty() ? n_cuts_ : 0;
        for (const std::uint16_t group : groups_)
            if (group != missing_code<std::uint16_t>) largest = std::max<std::size_t>(largest, group);
        return largest;
    }

    // Codes of n numbers to out[0], out[step], ...; several numbers in flight hide the latency of each one's descent.
    template <class Code>
    void codes(double* x, std::int64_t n, Code* out, std::ptrdiff_t step) const {
        if (single_)
            for (std::int64_t i = 0; i < n; ++i) x[i] = static_cast<double>(static_cast<float>(x[i]));
        std::int64_t i = 0;
        for (; i + in_flight <= n; i += in_flight) some_codes<in_flight>(x + i, out + i * step, step);
        for (; i < n; ++i) some_codes<1>(x + i, out + i * step, step);
    }

  private:
    static constexpr int in_flight = 8;

    template <int n, class Code>
    void some_codes(const double* x, Code* out, std::ptrdiff_t step) const {
        const double* nodes = nodes_.data();
        std::uint64_t at[n];
        for (int i = 0; i < n; ++i) at[i] = 1;
        for (int level = 0; level < levels_; ++level)
            for (int i = 0; i < n; ++i) at[i] = 2 * at[i] + static_cast<std::uint64_t>(nodes[at[i]] < x[i]);
        for (int i = 0; i < n; ++i) {
            const std::uint64_t below = at[i] - (std::uint64_t{1} << levels_);
            // The missing code of a wider type becomes that of a narrower one.
            const auto code = static_cast<Code>(groups_.empty() ? below : groups_[below]);
            out[i * step] = std::isnan(x[i]) ? missing_code<Code> : code;
        }
    }

    void lay_out(std::size_t node, const double* cuts, std::size_t& next) {
        if (node >= nodes_.size()) return;
        lay_out(2 * node, cuts, next);
        if (next < n_cuts_) nodes_[node] = cuts[next++];
        lay_out(2 * node + 1, cuts, next);
    }

    std::vector<double> nodes_;
    std::vector<std::uint16_t> groups_;
    std::size_t n_cuts_;
    int levels_ = 0;
    bool single_;
};

// Where a number is infinite.
struct InfinitePlace {
    std::int64_t row, column;
};

// Codes of a whole table, row-major; a column without data is left as it is. Throws InfinitePlace for the first
// infinite number, by blocks of rows and by columns within a block. A block is small enough to stay in cache while its
// columns are read and written one after another.
template <class Code>
void encode_table(const std::vector<CutTree>& trees, const std::vector<Column>& columns, std::int64_t n_rows, Code* out,
                  int n_jobs) {
    const auto width = static_cast<std::int64_t>(columns.size());
    const std::int64_t block_rows = std::clamp<std::int64_t>(16384 / std::max<std::int64_t>(width, 1), 32, 1024);
    const std::int64_t work_rows = block_rows * std::max<std::int64_t>(1, 16384 / block_rows);
    const auto work = [&](std::int64_t chunk, int) {
        double x[1024];
        const std::int64_t end = std::min((chunk + 1) * work_rows, n_rows);
        for (std::int64_t begin = chunk * work_rows; begin < end; begin += block_rows) {
            const std::int64_t n = std::min(block_rows, end - begin);
            for (std::int64_t k = 0; k < width; ++k) {
                if (columns[k].data == nullptr) continue;
                columns[k].read(begin, n, x, 1);
                bool infinite = false;
                for (std::int64_t i = 0; i < n; ++i) infinite |= std::abs(x[i]) > std::numeric_limits<double>::max();
                if (infinite) {
                    std::int64_t i = 0;
                    while (!std::isinf(x[i])) ++i;
                    throw InfinitePlace{begin + i, k};
                }
                trees[k].codes(x, n, out + begin * width + k, width);
            }
        }
    };
    in_ordered_chunks((n_rows + work_rows - 1) / work_rows, n_jobs, work, [](std::int64_t, int) {});
}

}  // namespace everytree
