// Regions at the last depth whose rows are explained by another model instead of one leaf.
#pragma once
#include <bit>
#include <cstdint>
#include <vector>

#include "exact/kernel.hpp"

namespace everytree::exact {

struct ContinuedRegions {
    std::vector<std::int64_t> start{0};  // of each region's conditions
    std::vector<std::int32_t> column;    // of the conditions, increasing in each region
    std::vector<std::uint64_t> codes;
    std::vector<std::int64_t> first{0};  // of each region's rows
    std::vector<std::int32_t> place;     // of the rows, increasing in each region
};

template <class Family>
ContinuedRegions continued_regions(const ExactKernel<Family>& kernel) {
    ContinuedRegions out;
    const int depth = kernel.options().max_depth;
    const Level& level = kernel.levels()[static_cast<std::size_t>(depth)];
    RegionView view;
    for (std::size_t region = 0; region < level.size(); ++region) {
        for (const Condition* c = level.begin(region); c != level.end(region); ++c) {
            out.column.push_back(c->column);
            out.codes.push_back(c->codes);
        }
        out.start.push_back(static_cast<std::int64_t>(out.column.size()));
        const std::vector<std::uint64_t>& rows = kernel.rows_of(depth, region, view);
        each_bit(rows.data(), 0, rows.size(),
                 [&](std::size_t place) { out.place.push_back(static_cast<std::int32_t>(place)); });
        out.first.push_back(static_cast<std::int64_t>(out.place.size()));
    }
    return out;
}

}  // namespace everytree::exact
