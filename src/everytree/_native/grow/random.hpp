// Random choices of a node. They depend on the seed of the tree and on the way from the root to the node, and not on
// the order in which nodes are grown.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "core/scramble.hpp"

namespace everytree::grow {

class NodeRandom {
  public:
    explicit NodeRandom(std::uint64_t seed) : key_(scramble(seed)) {}

    // The choices of a child.
    NodeRandom child(int side) const { return NodeRandom(key_ + static_cast<std::uint64_t>(side) + 1); }

    // One of 0 .. n - 1, each as probable as the others; n is at most 2^32.
    std::uint32_t below(std::uint64_t n) {
        const std::uint64_t word = scramble(key_ ^ (++n_drawn_ * 0xd1342543de82ef95ULL));
        return static_cast<std::uint32_t>(((word >> 32) * n) >> 32);
    }

  private:
    std::uint64_t key_, n_drawn_ = 0;
};

// Numbers 0 .. n - 1 in random order, one after another; `start_again` costs as much as was drawn.
class RandomOrder {
  public:
    explicit RandomOrder(int n) : order_(static_cast<std::size_t>(n)) {
        for (int i = 0; i < n; ++i) order_[static_cast<std::size_t>(i)] = i;
        swapped_.reserve(order_.size());
    }
    bool is_over() const { return swapped_.size() == order_.size(); }
    int next(NodeRandom& random) {
        const std::size_t at = swapped_.size();
        const std::size_t other = at + random.below(order_.size() - at);
        std::swap(order_[at], order_[other]);
        swapped_.push_back(other);
        return order_[at];
    }
    void start_again() {  // swaps undone from the last to the first: the numbers are in ascending order again
        for (; !swapped_.empty(); swapped_.pop_back()) std::swap(order_[swapped_.size() - 1], order_[swapped_.back()]);
    }

  private:
    std::vector<int> order_;
    std::vector<std::size_t> swapped_;
};

}  // namespace everytree::grow
