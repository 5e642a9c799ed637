// Sums of rows from which the lines of a node follow: moments of points, and of points times derivatives.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "grow/tree.hpp"

namespace everytree::boost {

// Of each node, with v = (1, points of a row), weight h and derivative g: the lower triangle of sum h v v', in rows of
// one width, and sum g v.
class LineSums {
  public:
    void clear(std::size_t n_nodes, std::size_t n_points) {
        width_ = n_points + 1;
        stride_ = width_ * width_ + width_;
        sums_.assign(n_nodes * stride_, 0.0);
    }
    // Adds rows by their terminals and derivatives; point(row): its points, at most `most_points`.
    template <std::size_t most_points, class PointOf>
    void add_all(std::span<const std::uint32_t> rows, const std::int32_t* end, const double* first,
                 const double* second, PointOf point) {
        [&]<std::size_t... k>(std::index_sequence<k...>) {
            ((k == n_points() ? add_rows<k + 1>(rows, end, first, second, point) : void()), ...);
        }(std::make_index_sequence<most_points + 1>());
    }
    // Those of terminals are known; those of other nodes are the sums of their children's.
    void sum_up(const grow::GrownTree& tree) {
        for (std::size_t s = tree.feature.size(); s-- > 0;)
            for (std::int32_t c = 0; c < tree.n_children[s]; ++c) {
                const double* const from = sums_.data() + static_cast<std::size_t>(tree.first_child[s] + c) * stride_;
                double* const to = sums_.data() + s * stride_;
                for (std::size_t i = 0; i < stride_; ++i) to[i] += from[i];
            }
    }
    std::size_t n_points() const { return width_ - 1; }
    double first(std::size_t node) const { return products(node)[0]; }
    double second(std::size_t node) const { return moments(node)[0]; }
    // sum h v v' at [i * width + j], j <= i.
    const double* moments(std::size_t node) const { return sums_.data() + node * stride_; }
    const double* products(std::size_t node) const { return moments(node) + width_ * width_; }

  private:
    // Of a width that the compiler knows.
    template <std::size_t width, class PointOf>
    void add_rows(std::span<const std::uint32_t> rows, const std::int32_t* end, const double* first,
                  const double* second, PointOf point) {
        for (const std::uint32_t row : rows) {
            double* const moments = sums_.data() + static_cast<std::size_t>(end[row]) * (width * width + width);
            double own[width] = {1.0};
            const double* const from = point(row);
            for (std::size_t i = 1; i < width; ++i) own[i] = from[i - 1];
            for (std::size_t i = 0; i < width; ++i) {
                const double h = second[row] * own[i];
                double* const to = moments + i * width;
                for (std::size_t j = 0; j <= (i | 1) && j < width; ++j) to[j] += h * own[j];  // two at once
            }
            double* const products = moments + width * width;
            for (std::size_t i = 0; i < width; ++i) products[i] += first[row] * own[i];
        }
    }

    std::size_t width_ = 0, stride_ = 0;
    std::vector<double> sums_;
};

}  // namespace everytree::boost
