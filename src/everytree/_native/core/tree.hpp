// The shape of a meta-tree as the kernels see it: borrowed flat arrays in level order.
//
// Node 0 is the root; the children of a node are neighbours and come after it. Hence any order of nodes with
// decreasing index visits children before parents.
#pragma once
#include <cstddef>
#include <cstdint>

namespace everytree {

// The routing data of one node, in a quarter of a cache line.
struct RouteNode {
    std::int32_t next;        // first child; a terminal leads to itself
    std::int32_t feature;     // column that is split on; 0 at a terminal
    std::uint16_t threshold;  // binary split: codes above it go to the second child; 65535: no code is above
    std::uint16_t mask;       // multiway split: 65535, so that the code itself is the child; else 0
    std::uint16_t missing;    // child for the missing code; 65535: this node has no such branch
    std::uint16_t last;       // largest child number
};
inline constexpr std::uint16_t no_missing_branch = 65535;
static_assert(sizeof(RouteNode) == 16);

// The same for a binary split without a branch for missing values, in one word: 65535 - threshold in bits
// 0..15, next in 16..47, feature in 48..63. Adding a code above the threshold to the word carries one into
// `next`, which is then the second child; that is one step. A multiway split of two codes is a
// binary split at 0.
using BinaryRouteNode = std::uint64_t;
inline BinaryRouteNode binary_route(std::int32_t feature, std::int32_t next, bool is_terminal, std::int32_t threshold) {
    const std::uint64_t above = is_terminal ? 65535 : threshold < 0 ? 0 : static_cast<std::uint64_t>(threshold);
    return (65535 - above) | static_cast<std::uint64_t>(next) << 16 | static_cast<std::uint64_t>(feature) << 48;
}

// How a split divides the codes of a column: at a threshold, one code against all others, or into all codes.
enum class ColumnKind : std::uint8_t { ordered, one_against_rest, multiway };

// The node of such a word; a multiway split of two codes has become one at a threshold.
inline RouteNode route_of_word(BinaryRouteNode word, bool is_terminal) {
    RouteNode node{};
    node.next = static_cast<std::int32_t>(word >> 16);
    node.feature = static_cast<std::int32_t>(word >> 48);
    node.threshold = static_cast<std::uint16_t>(65535 - (word & 65535));
    node.missing = no_missing_branch;
    node.last = is_terminal ? 0 : 1;
    return node;
}

struct TreeView {
    const RouteNode* routes;               // null where words say everything
    const BinaryRouteNode* binary_routes;  // null where some node needs more than a word
    const std::int32_t* first_child;
    const std::int32_t* n_children;
    const std::int32_t* parent;
    const std::int32_t* depth;
    std::int64_t n_nodes;
    int shallowest_terminal, deepest_terminal;

    RouteNode route(std::int64_t node) const {
        return routes ? routes[node] : route_of_word(binary_routes[node], n_children[node] == 0);
    }

    // The same tree for rows that are known to have reached this depth already.
    TreeView below(int levels) const {
        TreeView view = *this;
        view.shallowest_terminal = shallowest_terminal > levels ? shallowest_terminal - levels : 0;
        view.deepest_terminal -= levels;
        return view;
    }
};

// The codes a column may hold: code + shift <= limit in the arithmetic of the code's own type. If a
// column has a branch for missing values the shift is 1 and the missing code, the largest of its type, wraps
// around to 0.
struct CodeLimits {
    const std::uint16_t* limit;
    const std::uint16_t* shift;
    int n_features;
};

}  // namespace everytree
