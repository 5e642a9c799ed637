// The growth of a Mondrian tree: random splits outside the boxes of its rows, which depend on the rows' features
// alone.
#pragma once
#include <bit>
#include <cmath>
#include <vector>

#include "core/scramble.hpp"
#include "online/nodes.hpp"

namespace everytree::online {

inline std::uint64_t seed_of_tree(std::uint64_t seed, std::int64_t tree) {
    return scramble(scramble(seed) + static_cast<std::uint64_t>(tree));
}

// The position of a category on the unit interval: different in every tree, so that thresholds divide categories in all
// ways, and nothing has to be stored for a category.
inline double place_of_category(double code, std::uint64_t tree_seed) {
    return static_cast<double>(scramble(std::bit_cast<std::uint64_t>(code) ^ tree_seed) >> 11) * 0x1p-53;
}

// Random numbers that depend on the seed, the tree and the number of the row alone: the same stream, the same trees.
class Draws {
  public:
    Draws(std::uint64_t tree_seed, std::int64_t row) : state_(tree_seed ^ scramble(static_cast<std::uint64_t>(row))) {}
    double uniform() {  // in (0, 1)
        state_ = scramble(state_);
        return (static_cast<double>(state_ >> 12) + 0.5) * 0x1p-52;
    }
    double exponential() { return -std::log(uniform()); }

  private:
    std::uint64_t state_;
};

struct Split {
    double time;
    std::int32_t feature;
    double threshold;
    bool new_right, missing_right;  // the side of the new row, and of rows without the feature
};

enum class Meeting { inside, outside, parts };  // of the box of a node, or far enough outside to be split from it

class SplitFinder {
  public:
    // Widens the running ranges by the row. Extents are shares of the range of their feature.
    void measure(const OnlineArrays& arrays, const double* row) {
        scale_.resize(static_cast<std::size_t>(arrays.n_features));
        extent_.resize(scale_.size());
        missing_.clear();
        for (std::int64_t f = 0; f < arrays.n_features; ++f) {
            double *low = arrays.ranges + 2 * f, *high = low + 1;
            if (!(arrays.kinds[f] & (is_nominal | has_fixed_range))) {  // comparisons with NaN are false
                *low = row[f] < *low ? row[f] : *low;
                *high = row[f] > *high ? row[f] : *high;
            }
            scale_[f] = *high - *low > 1e-300 ? 1.0 / (*high - *low) : 0.0;
            if (std::isnan(row[f])) missing_.push_back(f);
        }
    }

    // Whether the row that was measured separates from the rows of node s before those separate from each other;
    // `above` is the time of the parent.
    Meeting meet(const OnlinePool& pool, std::int32_t s, const double* row, double above, Draws& draws, Split& split) {
        if (!find_extents(pool, s, row)) return Meeting::inside;
        double total = 0.0;
        for (const double extent : extent_) total += extent;
        split.time = above + draws.exponential() / total;
        if (!(split.time < pool.node(s).time)) return Meeting::outside;
        double left = draws.uniform() * total;
        std::int64_t feature = -1;
        for (std::int64_t f = 0; f < pool.arrays().n_features; ++f) {
            if (!(extent_[f] > 0.0)) continue;
            feature = f;
            left -= extent_[f];
            if (left < 0.0) break;
        }
        place(pool, s, row[feature], static_cast<std::int32_t>(feature), draws.uniform(), split);
        return Meeting::parts;
    }

  private:
    // How far the row is outside the box, feature by feature; false if it is inside. A feature that only one of the two
    // has counts as the whole range. Without branches, since nearly all nodes end here.
    bool find_extents(const OnlinePool& pool, std::int32_t s, const double* row) {
        constexpr double nowhere = std::numeric_limits<double>::infinity();
        const double *low = pool.lower(s), *high = pool.upper(s), *scale = scale_.data();
        double *extent = extent_.data(), farthest = 0.0;
        const auto n_features = static_cast<std::int64_t>(extent_.size());
        for (std::int64_t f = 0; f < n_features; ++f) {
            const double below = low[f] - row[f], above = row[f] - high[f];
            const double beyond = below > above ? below : above;
            const double out = beyond > 0.0 ? beyond : 0.0;  // 0 for NaN, infinite where no row has the feature
            farthest = out > farthest ? out : farthest;
            extent[f] = out < nowhere ? scale[f] * out : 1.0;
        }
        bool outside = farthest > 0.0;
        for (const std::int64_t f : missing_) {
            const bool alone = !pool.missing(s)[f];
            extent[f] = alone ? 1.0 : 0.0;
            outside |= alone;
        }
        return outside;
    }

    // Rows without the feature stay with the earlier rows; if these all lack it, or the new row does, the split is on
    // having the feature.
    static void place(const OnlinePool& pool, std::int32_t s, double value, std::int32_t feature, double where,
                      Split& split) {
        const double low = pool.lower(s)[feature], high = pool.upper(s)[feature];
        split.feature = feature;
        if (std::isnan(value) || low > high) {
            split.threshold = -std::numeric_limits<double>::infinity();
            split.new_right = !std::isnan(value);
            split.missing_right = false;
            return;
        }
        split.new_right = value > high;
        split.missing_right = !split.new_right;
        const double from = split.new_right ? high : value, to = split.new_right ? value : low;
        split.threshold = from + where * (to - from);
        if (!(split.threshold < to)) split.threshold = from;  // rounding: numbers above must stay above
    }

    std::vector<double> scale_, extent_;
    std::vector<std::int64_t> missing_;  // features that the row lacks
};

}  // namespace everytree::online
