// Sums of rows from which the lines of a node follow: moments of points, and of points times derivatives.
#pragma once
#include <cstddef>
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
        own_.assign(width_, 1.0);
    }
    void add(std::size_t node, double first, double second, const double* point) {
        double* const moments = sums_.data() + node * stride_;
        double* const own = own_.data();
        for (std::size_t i = 1; i < width_; ++i) own[i] = point[i - 1];
        for (std::size_t i = 0; i < width_; ++i) {
            const double h = second * own[i];
            double* const to = moments + i * width_;
            for (std::size_t j = 0; j <= i; ++j) to[j] += h * own[j];
        }
        double* const products = moments + width_ * width_;
        for (std::size_t i = 0; i < width_; ++i) products[i] += first * own[i];
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
    std::size_t width_ = 0, stride_ = 0;
    std::vector<double> sums_, own_;
};

}  // namespace everytree::boost
