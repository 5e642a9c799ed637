// A scan of every number of a column that is too long to keep: its distinct values while they are few, whether some are
// missing, and the row of an infinite one. Also the choice of the rows of a long table that are drawn into a sample.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/rows.hpp"
#include "core/scramble.hpp"

namespace everytree::columns {

// Distinct numbers up to a limit, compared by their bits; 0.0 and -0.0 are equal.
class FewNumbers {
  public:
    explicit FewNumbers(std::size_t most) : most_(most), slots_(std::bit_ceil(4 * most + 4), empty) {
        shift_ = 64 - std::countr_zero(slots_.size());
    }
    // False if there are more than the limit.
    bool add(double x) {
        const auto bits = std::bit_cast<std::uint64_t>(x + 0.0);  // -0.0 + 0.0 is 0.0
        std::size_t at = (bits * 0x9e3779b97f4a7c15ULL) >> shift_;
        while (slots_[at] != empty) {
            if (slots_[at] == bits) return true;
            at = (at + 1) & (slots_.size() - 1);
        }
        if (values_.size() == most_) return false;
        slots_[at] = bits;
        values_.push_back(x + 0.0);
        return true;
    }
    std::vector<double> take() { return std::move(values_); }

  private:
    static constexpr std::uint64_t empty = ~std::uint64_t{0};  // the bits of a NaN, which is never added
    std::size_t most_;
    std::vector<std::uint64_t> slots_;
    std::vector<double> values_;
    int shift_;
};

struct NumberScan {
    bool few;  // whether the distinct numbers are still being collected
    bool has_missing = false;
    std::int64_t infinite_row = -1;
};

// Stops at the first infinite number.
inline NumberScan scan_column(const Column& column, std::int64_t n_rows, FewNumbers* distinct) {
    constexpr std::int64_t block = 1024;
    const bool may_be_odd = column.scalar == Scalar::float32 || column.scalar == Scalar::float64;
    NumberScan found{distinct != nullptr};
    double x[block];
    for (std::int64_t begin = 0; begin < n_rows && (found.few || may_be_odd); begin += block) {
        const std::int64_t n = std::min(block, n_rows - begin);
        column.read(begin, n, x, 1);
        std::int64_t n_odd = 0;
        for (std::int64_t i = 0; i < n; ++i) n_odd += !(std::abs(x[i]) <= std::numeric_limits<double>::max());
        for (std::int64_t i = 0; n_odd > 0 && i < n; ++i) {
            found.has_missing |= std::isnan(x[i]);
            if (!std::isinf(x[i])) continue;
            found.infinite_row = begin + i;
            return found;
        }
        for (std::int64_t i = 0; found.few && i < n; ++i)
            if (n_odd == 0 || !std::isnan(x[i])) found.few = distinct->add(x[i]);
    }
    return found;
}

// Every row of a table has a key that looks random and depends on the seed and its number alone; those with keys below
// the bound are in the sample. The smallest keys of a union are among the smallest of its parts: samples merge.
struct SampledRows {
    std::vector<std::int64_t> rows;
    std::vector<std::uint64_t> keys;
};

inline SampledRows sampled_rows(std::uint64_t seed, std::uint64_t first_row, std::int64_t n_rows, std::uint64_t bound) {
    SampledRows sampled;
    const std::uint64_t base = scramble(seed) + first_row;
    for (std::int64_t i = 0; i < n_rows; ++i) {
        const std::uint64_t key = scramble(base + static_cast<std::uint64_t>(i));
        if (key > bound) continue;
        sampled.rows.push_back(i);
        sampled.keys.push_back(key);
    }
    return sampled;
}

}  // namespace everytree::columns
