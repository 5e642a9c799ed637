// What a sampler is asked for: the prior over structures and the sizes of its blocks.
//
// A structure k is a split for every region with at least two points above the maximum depth; regions with fewer points
// stay at the prior and are not stored. Above `summed_depth` all prunings are summed out,
//     q(S) = (1 - g) leaf(S) + g * product of q(child),
// as in a meta-tree. Below it, where trees would be large and hardly any pruning reaches, a pruning is drawn with the
// structure: a region is a leaf with prior probability 1 - g, where q(S) = leaf(S), or split, where q(S) is the
// product. Both are the same model of trees and splits, of which more or less is summed out.
#pragma once
#include <algorithm>
#include <vector>

namespace everytree::sampling {

struct SamplerOptions {
    int max_depth;
    int summed_depth;
    bool only_nontrivial;                     // candidates are the splits that separate the points present
    std::vector<double> log_split, log_stop;  // by depth, 0 .. max_depth - 1
    int block_depth;                          // maximum depth of the sums of a block
    double max_block_cost;                    // maximum number of steps of such sums in one level

    bool is_summed(int depth) const { return depth < summed_depth; }

    // Depth of the sum over structures below a region that the cost allows. The costs of all regions of a level add up
    // to no more than `max_block_cost`, except at the root, where what was computed is
    // used again and again.
    int horizon(double share_of_points, double n_points, double n_columns, double n_candidates, int depth) const {
        const double more = depth == 0 ? 4.0 : 1.0;
        const int levels = std::min(block_depth, max_depth - depth);
        double cost = n_points * n_columns + 8.0 * n_candidates;
        for (int i = 1; i < levels; ++i) {
            cost *= n_candidates;
            if (cost > more * share_of_points * max_block_cost) return i;
        }
        return std::max(levels, 0);
    }
};

}  // namespace everytree::sampling
