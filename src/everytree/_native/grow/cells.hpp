// A few sums, kept in registers where the compiler knows how many there are.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <type_traits>
#include <vector>

namespace everytree::grow {

// `fixed` is the number of cells where it is known, else 0.
template <class Cell, int fixed>
class Cells {
  public:
    explicit Cells(int n_cells) {
        if constexpr (fixed == 0) cells_.resize(static_cast<std::size_t>(n_cells));
        clear();
    }
    void clear() { std::fill(cells_.begin(), cells_.end(), Cell{}); }
    void add(const Cell* from) {
        for (std::size_t k = 0; k < cells_.size(); ++k) cells_[k] += from[k];
    }
    // This one becomes a - b.
    void set_difference(const Cells& a, const Cells& b) {
        for (std::size_t k = 0; k < cells_.size(); ++k) cells_[k] = a.cells_[k] - b.cells_[k];
    }
    Cell* data() { return cells_.data(); }
    const Cell* data() const { return cells_.data(); }

  private:
    std::conditional_t<fixed != 0, std::array<Cell, fixed>, std::vector<Cell>> cells_;
};

}  // namespace everytree::grow
