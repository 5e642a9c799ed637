// The regions that are leaves of some tree, each set of conditions once, with the posterior probability that it is a
// leaf. A row's predictive is the average over the ones that hold it.
#pragma once
#include "exact/answers.hpp"

namespace everytree::exact {

struct LeafRegions {
    std::vector<double> weight, statistics;  // (n_leaves,), (n_leaves, size)
    std::vector<std::int64_t> start{0};      // of each leaf's conditions
    std::vector<std::int32_t> column;        // of the conditions, increasing in each leaf
    std::vector<std::uint64_t> codes;
};

// Leaves found in some regions of a level, before those with the same conditions are added up.
struct LeafPart {
    RegionView view;
    std::vector<Key> keys;
    std::vector<double> weight, statistics;
    std::vector<std::size_t> start;
    std::vector<Condition> conditions;

    void clear() {
        keys.clear();
        weight.clear();
        statistics.clear();
        start.assign(1, 0);
        conditions.clear();
    }
    // A leaf: a region's conditions, and one more that replaces the condition on its column.
    void add(const Condition* begin, const Condition* end, const Condition* more, double own_weight, const double* stat,
             std::size_t size) {
        const std::size_t first = conditions.size();
        if (more)
            append_with(begin, end, *more, conditions);
        else
            conditions.insert(conditions.end(), begin, end);
        keys.push_back(key_of(conditions.data() + first, conditions.data() + conditions.size()));
        start.push_back(conditions.size());
        weight.push_back(own_weight);
        statistics.insert(statistics.end(), stat, stat + size);
    }
};

// The leaves of one region that is in the tree with probability `mass`. Splits into leaves whose share is below the
// threshold are left out, and their region is the leaf instead.
template <class Family>
void leaves_of_region(const ExactKernel<Family>& kernel, int depth, std::size_t region, double mass, double threshold,
                      bool with_unknown, LeafPart& part) {
    const Level& level = kernel.levels()[depth];
    const Condition *begin = level.begin(region), *end = level.end(region);
    const bool is_last = !kernel.is_expanded(depth, region);
    const RegionFate here = kernel.fate(depth, region, part.view);
    double stays = mass * std::exp(here.log_stop);
    std::vector<double> split_share(kernel.reader().n_columns(), 0.0);
    if (!here.log_split.empty()) {
        std::size_t i = 0, at = is_last ? 0 : level.first_child[region];
        kernel.reader().each_candidate(
            part.view, [&](int k, int, const std::vector<CodeSet>& sets, const double* stats) {
                const double share = mass * std::exp(here.log_split[i++]);
                if (is_last && (share < threshold || share == 0.0)) {
                    stays += share;
                    return;
                }
                split_share[k] += share;
                for (std::size_t c = 0; c < sets.size(); ++c) {
                    const bool is_leaf = is_last || level.children[at++] < 0;
                    const Condition more{k, sets[c]};
                    if (is_leaf && share > 0.0 && share >= threshold)
                        part.add(begin, end, &more, share, stats + c * kernel.reader().size(), kernel.reader().size());
                }
            });
    }
    const double* total = part.view.total.data();
    if (stays > 0.0 && stays >= threshold) part.add(begin, end, nullptr, stays, total, kernel.reader().size());
    for (std::size_t k = 0; with_unknown && k < split_share.size(); ++k) {
        bool is_known = false;
        for (const Condition* c = begin; c != end; ++c) is_known |= c->column == static_cast<std::int32_t>(k);
        const Condition more{static_cast<std::int32_t>(k), unknown_codes};
        if (!is_known && split_share[k] > 0.0 && split_share[k] >= threshold)
            part.add(begin, end, &more, split_share[k], total, kernel.reader().size());
    }
}

// All leaves whose share of the posterior reaches the threshold; with_unknown adds those of rows with unknown codes.
// Regions that are continued are not among them.
template <class Family>
LeafRegions collect_leaves(const ExactKernel<Family>& kernel, const std::vector<std::vector<double>>& mass,
                           double threshold, bool with_unknown, const Watch& watch) {
    LeafRegions out;
    KeyIndex known;
    std::vector<LeafPart> parts = kernel.template parts<LeafPart>(watch);
    const int n_levels =
        kernel.options().is_continued ? kernel.options().max_depth : static_cast<int>(kernel.levels().size());
    for (int depth = 0; depth < n_levels; ++depth) {
        const auto work = [&](std::size_t first, std::size_t last, LeafPart& part) {
            part.clear();
            for (std::size_t region = first; region < last; ++region)
                if (mass[depth][region] > 0.0 && mass[depth][region] >= threshold)
                    leaves_of_region(kernel, depth, region, mass[depth][region], threshold, with_unknown, part);
        };
        const auto finish = [&](std::size_t, const LeafPart& part, int) {
            for (std::size_t i = 0; i < part.keys.size(); ++i) {
                known.expect(part.keys[std::min(i + 16, part.keys.size() - 1)]);
                const auto [number, is_new] = known.number(part.keys[i]);
                if (!is_new) {
                    out.weight[number] += part.weight[i];
                    continue;
                }
                out.weight.push_back(part.weight[i]);
                const double* stat = part.statistics.data() + i * kernel.reader().size();
                out.statistics.insert(out.statistics.end(), stat, stat + kernel.reader().size());
                for (std::size_t c = part.start[i]; c < part.start[i + 1]; ++c) {
                    out.column.push_back(part.conditions[c].column);
                    out.codes.push_back(part.conditions[c].codes);
                }
                out.start.push_back(static_cast<std::int64_t>(out.column.size()));
            }
        };
        over_regions(kernel.levels()[depth].size(), kernel.together(256), parts, work, finish);
    }
    return out;
}

}  // namespace everytree::exact
