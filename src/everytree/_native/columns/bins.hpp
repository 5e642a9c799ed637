// How the distinct values of a column are divided up into bins of about equal mass.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace everytree::columns {

// Last value of each bin but the final one, where there are more values than bins, from below. Each bin takes the
// number of values nearest to an equal share of the remaining mass. A value that is a share by itself starts a new bin,
// and fills it.
inline std::vector<std::int64_t> last_of_bins(std::span<const double> mass, std::int64_t n_bins) {
    const auto n_values = static_cast<std::int64_t>(mass.size());
    std::vector<double> total(1, 0.0);  // the mass before each value, and that of all
    for (const double each : mass) total.push_back(total.back() + each);
    const auto up_to = [&](std::int64_t i) { return total[static_cast<std::size_t>(i)]; };
    std::vector<std::int64_t> last;
    std::int64_t first = 0;
    for (std::int64_t bins_left = n_bins; bins_left > 1; --bins_left) {
        const double share = (total.back() - up_to(first)) / static_cast<double>(bins_left);
        const double wanted = up_to(first) + share;
        // The value in which the share is reached, with one value kept back for each later bin.
        std::int64_t reached = std::lower_bound(total.begin(), total.end(), wanted) - total.begin() - 1;
        reached = std::min(std::max(reached, first), n_values - bins_left);
        const double missed = wanted - up_to(reached), passed = up_to(reached + 1) - up_to(first) - share;
        const bool is_full = mass[static_cast<std::size_t>(reached)] >= share;
        const bool stops_before = reached > first && (is_full || missed < passed);
        last.push_back(stops_before ? reached - 1 : reached);
        first = last.back() + 1;
    }
    return last;
}

}  // namespace everytree::columns
