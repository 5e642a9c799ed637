// The k most probable pruned trees, exactly and lazily.
//
// Below a node there is one alternative that stops, and one that splits for every choice of an alternative in each
// child. A node lists its alternatives best first, but only as far as its parent needs them: after an alternative that
// uses ranks (r_1, r_2, ...) of the children, the next candidates raise one of these ranks by one, at or after the
// place raised last, so that each choice occurs once. No recursion: trees may have any depth.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <queue>
#include <vector>

#include "core/tree.hpp"

namespace everytree {

class TopTrees {
  public:
    TopTrees(const TreeView& tree, const double* log_split, const double* log_stop)
        : tree_(tree),
          log_split_(log_split),
          log_stop_(log_stop),
          best_(static_cast<std::size_t>(tree.n_nodes)),
          states_(static_cast<std::size_t>(tree.n_nodes)) {
        for (std::int64_t s = tree.n_nodes - 1; s >= 0; --s) best_[s] = std::max(log_stop[s], best_split(s));
    }

    // Log probability of the tree of this rank at the root; false if there are fewer trees of positive probability.
    bool has(std::int32_t rank) { return rank == 0 ? best_[0] > never : ensure(0, rank); }
    double log_prob(std::int32_t rank) const { return value(0, rank); }

    void leaves(std::int32_t rank, std::vector<std::int32_t>& out) const {
        std::vector<Choice> open{{0, rank}};
        while (!open.empty()) {
            const Choice here = open.back();
            open.pop_back();
            const Alternative* chosen = states_[here.node] ? &states_[here.node]->found[here.rank] : nullptr;
            if (chosen ? chosen->stops() : best_[here.node] <= log_stop_[here.node]) {
                out.push_back(here.node);
                continue;
            }
            for (std::int32_t c = 0; c < tree_.n_children[here.node]; ++c)
                open.push_back({tree_.first_child[here.node] + c, chosen ? ranks_[chosen->ranks + c] : 0});
        }
    }

  private:
    static constexpr double never = -HUGE_VAL;

    struct Choice {
        std::int32_t node, rank;
    };
    struct Alternative {
        double log_prob;
        std::int64_t ranks;        // where the children's ranks start; -1: it stops
        std::int32_t last_raised;  // the place raised last
        bool stops() const { return ranks < 0; }
        // In a tie the one that stops comes first.
        bool operator<(const Alternative& other) const {
            return log_prob != other.log_prob ? log_prob < other.log_prob : stops() < other.stops();
        }
    };
    struct State {
        std::vector<Alternative> found;  // best first
        std::priority_queue<Alternative> candidates;
        std::int32_t to_raise = 0;  // next place to raise in the alternative found last
    };

    double best_split(std::int64_t s) const {
        if (tree_.n_children[s] == 0) return never;
        double sum = log_split_[s];
        for (std::int32_t c = 0; c < tree_.n_children[s]; ++c) sum += best_[tree_.first_child[s] + c];
        return sum;
    }
    double value(std::int32_t s, std::int32_t rank) const {
        return rank == 0 ? best_[s] : states_[s]->found[rank].log_prob;
    }
    bool known(std::int32_t s, std::int32_t rank) const {
        return rank == 0 || (states_[s] && static_cast<std::int32_t>(states_[s]->found.size()) > rank);
    }
    bool exhausted(std::int32_t s) const {
        return tree_.n_children[s] == 0 || (states_[s] && states_[s]->candidates.empty() && !raising(s));
    }
    bool raising(std::int32_t s) const {
        const State& state = *states_[s];
        return !state.found.empty() && !state.found.back().stops() && state.to_raise < tree_.n_children[s];
    }

    // Computes alternative `rank` of node s; false if there is none.
    bool ensure(std::int32_t s, std::int32_t rank) {
        std::vector<Choice> open{{s, rank}};
        while (!open.empty()) {
            const Choice here = open.back();
            if (known(here.node, here.rank) || exhausted(here.node)) {
                open.pop_back();
                continue;
            }
            if (!states_[here.node]) begin(here.node);
            const Choice missing = raise_ranks(here.node);
            if (missing.node >= 0)
                open.push_back(missing);
            else if (!states_[here.node]->candidates.empty())
                take_best(here.node);
        }
        return known(s, rank);
    }

    void begin(std::int32_t s) {
        states_[s] = std::make_unique<State>();
        if (log_stop_[s] > never) states_[s]->candidates.push({log_stop_[s], -1, 0});
        const double split = best_split(s);
        if (split > never) {
            states_[s]->candidates.push({split, static_cast<std::int64_t>(ranks_.size()), 0});
            ranks_.insert(ranks_.end(), static_cast<std::size_t>(tree_.n_children[s]), 0);
        }
    }

    // Adds the successors of the alternative found last. If that needs an alternative of a child that is not known yet,
    // returns which one, and continues from there when called again.
    Choice raise_ranks(std::int32_t s) {
        State& state = *states_[s];
        for (; raising(s); ++state.to_raise) {
            const Alternative from = state.found.back();
            const std::int32_t child = tree_.first_child[s] + state.to_raise;
            const std::int32_t rank = ranks_[from.ranks + state.to_raise] + 1;
            if (!known(child, rank)) {
                if (!exhausted(child)) return {child, rank};
                continue;
            }
            const auto place = static_cast<std::int64_t>(ranks_.size());
            for (std::int32_t c = 0; c < tree_.n_children[s]; ++c) ranks_.push_back(ranks_[from.ranks + c]);
            ranks_[place + state.to_raise] = rank;
            state.candidates.push({from.log_prob - value(child, rank - 1) + value(child, rank), place, state.to_raise});
        }
        return {-1, 0};
    }

    void take_best(std::int32_t s) {
        State& state = *states_[s];
        state.found.push_back(state.candidates.top());
        state.candidates.pop();
        state.to_raise = state.found.back().last_raised;
    }

    TreeView tree_;
    const double *log_split_, *log_stop_;
    std::vector<double> best_;  // log probability of the best alternative below each node
    std::vector<std::unique_ptr<State>> states_;
    std::vector<std::int32_t> ranks_;
};

// Log probabilities of the k best trees, and their leaves one after another with the start of each tree's leaves.
struct BestTrees {
    std::vector<double> log_probs;
    std::vector<std::int64_t> start{0};
    std::vector<std::int32_t> leaves;
};
inline BestTrees best_trees(const TreeView& tree, const double* log_split, const double* log_stop, std::int32_t k) {
    BestTrees best;
    TopTrees top(tree, log_split, log_stop);
    for (std::int32_t rank = 0; rank < k && top.has(rank); ++rank) {
        best.log_probs.push_back(top.log_prob(rank));
        top.leaves(rank, best.leaves);
        best.start.push_back(static_cast<std::int64_t>(best.leaves.size()));
    }
    return best;
}

}  // namespace everytree
