// A tree grown on the derivatives of a loss: of all splits of all its leaves, the one that wins most comes next.
//
// Derivatives are rounded to whole numbers, the largest to about 2^31. Their sums are exact in any order: the histogram
// of a node is that of its parent less that of its sibling, and splits that are equally good stay so.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <queue>
#include <span>
#include <vector>

#include "core/codes.hpp"
#include "grow/columns.hpp"
#include "grow/rule.hpp"
#include "grow/tree.hpp"

namespace everytree::boost {

struct NewtonRule {
    double tau;  // a node with sums G and H of first and second derivatives is worth G^2 / (H + tau)
    std::int64_t min_samples_leaf;
    int max_depth;                // 0: any
    std::int64_t max_leaf_nodes;  // 0: any number
};

// Sums of rows: of first derivatives; and in one word the sum of second ones, and above it the number of rows.
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
    friend NewtonSums operator-(NewtonSums a, const NewtonSums& b) { return a -= b; }
};

// How derivatives of so many rows, at most 2^24, are rounded and packed.
class Rounding {
  public:
    Rounding() = default;
    Rounding(std::size_t n_rows, double largest_first, double largest_second) {
        const int for_rows = static_cast<int>(std::bit_width(n_rows)) + 1;
        shift_ = 64 - for_rows;
        first_ = std::ldexp(1.0, std::min(62 - for_rows, 31) - exponent(largest_first));
        second_ = std::ldexp(1.0, std::min(shift_ - for_rows, 31) - exponent(largest_second));
    }
    NewtonSums operator()(double first, double second) const {
        return {std::llrint(first * first_),
                (std::uint64_t{1} << shift_) + static_cast<std::uint64_t>(std::llrint(second * second_))};
    }
    std::int64_t n_rows(const NewtonSums& sums) const { return static_cast<std::int64_t>(sums.packed >> shift_); }
    // The sum of second derivatives, in the unit of `of_second`.
    double second(const NewtonSums& sums) const {
        return static_cast<double>(static_cast<std::int64_t>(sums.packed & ((std::uint64_t{1} << shift_) - 1)));
    }
    double of_second(double value) const { return value * second_; }

  private:
    static int exponent(double largest) {  // a power of two that is not smaller
        int power = 0;
        std::frexp(largest, &power);
        return std::clamp(power, -900, 900);
    }
    int shift_ = 0;
    double first_ = 1.0, second_ = 1.0;  // powers of two
};

template <class Code>
class NewtonGrower {
  public:
    // `codes` are the same table as `columns`, row after row.
    NewtonGrower(const grow::CodeColumns<Code>& columns, const Codes<Code>& codes, const NewtonRule& rule)
        : table_(columns),
          codes_(codes),
          rule_(rule),
          of_code_(static_cast<std::size_t>(columns.most_codes()) + 1),
          is_seen_(of_code_.size() / 64 + 1) {}

    // `used` are the columns that may be split on; of equally good splits, that of the first of them is made.
    // `sample` are numbers of rows; `has_missing` says which columns have a branch for missing values.
    grow::GrownTree grow(std::span<const std::uint32_t> sample, const double* first, const double* second,
                         const std::vector<int>& used, const std::uint8_t* has_missing) {
        take_columns(used);
        take_rows(sample, first, second);
        nodes_.assign(1, {0, sample.size(), 0});
        for (const NewtonSums& each : derivatives_) nodes_[0].total += each;
        std::priority_queue<Open> open;
        const auto push = [&](std::int32_t node) {
            const double gain = find_split(at(node));
            if (gain > 0.0)
                open.push({node, gain});
            else
                release(at(node));
        };
        give_histogram(at(0));
        push(0);
        for (std::int64_t n_leaves = 2; !open.empty(); ++n_leaves) {
            const std::int32_t parent = open.top().node;
            open.pop();
            divide(parent);
            if (n_leaves == rule_.max_leaf_nodes) break;
            share_histogram(parent);
            push(at(parent).left);
            push(at(parent).left + 1);
        }
        return in_level_order(has_missing);
    }

  private:
    static constexpr std::int32_t none = -1;
    // Nodes with fewer rows than that, or than columns have codes, are summed up anew.
    static constexpr std::size_t few_rows = 192;
    static constexpr std::size_t most_cells = std::size_t{1} << 20;  // of all histograms together

    struct Node {
        std::size_t begin, end;
        int depth;
        NewtonSums total{};
        grow::Split split{};            // its feature is a place in `used_`
        std::int32_t left = none;       // the left child; the right one follows it
        std::int32_t histogram = none;  // its sums for each code of each column, where they are kept
        std::size_t n_rows() const { return end - begin; }
    };
    struct Open {
        std::int32_t node;
        double gain;
        // The largest gain first; of equal ones, the node that was opened first.
        bool operator<(const Open& other) const { return gain != other.gain ? gain < other.gain : node > other.node; }
    };

    Node& at(std::int32_t node) { return nodes_[static_cast<std::size_t>(node)]; }

    // ---- rows and columns -------------------------------------------------------------------------------------------

    void take_columns(const std::vector<int>& used) {
        used_ = used;
        n_codes_.clear();
        offset_.clear();
        n_cells_ = 0;
        for (const int column : used_) {
            n_codes_.push_back(static_cast<std::uint32_t>(table_.n_codes(column)));
            offset_.push_back(static_cast<std::uint32_t>(n_cells_));
            // One for missing values; the others keep columns from competing for the same lines of the cache.
            n_cells_ += static_cast<std::size_t>(n_codes_.back()) + 5;
        }
        const std::size_t n_kept = std::min(most_cells / std::max(n_cells_, std::size_t{1}), std::size_t{1024});
        histograms_.resize(n_kept);
        free_.clear();
        for (std::size_t k = n_kept; k-- > 0;) free_.push_back(static_cast<std::int32_t>(k));
    }

    // The sample row after row, with missing codes after all others.
    void take_rows(std::span<const std::uint32_t> sample, const double* first, const double* second) {
        double largest_first = 0.0, largest_second = 0.0;
        for (const std::uint32_t i : sample) {
            largest_first = std::max(largest_first, std::abs(first[i]));
            largest_second = std::max(largest_second, second[i]);
        }
        rounding_ = Rounding(sample.size(), largest_first, largest_second);
        tau_ = rounding_.of_second(rule_.tau);
        const std::size_t n = sample.size(), width = used_.size();
        derivatives_.resize(n);
        rows_.resize(n);
        aside_.resize(n);
        sampled_.resize(n * width);
        for (std::size_t i = 0; i < n; ++i) {
            rows_[i] = static_cast<std::uint32_t>(i);
            derivatives_[i] = rounding_(first[sample[i]], second[sample[i]]);
            const Code* const from = codes_.row(sample[i]);
            Code* const to = sampled_.data() + i * width;
            for (std::size_t k = 0; k < width; ++k)
                to[k] = static_cast<Code>(std::min<std::uint32_t>(from[used_[k]], n_codes_[k]));
        }
    }
    const Code* codes_of(std::uint32_t row) const { return sampled_.data() + row * used_.size(); }

    void divide(std::int32_t number) {
        const Node node = at(number);
        const auto place = static_cast<std::size_t>(node.split.feature), width = used_.size();
        const auto threshold = static_cast<std::uint32_t>(node.split.threshold), missing = n_codes_[place];
        const bool missing_left = node.split.missing_left;
        const Code* const column = sampled_.data() + place;
        std::uint32_t *left = rows_.data() + node.begin, *right = aside_.data();
        for (std::size_t i = node.begin; i < node.end; ++i) {
            const std::uint32_t row = rows_[i], code = column[row * width];
            const bool is_left = (code <= threshold) | (missing_left & (code == missing));
            *left = row;
            *right = row;
            left += is_left;
            right += !is_left;
        }
        std::copy(aside_.data(), right, left);
        const auto middle = static_cast<std::size_t>(left - rows_.data());
        const bool is_left_smaller = middle - node.begin <= node.end - middle;
        NewtonSums smaller;
        for (std::size_t i = is_left_smaller ? node.begin : middle; i < (is_left_smaller ? middle : node.end); ++i)
            smaller += derivatives_[rows_[i]];
        const NewtonSums larger = node.total - smaller;
        at(number).left = static_cast<std::int32_t>(nodes_.size());
        nodes_.push_back({node.begin, middle, node.depth + 1, is_left_smaller ? smaller : larger});
        nodes_.push_back({middle, node.end, node.depth + 1, is_left_smaller ? larger : smaller});
    }

    // ---- histograms -------------------------------------------------------------------------------------------------

    bool may_split(const Node& node) const {
        const auto n_rows = static_cast<std::int64_t>(node.n_rows());
        return n_rows >= std::max<std::int64_t>(2, 2 * rule_.min_samples_leaf) &&
               (rule_.max_depth <= 0 || node.depth < rule_.max_depth);
    }
    bool needs_histogram(const Node& node) const {
        return may_split(node) && node.n_rows() * used_.size() >= std::min(few_rows * used_.size(), n_cells_);
    }

    void give_histogram(Node& node) {
        if (!needs_histogram(node) || free_.empty()) return;
        node.histogram = free_.back();
        free_.pop_back();
        histograms_[static_cast<std::size_t>(node.histogram)].assign(n_cells_, {});
        for_cells(node, cells_of(node), [](NewtonSums& cell, const NewtonSums& own) { cell += own; });
    }
    void release(Node& node) {
        if (node.histogram != none) free_.push_back(node.histogram);
        node.histogram = none;
    }
    NewtonSums* cells_of(const Node& node) { return histograms_[static_cast<std::size_t>(node.histogram)].data(); }

    // Calls change(cell, derivatives) for the cell of each row in each column.
    template <class Change>
    void for_cells(const Node& node, NewtonSums* cells, Change change) const {
        const std::uint32_t* const offset = offset_.data();
        const std::size_t width = used_.size();
        for (std::size_t i = node.begin; i < node.end; ++i) {
            const NewtonSums own = derivatives_[rows_[i]];
            const Code* const codes = codes_of(rows_[i]);
            for (std::size_t k = 0; k < width; ++k) change(cells[offset[k] + codes[k]], own);
        }
    }

    // The larger child takes the histogram of its parent, less the rows of the other one.
    void share_histogram(std::int32_t parent) {
        Node &left = at(at(parent).left), &right = at(at(parent).left + 1);
        Node &smaller = left.n_rows() <= right.n_rows() ? left : right, &larger = &smaller == &left ? right : left;
        give_histogram(smaller);
        if (at(parent).histogram == none) {
            give_histogram(larger);
        } else if (!needs_histogram(larger)) {
            release(at(parent));
        } else {
            larger.histogram = at(parent).histogram;
            at(parent).histogram = none;
            NewtonSums* const cells = cells_of(larger);
            if (smaller.histogram == none) {
                for_cells(smaller, cells, [](NewtonSums& cell, const NewtonSums& own) { cell -= own; });
            } else {
                const NewtonSums* const less = cells_of(smaller);
                for (std::size_t k = 0; k < n_cells_; ++k) cells[k] -= less[k];
            }
        }
    }

    // ---- splits -----------------------------------------------------------------------------------------------------

    double value(const NewtonSums& sums) const {
        const auto first = static_cast<double>(sums.first);
        return first * first / (rounding_.second(sums) + tau_);
    }

    // What the best split of a node wins over none; 0 where there is none.
    double find_split(Node& node) {
        if (!may_split(node)) return 0.0;
        grow::Split best;
        for (std::size_t k = 0; k < used_.size(); ++k) {
            if (node.histogram == none)
                look_at_rows(node, k, best);
            else
                look_at_cells(node, k, cells_of(node) + offset_[k], best);
        }
        node.split = best;
        return best.is_found() ? best.score - value(node.total) : 0.0;
    }

    // A column by sums that are known for each of its codes.
    void look_at_cells(const Node& node, std::size_t k, const NewtonSums* cells, grow::Split& best) const {
        const auto n_codes = static_cast<int>(n_codes_[k]);
        Thresholds column(*this, node, static_cast<int>(k), cells[n_codes], best);
        for (int code = 0; code < n_codes; ++code)
            if (cells[code].packed) column.take(code, cells[code]);
        best = column.best(n_codes);
    }

    // A column by the rows of the node.
    void look_at_rows(const Node& node, std::size_t k, grow::Split& best) {
        const std::size_t width = used_.size(), n_codes = n_codes_[k];
        const Code* const codes = sampled_.data() + k;
        NewtonSums* const cells = of_code_.data();
        std::uint64_t* const is_seen = is_seen_.data();
        for (std::size_t i = node.begin; i < node.end; ++i) {
            const std::size_t code = codes[rows_[i] * width];
            cells[code] += derivatives_[rows_[i]];
            is_seen[code / 64] |= std::uint64_t{1} << code % 64;
        }
        Thresholds column(*this, node, static_cast<int>(k), cells[n_codes], best);
        is_seen[n_codes / 64] &= ~(std::uint64_t{1} << n_codes % 64);
        cells[n_codes] = {};
        for (std::size_t word = 0; word <= n_codes / 64; ++word) {
            for (std::uint64_t seen = is_seen[word]; seen != 0; seen &= seen - 1) {
                const std::size_t code = 64 * word + static_cast<std::size_t>(std::countr_zero(seen));
                column.take(static_cast<int>(code), cells[code]);
                cells[code] = {};
            }
            is_seen[word] = 0;
        }
        best = column.best(static_cast<int>(n_codes));
    }

    // The thresholds of a column between two codes that some rows of a node have, from the lowest to the highest.
    class Thresholds {
      public:
        Thresholds(const NewtonGrower& grower, const Node& node, int place, const NewtonSums& missing,
                   const grow::Split& best)
            : rounding_(grower.rounding_),
              total_(node.total),
              missing_(missing),
              tau_(grower.tau_),
              first_(static_cast<double>(total_.first)),
              second_(rounding_.second(total_) + 2.0 * tau_),
              min_samples_leaf_(grower.rule_.min_samples_leaf),
              place_(place),
              best_(best),
              least_(best.is_found() ? best.score : -1.0) {}  // no score is below 0
        // The next code.
        void take(int code, const NewtonSums& own) {
            if (last_ >= 0) {
                judge((last_ + code) / 2, left_, false);
                if (missing_.packed) {
                    NewtonSums with_missing = left_;
                    judge((last_ + code) / 2, with_missing += missing_, true);
                }
            }
            left_ += own;
            last_ = code;
        }
        // The best split so far, that of missing values against all others included.
        grow::Split best(int n_codes) {
            if (missing_.packed && last_ >= 0) judge(n_codes - 1, left_, false);
            return best_;
        }

      private:
        void judge(int threshold, const NewtonSums& left, bool missing_left) {
            // The sum of both values as one fraction: one division instead of two.
            const double a = static_cast<double>(left.first), b = first_ - a;
            const double of_left = rounding_.second(left) + tau_, of_right = second_ - of_left;
            const double score = (a * a * of_right + b * b * of_left) / (of_left * of_right);
            if (!(score > least_)) return;
            const std::int64_t n_left = rounding_.n_rows(left), n_right = rounding_.n_rows(total_) - n_left;
            if (std::min(n_left, n_right) < min_samples_leaf_) return;
            // Where no row of the node is missing, missing values will go where most rows go.
            if (!missing_.packed) missing_left = n_left > n_right;
            best_ = {place_, threshold, missing_left, score};
            least_ = score;
        }

        const Rounding rounding_;
        const NewtonSums total_, missing_;
        const double tau_, first_, second_;
        const std::int64_t min_samples_leaf_;
        const int place_;
        NewtonSums left_{};
        int last_ = -1;
        grow::Split best_;
        double least_;
    };

    // ---- the tree ---------------------------------------------------------------------------------------------------

    grow::GrownTree in_level_order(const std::uint8_t* has_missing) {
        const std::size_t n = nodes_.size();
        grow::GrownTree tree;
        for (auto* each : {&tree.feature, &tree.first_child, &tree.threshold, &tree.missing_child}) each->assign(n, -1);
        tree.n_children.assign(n, 0);
        std::vector<std::int32_t> order{0};
        order.reserve(n);
        for (std::size_t i = 0; i < n; ++i) {  // children are appended behind their parents: level by level
            const Node& node = at(order[i]);
            if (node.left == none) continue;
            const int column = used_[static_cast<std::size_t>(node.split.feature)];
            tree.feature[i] = column;
            tree.threshold[i] = node.split.threshold;
            tree.first_child[i] = static_cast<std::int32_t>(order.size());
            tree.n_children[i] = 2;
            if (has_missing[column]) tree.missing_child[i] = node.split.missing_left ? 0 : 1;
            order.push_back(node.left);
            order.push_back(node.left + 1);
        }
        return tree;
    }

    const grow::CodeColumns<Code>& table_;
    Codes<Code> codes_;
    NewtonRule rule_;
    Rounding rounding_;
    double tau_ = 0.0;  // in the unit of the rounded second derivatives
    std::vector<int> used_;
    std::vector<std::uint32_t> n_codes_, offset_;  // of the used columns
    std::size_t n_cells_ = 0;                      // of a histogram
    std::vector<Code> sampled_;                    // (n_rows, n_used) codes of the sample
    std::vector<NewtonSums> derivatives_;          // of each row of the sample
    std::vector<std::uint32_t> rows_, aside_;      // rows of the sample, those of a node next to each other
    std::vector<std::vector<NewtonSums>> histograms_;
    std::vector<std::int32_t> free_;      // histograms that no node has
    std::vector<NewtonSums> of_code_;     // of the column that is looked at; 0 in between
    std::vector<std::uint64_t> is_seen_;  // a bit for each of its codes
    std::vector<Node> nodes_;
};

}  // namespace everytree::boost
