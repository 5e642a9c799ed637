// Where a Mondrian tree grows: outside the boxes of the rows it has, by chance that depends on the rows' features
// alone.
#pragma once
#include <bit>
#include <cmath>
#include <vector>

#include "online_nodes.hpp"
#include "scramble.hpp"

namespace everytree {

inline std::uint64_t seed_of_tree(std::uint64_t seed, std::int64_t tree) {
    return scramble(scramble(seed) + static_cast<std::uint64_t>(tree));
}

// Where a tree lays a category on the unit interval: elsewhere in every tree, so that thresholds divide categories in
// all ways, and nothing has to be remembered of a category.
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

class SplitFinder {
  public:
    // Widens the running ranges by the row. Extents are shares of the range of their feature.
    void measure(const OnlineArrays& arrays, const double* row) {
        scale_.resize(static_cast<std::size_t>(arrays.n_features));
        extent_.resize(scale_.size());
        for (std::int64_t f = 0; f < arrays.n_features; ++f) {
            double *low = arrays.ranges + 2 * f, *high = low + 1;
            if (!(arrays.kinds[f] & (is_nominal | has_fixed_range))) {
                *low = row[f] < *low ? row[f] : *low;
                *high = row[f] > *high ? row[f] : *high;
            }
            scale_[f] = *high - *low > 1e-300 ? 1.0 / (*high - *low) : 0.0;
        }
    }

    // Whether the row parts from the rows of node s before those part from each other; `above` is the time of the
    // parent. A feature that only one of the two has counts as far apart as the ends of a range.
    bool parts(const OnlinePool& pool, std::int32_t s, const double* row, double above, Draws& draws, Split& split) {
        const double total = sum_extents(pool, s, row);
        if (!(total > 0.0)) return false;
        split.time = above + draws.exponential() / total;
        if (!(split.time < pool.node(s).time)) return false;
        double left = draws.uniform() * total;
        std::int64_t feature = -1;
        for (std::int64_t f = 0; f < pool.arrays().n_features; ++f) {
            if (!(extent_[f] > 0.0)) continue;
            feature = f;
            left -= extent_[f];
            if (left < 0.0) break;
        }
        place(pool, s, row[feature], static_cast<std::int32_t>(feature), draws.uniform(), split);
        return true;
    }

  private:
    double sum_extents(const OnlinePool& pool, std::int32_t s, const double* row) {
        const double *low = pool.lower(s), *high = pool.upper(s);
        const std::uint8_t* missing = pool.missing(s);
        double total = 0.0;
        for (std::int64_t f = 0; f < pool.arrays().n_features; ++f) {
            if (std::isnan(row[f]))
                extent_[f] = missing[f] ? 0.0 : 1.0;
            else if (low[f] > high[f])
                extent_[f] = 1.0;
            else
                extent_[f] = scale_[f] * (row[f] < low[f]    ? low[f] - row[f]
                                          : row[f] > high[f] ? row[f] - high[f]
                                                             : 0.0);
            total += extent_[f];
        }
        return total;
    }

    // Rows without the feature stay with those that were there before; where these all lack it, or the new row does,
    // having it is the question.
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
        if (!(split.threshold < to)) split.threshold = from;  // rounding: what is above must stay above
    }

    std::vector<double> scale_, extent_;
};

}  // namespace everytree
