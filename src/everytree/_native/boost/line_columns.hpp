// Columns of numbers as lines see them: each code stands for a number, its point.
//
// Points are in standard deviations about the mean of the table, so that a missing value, whose point is 0, counts as
// the mean. Columns without points, such as those of categories, have 0 for every code.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "core/codes.hpp"

namespace everytree::boost {

// The points of all codes, column after column; n_codes[k] of column k.
class Points {
  public:
    Points(const double* point, const std::vector<int>& n_codes) {
        for (const int n : n_codes) {
            of_.emplace_back(point, point + n);
            point += n;
        }
    }
    std::size_t n_columns() const { return of_.size(); }
    // Whether two codes of a column have different points.
    bool has(int column) const {
        const std::vector<double>& own = of_[static_cast<std::size_t>(column)];
        return std::adjacent_find(own.begin(), own.end(), std::not_equal_to<>()) != own.end();
    }
    double operator()(int column, std::size_t code) const {
        const std::vector<double>& own = of_[static_cast<std::size_t>(column)];
        return code < own.size() ? own[code] : 0.0;
    }

  private:
    std::vector<std::vector<double>> of_;
};

// The columns in which the lines of a chain run, and the points of all rows in them.
class LineColumns {
  public:
    // Those with the largest gains, at most `most`, in ascending order.
    void choose(std::vector<int> columns, const std::vector<double>& gain, std::size_t most) {
        const auto is_before = [&](int a, int b) {
            const double of_a = gain[static_cast<std::size_t>(a)], of_b = gain[static_cast<std::size_t>(b)];
            return of_a != of_b ? of_a > of_b : a < b;
        };
        std::sort(columns.begin(), columns.end(), is_before);
        if (columns.size() > most) columns.resize(most);
        std::sort(columns.begin(), columns.end());
        chosen_ = std::move(columns);
    }
    // Reads the points of all rows.
    template <class Code>
    void read(const Points& points, const Codes<Code>& codes, std::int64_t n_rows) {
        const std::size_t k = chosen_.size();
        point_.resize(static_cast<std::size_t>(n_rows) * k);
        for (std::int64_t i = 0; i < n_rows; ++i)
            for (std::size_t j = 0; j < k; ++j)
                point_[static_cast<std::size_t>(i) * k + j] = points(chosen_[j], codes.row(i)[chosen_[j]]);
    }
    const std::vector<int>& columns() const { return chosen_; }
    std::size_t size() const { return chosen_.size(); }
    const double* row(std::size_t i) const { return point_.data() + i * chosen_.size(); }

  private:
    std::vector<int> chosen_;
    std::vector<double> point_;  // (n_rows, n_chosen)
};

}  // namespace everytree::boost
