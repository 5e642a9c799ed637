// The codes of a node's rows in one column, one after another, and sums over the rows up to a threshold.
//
// All loops are over neighbours and without branches, in lanes that the compiler makes vectors of.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "grow/criteria.hpp"

namespace everytree::grow {

struct CodeRange {
    int least, most;  // of codes that are not missing; least > most where all are
    bool some_missing;
};

// How many of 0 .. n - 1 have a property, which is 0 or 1.
template <class Lane, class Has>
std::int64_t count_those(std::size_t n, Has has) {
    constexpr std::size_t lanes = 16, most = 255;  // a byte holds so many
    std::int64_t count = 0;
    std::size_t i = 0;
    while (i + lanes <= n) {
        Lane lane[lanes] = {};
        const std::size_t end = i + lanes * std::min(most, (n - i) / lanes);
        for (; i < end; i += lanes)
            for (std::size_t k = 0; k < lanes; ++k) lane[k] = static_cast<Lane>(lane[k] + has(i + k));
        for (std::size_t k = 0; k < lanes; ++k) count += lane[k];
    }
    for (; i < n; ++i) count += has(i);
    return count;
}

// Sums over rows, by any criterion.
template <class Code, class Criterion>
class LeftSums {
  public:
    void take_targets(std::span<const SampledRow<Criterion>> rows) { rows_ = rows; }
    template <class IsLeft>
    void add(const Criterion& criterion, IsLeft is_left, typename Criterion::Cell* left) {
        // Two rows at a time into cells of their own: a sum need not wait for the one before. Rows that are not left go
        // to cells that nobody reads, which is faster than a branch that cannot be foreseen.
        const auto n_cells = static_cast<std::size_t>(criterion.n_cells());
        cells_.assign(4 * n_cells, {});
        typename Criterion::Cell* const cells = cells_.data();
        for (std::size_t i = 0; i < rows_.size(); ++i)
            criterion.add(cells + ((i & 1) * 2 + is_left(i)) * n_cells, rows_[i].target);
        for (std::size_t k = 0; k < n_cells; ++k) left[k] += cells[n_cells + k] + cells[3 * n_cells + k];
    }

  private:
    std::span<const SampledRow<Criterion>> rows_;
    std::vector<typename Criterion::Cell> cells_;
};

// The same for two classes: labels and codes of the same width are compared many at once.
template <class Code, Impurity impurity>
class LeftSums<Code, ClassCriterion<impurity, 2>> {
  public:
    using Criterion = ClassCriterion<impurity, 2>;
    void take_targets(std::span<const SampledRow<Criterion>> rows) {
        labels_.resize(std::max(labels_.size(), rows.size()));
        n_rows_ = rows.size();
        for (std::size_t i = 0; i < n_rows_; ++i) labels_[i] = static_cast<Code>(rows[i].target.label);
    }
    template <class IsLeft>
    void add(const Criterion&, IsLeft is_left, std::uint32_t* left) {
        const Code* const labels = labels_.data();
        const auto n = count_those<Code>(n_rows_, [=](std::size_t i) { return is_left(i); });
        const auto n_ones = count_those<Code>(n_rows_, [=](std::size_t i) { return is_left(i) & (labels[i] != 0); });
        left[0] += static_cast<std::uint32_t>(n - n_ones);
        left[1] += static_cast<std::uint32_t>(n_ones);
    }

  private:
    std::vector<Code> labels_;
    std::size_t n_rows_ = 0;
};

template <class Code, class Criterion>
class Gathered {
  public:
    using Rows = std::span<const SampledRow<Criterion>>;

    void take_targets(Rows rows) {
        codes_.resize(std::max(codes_.size(), rows.size()));
        sums_.take_targets(rows);
    }

    // Missing codes become `n_codes`.
    CodeRange take_codes(const Code* column, int n_codes, Rows rows) {
        const auto missing = static_cast<Code>(n_codes);
        Code* const codes = codes_.data();
        const std::size_t n = rows.size();
        for (std::size_t i = 0; i < n; ++i) codes[i] = std::min(column[rows[i].row], missing);
        Code least = missing, most = 0;
        for (std::size_t i = 0; i < n; ++i) {
            least = std::min(least, codes[i]);
            most = std::max(most, codes[i]);
        }
        if (most < missing) return {least, most, false};
        most = 0;
        for (std::size_t i = 0; i < n; ++i) most = std::max(most, codes[i] == missing ? Code{0} : codes[i]);
        return {least, least == missing ? -1 : most, true};
    }

    // Adds the cells of rows with codes up to the threshold.
    void sum_upto(const Criterion& criterion, int threshold, typename Criterion::Cell* left) {
        const Code* const codes = codes_.data();
        const auto largest = static_cast<Code>(threshold);
        sums_.add(criterion, [=](std::size_t i) { return codes[i] <= largest; }, left);
    }
    // Adds the cells of rows whose code is missing.
    void sum_missing(const Criterion& criterion, int n_codes, typename Criterion::Cell* left) {
        const Code* const codes = codes_.data();
        const auto missing = static_cast<Code>(n_codes);
        sums_.add(criterion, [=](std::size_t i) { return codes[i] == missing; }, left);
    }

  private:
    std::vector<Code> codes_;
    LeftSums<Code, Criterion> sums_;
};

}  // namespace everytree::grow
