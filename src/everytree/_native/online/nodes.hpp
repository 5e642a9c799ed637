// The trees of an online forest in memory: nodes of all trees in one pool, and the box of the rows of each.
//
// Every split lies outside the box of the rows that were there before it (a property of Mondrian processes), hence all
// of them are on one side of it: rows never have to be moved, and the statistics of a node are always those of all rows
// that the present splits send to it.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

namespace everytree::online {

struct OnlineNode {
    std::int32_t parent, left, right;  // -1: none; a leaf has no children; free slots are chained through `parent`
    std::int32_t feature;
    std::int32_t missing_right;  // whether rows without the feature go right
    std::int32_t tree;
    double time, threshold;      // when it is split, in Mondrian time; infinite for a leaf
    double log_split, log_stop;  // log prior probabilities that it is split and that it is not; a leaf has only one
    double leaf, subtree;        // log evidences, as of the last time the node was evaluated
    std::int64_t stamp;          // the row at which the statistics were last brought up to date
};
static_assert(sizeof(OnlineNode) == 80);

// Owned by NumPy. A row is one double per feature: its value, or NaN where it has none. Features not seen yet are
// features that all rows lack, so room for more of them needs no special case.
struct OnlineArrays {
    OnlineNode* nodes;
    double* boxes;               // (capacity, 2, n_features): lowest and highest value; inf, -inf where none has one
    std::uint8_t* some_missing;  // (capacity, n_features): whether some row lacks the feature
    double* statistics;          // (capacity, stride): those of the family, and zeros: room for more classes
    double* ranges;              // (n_features, 2): lowest and highest value so far, or as the user fixed them
    const std::uint8_t* kinds;   // (n_features,): OnlineKind flags
    std::int32_t* roots;         // (n_trees, 2): the root, and the node that is refreshed next; -1 before the first row
    std::int64_t* counts;        // OnlineCount
    std::int64_t capacity, stride, n_features, n_trees;
};
enum OnlineKind { is_nominal = 1, has_fixed_range = 2 };
enum OnlineCount { slots_used, first_free, n_free, n_seen, n_online_counts };

class OnlinePool {
  public:
    void attach(const OnlineArrays& arrays) { arrays_ = arrays; }
    const OnlineArrays& arrays() const { return arrays_; }

    OnlineNode& node(std::int32_t s) const { return arrays_.nodes[s]; }
    bool is_leaf(std::int32_t s) const { return node(s).left < 0; }
    std::int64_t& count(OnlineCount which) const { return arrays_.counts[which]; }
    std::int32_t& root(std::int64_t tree) const { return arrays_.roots[2 * tree]; }
    std::int32_t& cursor(std::int64_t tree) const { return arrays_.roots[2 * tree + 1]; }
    std::int64_t room() const { return count(n_free) + arrays_.capacity - count(slots_used); }
    std::int64_t n_nodes() const { return count(slots_used) - count(n_free); }

    double* lower(std::int32_t s) const { return arrays_.boxes + 2 * (s * arrays_.n_features); }
    double* upper(std::int32_t s) const { return lower(s) + arrays_.n_features; }
    std::uint8_t* missing(std::int32_t s) const { return arrays_.some_missing + s * arrays_.n_features; }

    // The routing rule: at most the threshold goes left.
    std::int32_t child(std::int32_t s, const double* row) const {
        const OnlineNode& at = node(s);
        const double value = row[at.feature];
        const bool right = std::isnan(value) ? at.missing_right != 0 : value > at.threshold;
        return right ? at.right : at.left;
    }

    // An inner node whose children are leaves.
    bool is_pair(std::int32_t s) const { return !is_leaf(s) && is_leaf(node(s).left) && is_leaf(node(s).right); }

    // All nodes of all trees, children before parents.
    template <class Use>
    void each_node(Use use) const {
        for (std::int64_t tree = 0; tree < arrays_.n_trees; ++tree) {
            const std::int32_t last = root(tree);
            if (last < 0) continue;
            for (std::int32_t s = first_below(last); s != last; s = next(s)) use(s);
            use(last);
        }
    }
    std::int32_t first_below(std::int32_t s) const {
        while (!is_leaf(s)) s = node(s).left;
        return s;
    }
    // The next node of a tree in a cycle, children before parents.
    std::int32_t next(std::int32_t s) const {
        const std::int32_t parent = node(s).parent;
        if (parent < 0) return first_below(s);
        return node(parent).left == s ? first_below(node(parent).right) : parent;
    }

    std::int32_t take(std::int32_t tree, std::int32_t parent) const {
        std::int32_t s = static_cast<std::int32_t>(count(first_free));
        if (s >= 0) {
            count(first_free) = node(s).parent;
            --count(n_free);
        } else {
            s = static_cast<std::int32_t>(count(slots_used)++);
        }
        constexpr double never = std::numeric_limits<double>::infinity();
        node(s) = {parent, -1, -1, -1, 0, tree, never, 0.0, 0.0, 0.0, 0.0, 0.0, count(n_seen)};
        return s;
    }
    void give_back(std::int32_t s) const {
        node(s) = {static_cast<std::int32_t>(count(first_free)), -1, -1, -1, 0, -1, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0};
        count(first_free) = s;
        ++count(n_free);
    }
    void replace_child(std::int32_t parent, std::int32_t old, std::int32_t by, std::int32_t tree) const {
        if (parent < 0)
            root(tree) = by;
        else
            (node(parent).left == old ? node(parent).left : node(parent).right) = by;
    }

    void empty_box(std::int32_t s) const {
        constexpr double nowhere = std::numeric_limits<double>::infinity();
        for (std::int64_t f = 0; f < arrays_.n_features; ++f) {
            lower(s)[f] = nowhere;
            upper(s)[f] = -nowhere;
            missing(s)[f] = 0;
        }
    }
    void copy_box(std::int32_t from, std::int32_t to) const {
        for (std::int64_t f = 0; f < 2 * arrays_.n_features; ++f) lower(to)[f] = lower(from)[f];
        for (std::int64_t f = 0; f < arrays_.n_features; ++f) missing(to)[f] = missing(from)[f];
    }
    void widen_box(std::int32_t s, const double* row) const {
        double *low = lower(s), *high = upper(s);
        std::uint8_t* lacks = missing(s);
        for (std::int64_t f = 0; f < arrays_.n_features; ++f) {  // comparisons with NaN are false
            low[f] = row[f] < low[f] ? row[f] : low[f];
            high[f] = row[f] > high[f] ? row[f] : high[f];
            lacks[f] |= static_cast<std::uint8_t>(std::isnan(row[f]));
        }
    }

  private:
    OnlineArrays arrays_{};
};

}  // namespace everytree::online
