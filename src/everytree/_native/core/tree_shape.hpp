// Everything that the kernels need of a meta-tree, derived from the five arrays that define it.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include "core/tree.hpp"

namespace everytree {

// The array contract of trees/metatree.py: -1 where a node has no such entry. The arrays are borrowed.
struct TreeArrays {
    const std::int32_t *feature, *first_child, *n_children, *threshold, *missing_child;
    std::int64_t n_nodes;

    bool is_terminal(std::int64_t s) const { return n_children[s] == 0; }
    bool is_multiway(std::int64_t s) const { return !is_terminal(s) && threshold[s] < 0; }
    bool has_missing(std::int64_t s) const { return !is_terminal(s) && missing_child[s] >= 0; }
};

class TreeShape {
  public:
    TreeShape(const TreeArrays& arrays, std::int64_t n_features) : arrays_(arrays) {
        place_nodes();
        check_features(n_features);
        limit_codes(static_cast<std::size_t>(n_features));
        lay_out_routes();
    }
    TreeShape(const TreeShape&) = delete;  // views point into it
    TreeShape& operator=(const TreeShape&) = delete;

    TreeView view() const {
        return {routes_.empty() ? nullptr : routes_.data(),
                words_.empty() ? nullptr : words_.data(),
                arrays_.first_child,
                arrays_.n_children,
                parent_.data(),
                depth_.data(),
                arrays_.n_nodes,
                shallowest_,
                deepest_};
    }
    CodeLimits limits() const { return {limit_.data(), shift_.data(), static_cast<int>(limit_.size())}; }
    const std::vector<std::int32_t>& parent() const { return parent_; }
    const std::vector<std::int32_t>& depth() const { return depth_; }

  private:
    // Parents and depths; in level order the children of the nodes follow one another.
    void place_nodes() {
        const std::int64_t n = arrays_.n_nodes;
        bool fits = n > 0;
        parent_.assign(static_cast<std::size_t>(n), -1);
        depth_.assign(static_cast<std::size_t>(n), 0);
        std::int64_t next = 1;
        for (std::int64_t s = 0; fits && s < n; ++s) {
            const std::int64_t n_children = arrays_.n_children[s];
            fits = s < next && n_children >= 0 && n_children <= n - next &&
                   (n_children == 0 || arrays_.first_child[s] == next);
            if (!fits) break;
            std::fill_n(parent_.begin() + next, n_children, static_cast<std::int32_t>(s));
            std::fill_n(depth_.begin() + next, n_children, depth_[s] + 1);
            next += n_children;
            if (n_children != 0) continue;
            shallowest_ = std::min<int>(shallowest_, depth_[s]);
            deepest_ = std::max<int>(deepest_, depth_[s]);
        }
        if (!fits || next != n) throw std::invalid_argument("the nodes of a tree must be in level order");
    }

    void check_features(std::int64_t n_features) const {
        for (std::int64_t s = 0; s < arrays_.n_nodes; ++s)
            if (!arrays_.is_terminal(s) && (arrays_.feature[s] < 0 || arrays_.feature[s] >= n_features))
                throw std::invalid_argument("the features of a tree must be from 0 to n_features - 1");
    }

    // A column with threshold splits may hold any code, one with multiway splits only those with a branch. A column
    // without splits may hold any code, including the missing one.
    void limit_codes(std::size_t n_features) {
        constexpr std::uint16_t free = std::numeric_limits<std::uint16_t>::max();
        limit_.assign(n_features, free);
        shift_.assign(n_features, 1);
        for (std::int64_t s = 0; s < arrays_.n_nodes; ++s)
            if (!arrays_.is_terminal(s)) shift_[arrays_.feature[s]] = 0;
        for (std::int64_t s = 0; s < arrays_.n_nodes; ++s)
            if (arrays_.has_missing(s)) shift_[arrays_.feature[s]] = 1;
        for (std::int64_t s = 0; s < arrays_.n_nodes; ++s) {
            if (!arrays_.is_multiway(s)) continue;
            const std::int32_t n_codes = arrays_.n_children[s] - (arrays_.has_missing(s) ? 1 : 0);
            const std::int32_t feature = arrays_.feature[s];
            limit_[feature] = n_codes > 0 ? static_cast<std::uint16_t>(n_codes - 1 + shift_[feature]) : free;
        }
    }

    // One word a node where that is enough to walk, a quarter of a cache line where it does not say everything.
    void lay_out_routes() {
        const std::int64_t n = arrays_.n_nodes;
        bool fits = limit_.size() <= 65536, says_all = true;
        for (std::int64_t s = 0; s < n; ++s) {
            fits = fits && !arrays_.has_missing(s) && (arrays_.is_terminal(s) || arrays_.n_children[s] == 2);
            says_all = says_all && !arrays_.is_multiway(s);
        }
        if (fits) words_.resize(static_cast<std::size_t>(n));
        if (!fits || !says_all) routes_.resize(static_cast<std::size_t>(n));
        for (std::int64_t s = 0; s < n; ++s) {
            if (!words_.empty()) words_[s] = word_of(s);
            if (!routes_.empty()) routes_[s] = route_of(s);
        }
    }
    BinaryRouteNode word_of(std::int64_t s) const {
        const RouteNode node = route_of(s);
        return binary_route(node.feature, node.next, arrays_.is_terminal(s), arrays_.threshold[s]);
    }
    RouteNode route_of(std::int64_t s) const {
        const bool is_terminal = arrays_.is_terminal(s), is_multiway = arrays_.is_multiway(s);
        RouteNode node;
        node.next = is_terminal ? static_cast<std::int32_t>(s) : arrays_.first_child[s];
        node.feature = is_terminal ? 0 : arrays_.feature[s];
        node.threshold = is_terminal || is_multiway ? 65535 : static_cast<std::uint16_t>(arrays_.threshold[s]);
        node.mask = is_multiway ? 65535 : 0;
        node.missing =
            arrays_.has_missing(s) ? static_cast<std::uint16_t>(arrays_.missing_child[s]) : no_missing_branch;
        node.last = static_cast<std::uint16_t>(std::max(arrays_.n_children[s], 1) - 1);
        return node;
    }

    TreeArrays arrays_;
    std::vector<std::int32_t> parent_, depth_;
    int shallowest_ = std::numeric_limits<int>::max(), deepest_ = 0;
    std::vector<std::uint16_t> limit_, shift_;
    std::vector<RouteNode> routes_;       // empty where words say everything
    std::vector<BinaryRouteNode> words_;  // empty where some node needs more than a word
};

}  // namespace everytree
