// Routes of small trees with binary splits, one tree after another.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/tree.hpp"

namespace everytree::boost {

class SmallTrees {
  public:
    // Adds a tree, given by the arrays of a meta-tree; the caller knows that they fit.
    void add(const std::int32_t* feature, const std::int32_t* first_child, const std::int32_t* threshold,
             const std::int32_t* missing_child, std::int32_t n_nodes) {
        Shape shape{routes_.size(), n_nodes, n_nodes, 0, false, true};
        std::vector<int> depth(static_cast<std::size_t>(n_nodes), 0);
        for (std::int32_t s = 0; s < n_nodes; ++s) {
            const bool is_terminal = feature[s] < 0;
            const int here = depth[static_cast<std::size_t>(s)];
            const std::int32_t next = is_terminal ? s : first_child[s], column = is_terminal ? 0 : feature[s];
            const bool has_missing = !is_terminal && missing_child[s] >= 0;
            const auto cut = static_cast<std::uint16_t>(is_terminal ? 65535 : threshold[s]);
            const auto missing = has_missing ? static_cast<std::uint16_t>(missing_child[s]) : no_missing_branch;
            routes_.push_back({next, column, cut, 0, missing, static_cast<std::uint16_t>(is_terminal ? 0 : 1)});
            words_.push_back(binary_route(column, next, is_terminal, threshold[s]));
            shape.has_missing |= has_missing;
            shape.fits_words &= column <= 65535;
            if (is_terminal) {
                shape.shallowest = std::min(shape.shallowest, here);
                shape.deepest = std::max(shape.deepest, here);
            } else {
                for (std::int32_t c = 0; c < 2; ++c) depth[static_cast<std::size_t>(next + c)] = here + 1;
            }
        }
        shapes_.push_back(shape);
    }
    std::size_t size() const { return shapes_.size(); }
    std::size_t first_node(std::size_t tree) const { return shapes_[tree].first; }
    const RouteNode* routes(std::size_t tree) const { return routes_.data() + shapes_[tree].first; }
    // Whether a node has a branch for missing values.
    bool has_missing(std::size_t tree) const { return shapes_[tree].has_missing; }

    // The tree as rows walk through it; by words only if none of them has a missing value where there is a branch for
    // it.
    TreeView view(std::size_t tree, bool by_words) const {
        const Shape& shape = shapes_[tree];
        return {routes(tree),  by_words && shape.fits_words ? words_.data() + shape.first : nullptr,
                nullptr,       nullptr,
                nullptr,       nullptr,
                shape.n_nodes, shape.shallowest,
                shape.deepest};
    }

  private:
    struct Shape {
        std::size_t first;
        std::int32_t n_nodes;
        int shallowest, deepest;
        bool has_missing, fits_words;
    };
    std::vector<RouteNode> routes_;
    std::vector<BinaryRouteNode> words_;
    std::vector<Shape> shapes_;
};

}  // namespace everytree::boost
