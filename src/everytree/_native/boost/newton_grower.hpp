// A tree grown on the derivatives of a loss, best split first.
//
// Derivatives are rounded to whole numbers, some 2^-31 of the largest one. Their sums are exact in any order, so that
// the histogram of a node is that of its parent less that of its sibling, and splits that are equally good stay so.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <queue>
#include <span>
#include <vector>

#include "core/codes.hpp"
#include "grow/rule.hpp"
#include "grow/tree.hpp"

namespace everytree::boost {

struct NewtonRule {
    double tau;  // a node with sums G and H of the derivatives is worth G^2 / (H + tau)
    std::int64_t min_samples_leaf;
    int max_depth;                // 0: any
    std::int64_t max_leaf_nodes;  // 0: any number
};

// Sums of rows: of first derivatives, and the number of rows above the sum of second ones, in one word.
struct NewtonSums {
    std::int64_t first = 0;
    std::uint64_t packed = 0;
    NewtonSums& operator+=(const NewtonSums& other) {
        first += other.first;
        packed += other.packed;
        return *this;
    }
    NewtonSums& operator-=(const NewtonSums& other) {
        first -= other.first;
        packed -= other.packed;
        return *this;
    }
};

// Rounding of derivatives for a number of rows: `shift` bits hold the sum of the second ones, the rest their number.
struct Rounding {
    Rounding(std::size_t n_rows, double largest_first, double largest_second) {
        const int for_rows = static_cast<int>(std::bit_width(n_rows)) + 1;
        shift = 64 - for_rows;
        first = std::ldexp(1.0, std::min(62 - for_rows, 31) - exponent(largest_first));
        second = std::ldexp(1.0, std::min(shift - for_rows, 31) - exponent(largest_second));
    }
    NewtonSums of(double one_first, double one_second) const {
        return {std::llrint(one_first * first),
                (std::uint64_t{1} << shift) + static_cast<std::uint64_t>(std::llrint(one_second * second))};
    }
    std::int64_t n_rows(const NewtonSums& sums) const { return static_cast<std::int64_t>(sums.packed >> shift); }
    double second_of(const NewtonSums& sums) const {
        return static_cast<double>(static_cast<std::int64_t>(sums.packed & ((std::uint64_t{1} << shift) - 1)));
    }
    int shift;
    double first, second;  // whole numbers a unit of each derivative; powers of two

  private:
    static int exponent(double largest) {  // the power of two above it
        int power = 0;
        std::frexp(largest, &power);
        return std::clamp(power, -900, 900);
    }
};

template <class Code>
class NewtonGrower {
  public:
    // `codes` are the same table as `columns`, row after row.
    NewtonGrower(const grow::CodeColumns<Code>& columns, const Codes<Code>& codes, const NewtonRule& rule)
        : table_(columns), codes_(codes), rule_(rule) {}

    // `used` are the columns that may be split on; of equally good splits, that on the one that comes first is made.
    // `sample` are numbers of rows, at most 2^24.
    grow::GrownTree grow(std::span<const std::uint32_t> sample, const double* first, const double* second,
                         const std::vector<int>& used, const std::uint8_t* has_missing) {
        take_columns(used);
        take_rows(sample, first, second);
        nodes_.assign(1, {0, sample.size(), 0});
        for (const NewtonSums& each : derivatives_) nodes_[0].total += each;
        std::priority_queue<Open> open;
        const auto push = [&](std::int32_t node) {
            const double gain = find_split(nodes_[place(node)]);
            if (gain > 0.0) open.push({node, gain});
        };
        give_histogram(nodes_[0]);
        push(0);
        for (std::int64_t n_leaves = 2; !open.empty(); ++n_leaves) {
            const std::int32_t parent = open.top().node, left = static_cast<std::int32_t>(nodes_.size());
            open.pop();
            divide(parent);
            if (rule_.max_leaf_nodes > 0 && n_leaves >= rule_.max_leaf_nodes) break;
            share_histogram(nodes_[place(parent)]);
            push(left);
            push(left + 1);
        }
        return in_level_order(has_missing);
    }

  private:
    static constexpr std::int32_t none = -1;
    // Nodes of fewer rows are summed up column by column, without a histogram that their children could use.
    static constexpr std::size_t few_rows = 192;
    static constexpr std::size_t most_cells = std::size_t{1} << 20;  // of all histograms together

    struct Node {
        std::size_t begin, end;
        int depth;
        NewtonSums total{};
        grow::Split split{};
        std::int32_t left = none;       // place of the left child; the right one follows it
        std::int32_t histogram = none;  // where sums are known for each code of each column
        std::size_t n_rows() const { return end - begin; }
    };
    struct Open {
        std::int32_t node;
        double gain;
        // The largest gain first; of equal ones, the node that was opened first.
        bool operator<(const Open& other) const { return gain != other.gain ? gain < other.gain : node > other.node; }
    };

    static std::size_t place(std::int32_t number) { return static_cast<std::size_t>(number); }

    void take_columns(const std::vector<int>& used) {
        used_ = used;
        n_codes_.clear();
        offset_.clear();
        std::size_t cells = 0;
        for (const int column : used_) {
            n_codes_.push_back(table_.n_codes(column));
            offset_.push_back(cells);
            cells += static_cast<std::size_t>(table_.n_codes(column)) + 5;  // one for missing, and columns out of step
        }
        n_cells_ = cells;
        free_.clear();
        for (std::size_t k = 0; k < histograms_.size(); ++k) free_.push_back(static_cast<std::int32_t>(k));
        const int most = n_codes_.empty() ? 0 : *std::max_element(n_codes_.begin(), n_codes_.end());
        of_code_.assign(static_cast<std::size_t>(most) + 1, {});
    }

    // The codes of the sample, row after row; missing ones come after all others.
    void take_rows(std::span<const std::uint32_t> sample, const double* first, const double* second) {
        double largest_first = 0.0, largest_second = 0.0;
        for (const std::uint32_t i : sample) {
            largest_first = std::max(largest_first, std::abs(first[i]));
            largest_second = std::max(largest_second, second[i]);
        }
        const Rounding rounding(sample.size(), largest_first, largest_second);
        shift_ = rounding.shift;
        // Everything in units of the rounded sums: gains are compared with each other and with 0.
        first_unit_ = rounding.first;
        second_unit_ = rounding.second;
        const std::size_t n = sample.size(), width = used_.size();
        derivatives_.resize(n);
        rows_.resize(n);
        aside_.resize(n);
        sampled_.resize(n * width);
        for (std::size_t i = 0; i < n; ++i) {
            rows_[i] = static_cast<std::uint32_t>(i);
            derivatives_[i] = rounding.of(first[sample[i]], second[sample[i]]);
            const Code* const from = codes_.row(sample[i]);
            Code* const to = sampled_.data() + i * width;
            for (std::size_t k = 0; k < width; ++k) to[k] = std::min(from[used_[k]], static_cast<Code>(n_codes_[k]));
        }
        rounding_.emplace(rounding);
    }
