// The pairs of sibling leaves of a forest, the least useful on top.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

namespace everytree::online {

// A binary heap of nodes that stores the position of each, so that usefulness may change. Ties are ordered by their
// number: the top does not depend on the history, and the heap need not be stored.
class LeastUseful {
  public:
    void clear(std::int64_t capacity) {
        heap_.clear();
        place_.clear();
        resize(capacity);
    }
    void resize(std::int64_t capacity) {
        place_.resize(static_cast<std::size_t>(capacity), -1);
        use_.resize(static_cast<std::size_t>(capacity), 0.0);
    }
    const std::vector<std::int32_t>& nodes() const { return heap_; }
    std::int32_t top() const { return heap_.front(); }

    void set(std::int32_t node, double use) {
        use_[node] = use;
        if (place_[node] < 0) {
            place_[node] = static_cast<std::int32_t>(heap_.size());
            heap_.push_back(node);
        }
        sink(rise(place_[node]));
    }
    void remove(std::int32_t node) {
        const std::int32_t at = place_[node];
        if (at < 0) return;
        const std::int32_t last = heap_.back();
        heap_.pop_back();
        place_[node] = -1;
        if (last == node) return;
        put(at, last);
        sink(rise(at));
    }

  private:
    bool before(std::int32_t one, std::int32_t other) const {
        return use_[one] != use_[other] ? use_[one] < use_[other] : one < other;
    }
    void put(std::int32_t at, std::int32_t node) {
        heap_[at] = node;
        place_[node] = at;
    }
    std::int32_t rise(std::int32_t at) {
        const std::int32_t node = heap_[at];
        while (at > 0 && before(node, heap_[(at - 1) / 2])) {
            put(at, heap_[(at - 1) / 2]);
            at = (at - 1) / 2;
        }
        put(at, node);
        return at;
    }
    void sink(std::int32_t at) {
        const std::int32_t node = heap_[at], size = static_cast<std::int32_t>(heap_.size());
        for (std::int32_t below = 2 * at + 1; below < size; below = 2 * at + 1) {
            if (below + 1 < size && before(heap_[below + 1], heap_[below])) ++below;
            if (!before(heap_[below], node)) break;
            put(at, heap_[below]);
            at = below;
        }
        put(at, node);
    }

    std::vector<std::int32_t> heap_, place_;
    std::vector<double> use_;
};

}  // namespace everytree::online
