// Rows taken back: statistics less others, such that what is left is as if those rows had never been counted.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/posterior.hpp"

namespace everytree {

// Takes rows away for good. Weights that are left by rounding alone become 0, and where no weight is left nothing else
// is. False if less was there, or if rows without any weight would have targets.
inline bool take_away(const Layout& layout, double* into, const double* from) {
    const std::vector<double> before(into, into + layout.size());
    if (!layout.subtract(into, from)) return false;
    const auto slot_of = [&](int sum) { return sum < layout.n_plain ? sum : 2 * sum - layout.n_plain; };
    bool is_empty = true;
    for (int i = 0; i < layout.n_weights; ++i) {
        const int at = slot_of(i);
        if (into[at] <= 1e-12 * before[at]) std::fill_n(into + at, i < layout.n_plain ? 1 : 2, 0.0);
        is_empty &= into[at] == 0.0;
    }
    if (!is_empty) return true;
    double largest = 0.0;  // what earlier rows left behind by rounding is small beside some sum
    for (const double value : before) largest = std::max(largest, std::fabs(value));
    for (int i = layout.n_weights; i < layout.n_plain + layout.n_pairs; ++i) {
        const int at = slot_of(i);
        if (std::fabs(into[at]) > 1e-9 * (std::fabs(before[at]) + std::fabs(from[at])) + 1e-12 * largest) return false;
    }
    layout.clear(into);
    return true;
}

// `function(terminal, its statistics in other)` for terminals where the other has rows, as long as it returns true.
template <class Family, class Function>
void each_counted(const PosteriorKernel<Family>& kernel, const double* other, Function function) {
    const std::size_t size = static_cast<std::size_t>(kernel.family().layout.size());
    const TreeView& tree = kernel.arrays().tree;
    for (std::int64_t node = 0; node < tree.n_nodes; ++node) {
        const double* from = other + node * size;
        if (tree.n_children[node] != 0 || std::all_of(from, from + size, [](double v) { return v == 0.0; })) continue;
        if (!function(static_cast<std::int32_t>(node), from)) return;
    }
}

// A terminal that has less than other rows would take away; -1 where all of them can have been counted.
template <class Family>
std::int64_t lacking(const PosteriorKernel<Family>& kernel, const double* other) {
    const Layout& layout = kernel.family().layout;
    std::vector<double> left(static_cast<std::size_t>(layout.size()));
    std::int64_t found = -1;
    each_counted(kernel, other, [&](std::int32_t node, const double* from) {
        std::copy_n(kernel.statistics(node), left.size(), left.data());
        if (!take_away(layout, left.data(), from)) found = node;
        return found < 0;
    });
    return found;
}

// Takes away rows of which nothing is lacking.
template <class Family>
void take_away(PosteriorKernel<Family>& kernel, const double* other) {
    const Layout& layout = kernel.family().layout;
    const std::vector<double> nothing(static_cast<std::size_t>(layout.size()), 0.0);
    kernel.begin_rows(0);
    each_counted(kernel, other, [&](std::int32_t node, const double* from) {
        kernel.add_statistics(nothing.data(), node);  // notes that the node is touched
        return take_away(layout, kernel.statistics(node), from);
    });
    kernel.end_rows();
    kernel.sweep_touched();
}

}  // namespace everytree
