// The routing rule, in its only place: the child to which a row goes from a node.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/codes.hpp"
#include "core/parallel.hpp"
#include "core/tree.hpp"

namespace everytree {

// The rule.
template <class Code>
std::int32_t child_of(const RouteNode& node, const Code* row) {
    const Code code = row[node.feature];
    if (code == missing_code<Code> && node.missing != no_missing_branch) return node.next + node.missing;
    const std::uint16_t offset = (code & node.mask) + (code > node.threshold);
    // Codes were checked, but the table is the caller's and another thread may write to it: never leave the tree.
    return node.next + std::min(offset, node.last);
}

// A walk by the rule; its state is the number of the node.
struct AnyWalk {
    const RouteNode* nodes;
    using Here = std::int32_t;

    Here enter(std::int32_t node) const { return node; }
    std::int32_t leave(Here here) const { return here; }
    template <class Code>
    Here step(Here here, const Code* row) const {
        return child_of(nodes[here], row);
    }
};

// The rule for rows with codes that a tree may have no branch for, a category that was never seen or a value that was
// never missing: they stay at the node that splits on it. known[k]: codes 0 .. known[k] - 1 of column k are known.
template <class Code>
std::int32_t careful_step(const RouteNode& node, const std::uint16_t* known, std::int32_t here, const Code* row) {
    const Code code = row[node.feature];
    const bool is_missing = code == missing_code<Code>;
    const bool is_stuck = is_missing ? node.missing == no_missing_branch : code >= known[node.feature];
    return is_stuck ? here : child_of(node, row);
}

// The rule again, for nodes of one word. The state of the walk is the node itself, already loaded; a
// terminal's `next` is its own number.
struct BinaryWalk {
    const BinaryRouteNode* nodes;
    using Here = BinaryRouteNode;

    Here enter(std::int32_t node) const { return nodes[node]; }
    std::int32_t leave(Here here) const { return static_cast<std::int32_t>(here >> 16); }
    template <class Code>
    Here step(Here here, const Code* row) const {
        return nodes[static_cast<std::uint32_t>((here + row[here >> 48]) >> 16)];
    }
};

// Many rows in flight at once hide the latency of each one's chain of loads.
inline constexpr int rows_in_flight = 12;

template <class Walk, class Code>
void route_block(Walk walk, int n_sure, int n_levels, const Code* first, std::ptrdiff_t stride, std::int32_t* at) {
    using Here = typename Walk::Here;
    Here here[rows_in_flight];
    const Code* row[rows_in_flight];
    for (int i = 0; i < rows_in_flight; ++i) {
        here[i] = walk.enter(at[i]);
        row[i] = first + i * stride;
    }
    int level = 0;
    for (; level < n_sure; ++level)
        for (int i = 0; i < rows_in_flight; ++i) here[i] = walk.step(here[i], row[i]);
    for (Here change = 1; change && level < n_levels; ++level) {
        change = 0;
        for (int i = 0; i < rows_in_flight; ++i) {
            const Here to = walk.step(here[i], row[i]);
            change |= to ^ here[i];
            here[i] = to;
        }
    }
    for (int i = 0; i < rows_in_flight; ++i) at[i] = walk.leave(here[i]);
}

template <class Walk, class Code>
void route_with(Walk walk, const TreeView& tree, const Codes<Code>& codes, std::int64_t begin, std::int64_t n,
                std::int32_t* at) {
    const int n_sure = tree.shallowest_terminal, n_levels = tree.deepest_terminal;
    std::int64_t i = 0;
    for (; i + rows_in_flight <= n; i += rows_in_flight)
        route_block(walk, n_sure, n_levels, codes.row(begin + i), codes.row_stride, at + i);
    for (; i < n; ++i) {
        auto here = walk.enter(at[i]);
        for (int level = 0; level < n_levels; ++level) {
            const auto to = walk.step(here, codes.row(begin + i));
            if (to == here) break;
            here = to;
        }
        at[i] = walk.leave(here);
    }
}

// Terminals of rows begin .. begin + n; `at` holds where each row starts (the root, or a node known to hold
// it).
template <class Code>
void route(const TreeView& tree, const Codes<Code>& codes, std::int64_t begin, std::int64_t n, std::int32_t* at) {
    if (tree.binary_routes)
        route_with(BinaryWalk{tree.binary_routes}, tree, codes, begin, n, at);
    else
        route_with(AnyWalk{tree.routes}, tree, codes, begin, n, at);
}

// Terminals of all rows of a table, which are checked first.
template <class Code>
std::vector<std::int32_t> route_table(const TreeView& tree, const CodeChecks& checks, const CodeTable& table,
                                      int n_jobs) {
    const CodeReader<Code> reader(table, checks.limits());
    std::vector<std::int32_t> at(static_cast<std::size_t>(table.n_rows), 0);
    std::vector<std::vector<Code>> buffers(static_cast<std::size_t>(std::max(n_jobs, 1)));
    const auto work = [&](std::int64_t chunk, int worker) {
        const std::int64_t begin = chunk * chunk_rows, n = std::min(chunk_rows, table.n_rows - begin);
        const Codes<Code> codes = reader.rows(begin, n, buffers[worker]);
        checks.of<Code>()(codes, begin, n);
        route(tree, codes, begin, n, at.data() + begin);
    };
    in_chunks((table.n_rows + chunk_rows - 1) / chunk_rows, n_jobs, work);
    return at;
}

}  // namespace everytree
