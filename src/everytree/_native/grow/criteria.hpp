// What trees are grown by: each row adds something to a few cells, and a criterion gives the cells of a node a value.
//
// A split is worth value(left) + value(right); what it wins over no split is that less value(node). Cells of rows are
// summed, so that all splits of a column are judged in one pass over its codes. Rows whose targets are all the same are
// not split.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace everytree::grow {

// A row of the sample with its target beside it, since both are read one after another.
template <class Criterion>
struct SampledRow {
    std::uint32_t row;
    typename Criterion::Row target;
};

// Whether all rows have the target of the first one.
template <class Criterion, class Same>
bool all_equal(std::span<const SampledRow<Criterion>> rows, Same same) {
    return std::all_of(rows.begin(), rows.end(),
                       [&](const auto& each) { return same(each.target, rows.front().target); });
}

// x log x; of small whole numbers from a table.
inline double x_log_x(double x) {
    static const std::vector<double> table = [] {
        std::vector<double> values(1 << 14, 0.0);
        for (std::size_t n = 2; n < values.size(); ++n) {
            const auto whole = static_cast<double>(n);
            values[n] = whole * std::log(whole);
        }
        return values;
    }();
    if (x < static_cast<double>(table.size())) {
        const auto whole = static_cast<std::size_t>(x);
        if (static_cast<double>(whole) == x) return table[whole];
    }
    return x > 0.0 ? x * std::log(x) : 0.0;
}

// How mixed the classes of a node are: the sum over all rows of the Gini impurity or of the entropy, less a constant.
enum class Impurity : std::uint8_t { gini, entropy };

template <Impurity impurity, class Cell>
double purity(const Cell* of_class, int n_classes) {
    double total = 0.0, sum = 0.0;
    for (int k = 0; k < n_classes; ++k) {
        const auto x = static_cast<double>(of_class[k]);
        total += x;
        sum += impurity == Impurity::gini ? x * x : x_log_x(x);
    }
    if (impurity == Impurity::entropy) return sum - x_log_x(total);
    return total > 0.0 ? sum / total : 0.0;
}

// Classes of rows that count once each. `fixed_classes` is their number where the compiler may know it, else 0.
template <Impurity impurity, int fixed_classes>
class ClassCriterion {
  public:
    using Cell = std::uint32_t;
    static constexpr int fixed_cells = fixed_classes;
    struct Row {
        std::uint32_t label;
    };

    ClassCriterion(const std::int64_t* labels, int n_classes) : labels_(labels), n_classes_(n_classes) {}
    int n_cells() const { return fixed_classes ? fixed_classes : n_classes_; }
    Row row(std::int64_t i) const { return {static_cast<std::uint32_t>(labels_[i])}; }
    void add(Cell* cells, const Row& row) const { ++cells[row.label]; }
    // The same for many rows: of two classes without a memory cell in between, which each row would have to wait for.
    void add_all(Cell* cells, std::span<const SampledRow<ClassCriterion>> rows) const {
        if constexpr (fixed_classes == 2) {
            std::uint32_t n_ones = 0;
            for (const auto& each : rows) n_ones += each.target.label;
            cells[0] += static_cast<std::uint32_t>(rows.size()) - n_ones;
            cells[1] += n_ones;
        } else {
            for (const auto& each : rows) add(cells, each.target);
        }
    }
    std::int64_t n_rows(const Cell* cells) const {
        std::int64_t n = 0;
        for (int k = 0; k < n_cells(); ++k) n += cells[k];
        return n;
    }
    double value(const Cell* cells) const { return purity<impurity>(cells, n_cells()); }
    bool all_same(const Cell* total, std::span<const SampledRow<ClassCriterion>> rows) const {
        return total[rows.front().target.label] == rows.size();
    }

  private:
    const std::int64_t* labels_;
    int n_classes_;
};

// Classes of rows with weights: the weight of each class, and the number of rows.
template <Impurity impurity>
class WeightedClassCriterion {
  public:
    using Cell = double;
    static constexpr int fixed_cells = 0;
    struct Row {
        std::uint32_t label;
        double weight;
    };

    WeightedClassCriterion(const std::int64_t* labels, const double* weight, int n_classes)
        : labels_(labels), weight_(weight), n_classes_(n_classes) {}
    int n_cells() const { return n_classes_ + 1; }
    Row row(std::int64_t i) const { return {static_cast<std::uint32_t>(labels_[i]), weight_[i]}; }
    bool all_same(const Cell*, std::span<const SampledRow<WeightedClassCriterion>> rows) const {
        return all_equal(rows, [](const Row& a, const Row& b) { return a.label == b.label; });
    }
    void add(Cell* cells, const Row& row) const {
        cells[row.label] += row.weight;
        cells[n_classes_] += 1.0;
    }
    std::int64_t n_rows(const Cell* cells) const { return static_cast<std::int64_t>(cells[n_classes_]); }
    double value(const Cell* cells) const { return purity<impurity>(cells, n_classes_); }

  private:
    const std::int64_t* labels_;
    const double* weight_;
    int n_classes_;
};

// Numbers, by the squared error about their mean: the number of rows, their weight and the weighted sum.
class NumberCriterion {
  public:
    using Cell = double;
    static constexpr int fixed_cells = 3;
    struct Row {
        double y, weight;
    };

    NumberCriterion(const double* y, const double* weight) : y_(y), weight_(weight) {}
    int n_cells() const { return 3; }
    Row row(std::int64_t i) const { return {y_[i], weight_ ? weight_[i] : 1.0}; }
    bool all_same(const Cell*, std::span<const SampledRow<NumberCriterion>> rows) const {
        return all_equal(rows, [](const Row& a, const Row& b) { return a.y == b.y; });
    }
    void add(Cell* cells, const Row& row) const {
        cells[0] += 1.0;
        cells[1] += row.weight;
        cells[2] += row.weight * row.y;
    }
    std::int64_t n_rows(const Cell* cells) const { return static_cast<std::int64_t>(cells[0]); }
    double value(const Cell* cells) const { return cells[1] > 0.0 ? cells[2] * cells[2] / cells[1] : 0.0; }

  private:
    const double *y_, *weight_;
};

// The evidence of a leaf model: statistics of rows, and the number of rows.
//
// Statistics that are pairs of doubles are summed without carrying from the low to the high part, which is enough to
// compare splits.
template <class Family>
class EvidenceCriterion {
  public:
    using Cell = double;
    static constexpr int fixed_cells = 0;
    struct Row {
        const double* statistics;
    };

    // `statistics` is a table with one row of numbers for each row; it is borrowed, as the prior is.
    EvidenceCriterion(const Family& family, const double* prior, const double* statistics)
        : family_(&family), prior_(prior), statistics_(statistics), n_statistics_(family.layout.size()) {}
    int n_cells() const { return n_statistics_ + 1; }
    Row row(std::int64_t i) const { return {statistics_ + i * n_statistics_}; }
    bool all_same(const Cell*, std::span<const SampledRow<EvidenceCriterion>> rows) const {
        return all_equal(rows, [n = n_statistics_](const Row& a, const Row& b) {
            return std::equal(a.statistics, a.statistics + n, b.statistics);
        });
    }
    void add(Cell* cells, const Row& row) const {
        for (int k = 0; k < n_statistics_; ++k) cells[k] += row.statistics[k];
        cells[n_statistics_] += 1.0;
    }
    std::int64_t n_rows(const Cell* cells) const { return static_cast<std::int64_t>(cells[n_statistics_]); }
    double value(const Cell* cells) const { return family_->log_evidence(cells, prior_); }

  private:
    const Family* family_;
    const double *prior_, *statistics_;
    int n_statistics_;
};

}  // namespace everytree::grow
