// Values of the leaves of a boosted tree each of whose nodes is a constant or a line: the average over all its
// prunings.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "boost/leaf_values.hpp"
#include "boost/line_sums.hpp"
#include "boost/lines.hpp"
#include "grow/tree.hpp"

namespace everytree::boost {

struct LineValues {
    std::vector<double> value;         // (n_nodes, 1 + n_points) where a row ends: the constant, and a slope a point
    std::vector<double> gain;          // expected gain in log evidence by the split of each node
    std::vector<double> gain_of_line;  // (n_points) by the slopes, all nodes together
    double log_evidence_of_lines;      // of the tree, beside that without slopes
};

// `sums` are those of terminals.
inline LineValues line_values(const grow::GrownTree& tree, LineSums& sums, const LeafPrior& prior) {
    const std::size_t n = tree.feature.size(), k = sums.n_points(), width = k + 1;
    sums.sum_up(tree);
    std::vector<double> constant(n), leaf(n), share(n * k, 0.0), value(n * width);
    LineSolver solver;
    for (std::size_t s = 0; s < n; ++s) {
        const double first = sums.first(s), second = sums.second(s);
        double* const own = value.data() + s * width;
        const double more = solver.solve(sums, s, prior.dispersion, own + 1);
        constant[s] = prior.log_evidence(first, second);
        leaf[s] = constant[s] + more;
        own[0] = prior.mean(first, second);  // at the mean point, so far
        double fit = 0.0;
        for (std::size_t j = 0; j < k; ++j) {
            if (second > 0.0) own[0] -= own[1 + j] * sums.moments(s)[(j + 1) * width] / second;
            fit += share[s * k + j] = std::abs(own[1 + j] * solver.products()[j]);
        }
        for (std::size_t j = 0; j < k; ++j) share[s * k + j] *= fit > 0.0 ? std::max(more, 0.0) / fit : 0.0;
    }
    Prunings over = prunings(tree, leaf, prior.split_prior);
    const double without = prunings(tree, constant, prior.split_prior).log_evidence;
    std::vector<double> gain_of_line(k, 0.0);
    for (std::size_t s = 0; s < n; ++s)
        for (std::size_t j = 0; j < k; ++j)
            gain_of_line[j] += over.reached[s] * (1.0 - over.split_prob[s]) * share[s * k + j];
    average(tree, over, width, value);
    return {std::move(value), std::move(over.gain), std::move(gain_of_line), over.log_evidence - without};
}

}  // namespace everytree::boost
