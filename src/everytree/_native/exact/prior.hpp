// Prior expectations for a region without rows: nothing is learnt there, but trees may go on.
#pragma once
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "core/tree.hpp"
#include "exact/watch.hpp"

namespace everytree::exact {

// Expected leaves below a region, the entropy of its trees, and its most probable tree.
struct Unseen {
    double leaves = 1.0, entropy = 0.0, log_best = 0.0;
};

// Only the number of columns of each kind and number of splits matters, so few of these are computed.
class UnseenRegions {
  public:
    using Shapes = std::map<std::pair<ColumnKind, int>, int>;  // (kind, codes left - 1) -> columns

    // Log odds of a split by depth, 0 .. max_depth - 1.
    UnseenRegions(std::vector<double> log_split, std::vector<double> log_stop)
        : log_split_(std::move(log_split)), log_stop_(std::move(log_stop)) {}

    Unseen of(const Shapes& shapes, int depth, Pace& pace) const {
        std::lock_guard alone(*lock_);
        return compute(shapes, depth, pace);
    }

  private:
    Unseen compute(const Shapes& shapes, int depth, Pace& pace) const {
        if (depth >= static_cast<int>(log_split_.size()) || shapes.empty()) return {};
        const auto known = known_.find({depth, shapes});
        if (known != known_.end()) return known->second;
        double n = 0.0, leaves = 0.0, entropy = 0.0, best = -std::numeric_limits<double>::infinity();
        for (const auto& [shape, n_columns] : shapes) {
            const auto [kind, n_own] = shape;
            const int n_codes = n_own + 1;
            Shapes others = shapes;
            if (--others[shape] == 0) others.erase(shape);
            // Sizes of the children of each split of such a column, and the number of equal splits.
            std::vector<std::pair<std::vector<int>, double>> splits;
            if (kind == ColumnKind::multiway) {
                splits.push_back({std::vector<int>(static_cast<std::size_t>(n_codes), 1), 1.0});
            } else if (kind == ColumnKind::one_against_rest) {
                splits.push_back({{1, n_codes - 1}, n_codes == 2 ? 1.0 : static_cast<double>(n_codes)});
            } else {
                for (int t = 1; t < n_codes; ++t) splits.push_back({{t, n_codes - t}, 1.0});
            }
            for (const auto& [sizes, alike] : splits) {
                double below_leaves = 0.0, below_entropy = 0.0, below_best = 0.0;
                pace.spend(256);  // maps are slow
                for (const int size : sizes) {
                    Shapes child = others;
                    if (size > 1) ++child[{kind, size - 1}];
                    const Unseen below = compute(child, depth + 1, pace);
                    below_leaves += below.leaves;
                    below_entropy += below.entropy;
                    below_best += below.log_best;
                }
                n += alike * n_columns;
                leaves += alike * n_columns * below_leaves;
                entropy += alike * n_columns * below_entropy;
                best = std::fmax(best, below_best);
            }
        }
        const double g = std::exp(log_split_[depth]), stop = std::exp(log_stop_[depth]);
        Unseen out;
        out.leaves = stop + g * leaves / n;
        out.entropy = g * entropy / n + (g > 0.0 ? g * (std::log(n) - log_split_[depth]) : 0.0) -
                      (stop > 0.0 ? stop * log_stop_[depth] : 0.0);
        out.log_best = std::fmax(log_stop_[depth], log_split_[depth] - std::log(n) + best);
        return known_[{depth, shapes}] = out;
    }

    std::vector<double> log_split_, log_stop_;
    std::unique_ptr<std::mutex> lock_ = std::make_unique<std::mutex>();
    mutable std::map<std::pair<int, Shapes>, Unseen> known_;
};

}  // namespace everytree::exact
