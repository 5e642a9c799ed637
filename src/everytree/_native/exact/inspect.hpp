// One region of an exact sum, for the search for the best trees.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "exact/kernel.hpp"

namespace everytree::exact {

// Its evidences, its candidates with the log probability of each, and their children: an index in the next level, -1
// without rows, -2 below the last level.
struct RegionFacts {
    double log_leaf, log_stop;
    std::vector<double> log_split;
    std::vector<std::int32_t> column, code, n_children;  // of each candidate
    std::vector<std::int32_t> children;                  // of all candidates
    std::vector<double> child_best;                      // log evidence of the best tree below each child
};

template <class Family>
RegionFacts look_into(const ExactKernel<Family>& kernel, int depth, std::int64_t number) {
    if (depth < 0 || depth >= static_cast<int>(kernel.levels().size()) || number < 0 ||
        number >= static_cast<std::int64_t>(kernel.levels()[depth].size()))
        throw std::invalid_argument("no such region");
    const Level& level = kernel.levels()[depth];
    const auto place = static_cast<std::size_t>(number);
    const bool is_last = !kernel.is_expanded(depth, place);
    RegionView view;
    auto fate = kernel.fate(depth, place, view);
    const bool has_candidates = !fate.log_split.empty();
    RegionFacts facts{kernel.log_leaf(depth, place, has_candidates), fate.log_stop, {}, {}, {}, {}, {}, {}};
    facts.log_split = std::move(fate.log_split);
    if (!has_candidates) return facts;
    std::size_t at = is_last ? 0 : level.first_child[place];
    const double n_possible = kernel.reader().n_possible_splits(view);
    const auto best_below = [&](int k, CodeSet set, std::size_t c, std::int32_t child, const double* stat) {
        if (is_last)
            return kernel.reader().leaf_evidence(stat) + kernel.reader().stop_of_child(view, k, set, c, depth + 1);
        if (child >= 0) return kernel.levels()[depth + 1].best[child];
        return kernel.reader().best_unseen(view, n_possible, k, set, depth + 1);
    };
    kernel.reader().each_candidate(view, [&](int k, int split, const std::vector<CodeSet>& sets, const double* stats) {
        facts.column.push_back(k);
        facts.code.push_back(split);
        facts.n_children.push_back(static_cast<std::int32_t>(sets.size()));
        for (std::size_t c = 0; c < sets.size(); ++c) {
            facts.children.push_back(is_last ? -2 : level.children[at++]);
            facts.child_best.push_back(
                best_below(k, sets[c], c, facts.children.back(), stats + c * kernel.reader().size()));
        }
    });
    return facts;
}

}  // namespace everytree::exact
