// One structure: a tree of regions with points, in memory that is used again.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "sampling/region.hpp"

namespace everytree::sampling {

struct StructureNode {
    std::int32_t parent = -1, first_child = -1, n_children = 0, depth = 0;
    Split split;                      // column -1 where it is not split
    std::int64_t begin = 0, end = 0;  // of its points, in the order of the structure
    double n_candidates = 0.0;        // splits to choose from; of regions with less than two points, possible splits
    double leaf = 0.0;                // log evidence of its points in one leaf
    double evidence = 0.0;            // log q, with the power of the evidence
    std::int64_t n_inner = 0;         // split regions from here on

    bool is_inner() const { return n_children > 0; }
    std::int64_t n_points() const { return end - begin; }
};

// Nodes by number; children of a node are neighbours. Numbers of nodes that are gone are used again.
class NodeArena {
  public:
    StructureNode& operator[](std::int32_t node) { return nodes_[static_cast<std::size_t>(node)]; }
    const StructureNode& operator[](std::int32_t node) const { return nodes_[static_cast<std::size_t>(node)]; }

    // This many neighbours, all of them as new. References to nodes become invalid.
    std::int32_t take(std::size_t n) {
        if (n < free_.size() && !free_[n].empty()) {
            const std::int32_t first = free_[n].back();
            free_[n].pop_back();
            for (std::size_t i = 0; i < n; ++i) nodes_[static_cast<std::size_t>(first) + i] = StructureNode{};
            return first;
        }
        const auto first = static_cast<std::int32_t>(nodes_.size());
        nodes_.resize(nodes_.size() + n);
        return first;
    }
    // All nodes below this one.
    void drop_children(std::int32_t node) {
        StructureNode& own = (*this)[node];
        const std::int32_t first = own.first_child, n = own.n_children;
        own.first_child = -1;
        own.n_children = 0;
        if (n == 0) return;
        for (std::int32_t c = first; c < first + n; ++c) drop_children(c);
        give_back(first, static_cast<std::size_t>(n));
    }
    void give_back(std::int32_t first, std::size_t n) {
        if (free_.size() <= n) free_.resize(n + 1);
        free_[n].push_back(first);
    }

  private:
    std::vector<StructureNode> nodes_;
    std::vector<std::vector<std::int32_t>> free_;  // by number of neighbours
};

// How a part of a structure is made.
enum class Draw {
    prior,   // from the prior
    guided,  // by the sums over the next levels
    kept,    // as another node and those below it were; from the prior where that was not stored
    fixed,   // with this split, and children as said
    listed,  // as a list says, in preorder
    worst    // the split that explains the points worst
};

struct Plan {
    Draw draw = Draw::prior;
    std::int32_t like = -1;  // kept
    Split split{};           // fixed
    std::vector<Plan> children{};

    static Plan as(std::int32_t node) {
        Plan plan;
        plan.draw = Draw::kept;
        plan.like = node;
        return plan;
    }
    static Plan of(Split split, std::vector<Plan> children) {
        Plan plan;
        plan.draw = Draw::fixed;
        plan.split = split;
        plan.children = std::move(children);
        return plan;
    }
};

}  // namespace everytree::sampling
