// From numbers to codes. The rule, in its only place: the code of x is the number of cuts strictly below x, so that
// `code <= t` exactly when `x <= cuts[t]`; NaN has the missing code.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "core/codes.hpp"
#include "core/parallel.hpp"
#include "core/rows.hpp"

namespace everytree::columns {

// The cuts of one column, found by equal steps between the first and the last. The step of x is computed, not searched,
// and never decreases as x grows: cuts of earlier steps are below x, cuts of later ones are not, and only those of its
// own step are compared. Exact for any cuts; fast if no step holds many, which quantiles of heavy tails do not ensure.
class Ruler {
  public:
    Ruler(const double* cuts, std::size_t n_cuts) : cuts_(cuts, cuts + n_cuts) {
        cuts_.push_back(std::numeric_limits<double>::infinity());  // larger than every number
        const std::size_t n_steps = std::bit_ceil(4 * (n_cuts + 1));
        low_ = n_cuts ? cuts_.front() : 0.0;
        scale_ = n_cuts ? static_cast<double>(n_steps) / (cuts_[n_cuts - 1] - low_) : 0.0;
        if (!(scale_ < std::numeric_limits<double>::max())) scale_ = 0.0;  // no room between the cuts
        last_ = static_cast<double>(n_steps - 1);
        first_.assign(n_steps, 0);
        std::vector<std::size_t> n_in(n_steps, 0);
        for (std::size_t i = 0; i < n_cuts; ++i) ++n_in[static_cast<std::size_t>(step_of(cuts_[i]))];
        for (std::size_t step = 1; step < n_steps; ++step)
            first_[step] = static_cast<std::uint32_t>(first_[step - 1] + n_in[step - 1]);
        most_ = *std::max_element(n_in.begin(), n_in.end());
    }
    // Number of cuts in the fullest step.
    std::size_t most() const { return most_; }

    // The number of cuts strictly below each of n <= 1024 numbers; arbitrary for NaN.
    void count_below(const double* x, std::int64_t n, std::uint32_t* below) const {
        switch (most_) {  // loops of known length are unrolled
            case 0:
            case 1:
                return count_below_with(x, n, below, std::integral_constant<std::size_t, 1>());
            case 2:
                return count_below_with(x, n, below, std::integral_constant<std::size_t, 2>());
            default:
                return count_below_with(x, n, below, most_);
        }
    }

  private:
    template <class Most>
    void count_below_with(const double* x, std::int64_t n, std::uint32_t* below, Most most) const {
        std::int32_t step[1024];
        for (std::int64_t i = 0; i < n; ++i) step[i] = step_of(x[i]);
        const double* cuts = cuts_.data();
        const std::uint32_t* first = first_.data();
        for (std::int64_t i = 0; i < n; ++i) {
            std::uint32_t at = first[step[i]];
            for (std::size_t k = 0; k < most; ++k) at += static_cast<std::uint32_t>(cuts[at] < x[i]);
            below[i] = at;
        }
    }
    std::int32_t step_of(double x) const {
        const double along = (x - low_) * scale_;
        const double not_below = along > 0.0 ? along : 0.0;  // NaN becomes 0
        return static_cast<std::int32_t>(not_below < last_ ? not_below : last_);
    }

    std::vector<double> cuts_;
    std::vector<std::uint32_t> first_;  // cuts in earlier steps
    std::size_t most_ = 0;
    double low_ = 0.0, scale_ = 0.0, last_ = 0.0;
};

// The cuts of one column, laid out as a full binary tree in level order: node k tests `cut < x` and leads to 2k or
// 2k + 1. Padded with infinity, which no number exceeds, to 2^levels - 1 cuts, the number of the leaf below the last
// level is 2^levels + code. If there are groups, one for each of the n_cuts + 1 codes, these are written instead.
class CutTree {
  public:
    CutTree(const double* cuts, std::size_t n_cuts, bool single, std::vector<std::uint16_t> groups = {})
        : ruler_(cuts, n_cuts), groups_(std::move(groups)), n_cuts_(n_cuts), single_(single) {
        while ((std::size_t{1} << levels_) <= n_cuts) ++levels_;
        nodes_.assign(std::size_t{1} << levels_, std::numeric_limits<double>::infinity());
        std::size_t next = 0;
        lay_out(1, cuts, next);
    }
    // The largest code that a number can have, apart from the missing one.
    std::size_t largest_code() const {
        std::size_t largest = groups_.empty() ? n_cuts_ : 0;
        for (const std::uint16_t group : groups_)
            if (group != missing_code<std::uint16_t>) largest = std::max<std::size_t>(largest, group);
        return largest;
    }

    // Codes of n <= 1024 numbers to out[0], out[step], ...; in the tree, several numbers in flight hide the latency of
    // each one's descent.
    template <class Code>
    void codes(double* x, std::int64_t n, Code* out, std::ptrdiff_t step) const {
        if (single_)
            for (std::int64_t i = 0; i < n; ++i) x[i] = static_cast<double>(static_cast<float>(x[i]));
        if (static_cast<int>(ruler_.most()) + 2 < levels_) {
            std::uint32_t below[1024];
            ruler_.count_below(x, n, below);
            write(x, below, n, out, step);
            return;
        }
        std::int64_t i = 0;
        for (; i + in_flight <= n; i += in_flight) some_codes<in_flight>(x + i, out + i * step, step);
        for (; i < n; ++i) some_codes<1>(x + i, out + i * step, step);
    }

  private:
    static constexpr int in_flight = 8;

    // Two loops, so that columns without groups, which are most, do not test for them in every step.
    template <class Code>
    void write(const double* x, const std::uint32_t* below, std::int64_t n, Code* out, std::ptrdiff_t step) const {
        if (!groups_.empty()) {
            for (std::int64_t i = 0; i < n; ++i) out[i * step] = code_of<Code>(x[i], below[i]);
            return;
        }
        for (std::int64_t i = 0; i < n; ++i)
            out[i * step] = x[i] == x[i] ? static_cast<Code>(below[i]) : missing_code<Code>;
    }

    template <int n, class Code>
    void some_codes(const double* x, Code* out, std::ptrdiff_t step) const {
        const double* nodes = nodes_.data();
        std::uint64_t at[n];
        for (int i = 0; i < n; ++i) at[i] = 1;
        for (int level = 0; level < levels_; ++level)
            for (int i = 0; i < n; ++i) at[i] = 2 * at[i] + static_cast<std::uint64_t>(nodes[at[i]] < x[i]);
        for (int i = 0; i < n; ++i) out[i * step] = code_of<Code>(x[i], at[i] - (std::uint64_t{1} << levels_));
    }

    // The missing code of a wider type becomes that of a narrower one.
    template <class Code>
    Code code_of(double x, std::uint64_t below) const {
        const auto code = static_cast<Code>(groups_.empty() ? below : groups_[below]);
        return std::isnan(x) ? missing_code<Code> : code;
    }

    void lay_out(std::size_t node, const double* cuts, std::size_t& next) {
        if (node >= nodes_.size()) return;
        lay_out(2 * node, cuts, next);
        if (next < n_cuts_) nodes_[node] = cuts[next++];
        lay_out(2 * node + 1, cuts, next);
    }

    Ruler ruler_;
    std::vector<double> nodes_;
    std::vector<std::uint16_t> groups_;
    std::size_t n_cuts_;
    int levels_ = 0;
    bool single_;
};

// The position of an infinite number.
struct InfinitePlace {
    std::int64_t row, column;
};

// Codes of a whole table, row-major; a column without data is left unchanged. Throws InfinitePlace for the first
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
    in_chunks((n_rows + work_rows - 1) / work_rows, n_jobs, work);
}

}  // namespace everytree::columns
