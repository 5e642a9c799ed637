// Rows of a tree that are left out, the nodes they touch and the paths of those that are predicted: all that does not
// depend on priors.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/rows.hpp"
#include "core/sweep.hpp"

namespace everytree::held_out {

struct HeldOutRows {
    RowView rows;
    const std::int32_t* at;  // the terminal of each row
    std::int64_t n;
    const std::uint8_t* counted;  // whether the row is in the statistics and must be taken away
    const std::uint8_t* scored;   // whether the row is predicted; others are only taken away with their group
    const std::int64_t* start;    // (n_groups + 1,) the first row of each group
    std::int64_t n_groups;
    std::int64_t n_scored() const {
        std::int64_t total = 0;
        for (std::int64_t i = 0; i < n; ++i) total += scored[i] != 0;
        return total;
    }
};

// Groups that have a scored row. Scored rows of one class and weight that stand alone in one terminal leave the same
// tree behind: the first of them is predicted, and its answer is that of its twins.
class HeldOutPaths {
  public:
    struct Group {
        std::int64_t first_row, last_row;             // among the held rows
        std::size_t first_node, last_node;            // among those touched
        std::size_t first_predicted, last_predicted;  // among the rows that are predicted
        bool is_alone() const { return last_row - first_row == 1; }
    };
    struct Predicted {
        std::int64_t row;    // among the held rows
        std::size_t end;     // among the touched nodes
        std::size_t answer;  // among the scored rows
    };
    std::vector<Group> groups;
    std::vector<std::int32_t> touched;  // those of a group together, children first
    std::vector<std::size_t> above;     // the place of each touched node's parent; of the root, its own
    std::vector<Predicted> predicted;
    std::vector<std::size_t> first_like;  // for each scored row, the first scored row that is like it

    // `n_classes` is 0 where targets are no classes: then no two rows are twins.
    HeldOutPaths(const TreeView& tree, const HeldOutRows& held, int n_classes) {
        Scratch scratch(tree.n_nodes);
        for (std::int64_t group = 0; group < held.n_groups; ++group) {
            const std::int64_t begin = held.start[group], end = held.start[group + 1];
            if (end - begin == 1 && n_classes > 0 && is_twin(held, begin, n_classes, scratch)) continue;
            const std::size_t first_predicted = predicted.size(), first_node = touched.size();
            for (std::int64_t i = begin; i < end; ++i) {
                if (!held.scored[i]) continue;
                predicted.push_back({i, 0, first_like.size()});
                first_like.push_back(first_like.size());
            }
            if (predicted.size() == first_predicted) continue;
            touch(tree, held, begin, end, scratch);
            for (std::size_t k = first_predicted; k < predicted.size(); ++k)
                predicted[k].end = scratch.place_of(held.at[predicted[k].row]);
            groups.push_back({begin, end, first_node, touched.size(), first_predicted, predicted.size()});
        }
    }

  private:
    struct Scratch {
        explicit Scratch(std::int64_t n_nodes) : set(n_nodes), place(static_cast<std::size_t>(n_nodes)) {}
        std::size_t place_of(std::int32_t node) const { return place[static_cast<std::size_t>(node)]; }

        TouchedNodes set;
        std::vector<std::size_t> place;  // of a touched node of the last group
        std::unordered_map<std::int64_t, std::pair<std::int64_t, std::size_t>>
            seen;  // row, and its place among the scored
    };

    bool is_twin(const HeldOutRows& held, std::int64_t i, int n_classes, Scratch& scratch) {
        if (!held.scored[i]) return false;
        const auto key = held.at[i] * std::int64_t{n_classes} + static_cast<std::int64_t>(held.rows[i].y);
        const auto [like, is_new] = scratch.seen.try_emplace(key, i, first_like.size());
        const auto [j, answer] = like->second;
        if (is_new || held.rows[i].weight != held.rows[j].weight || held.counted[i] != held.counted[j]) return false;
        first_like.push_back(answer);
        return true;
    }

    void touch(const TreeView& tree, const HeldOutRows& held, std::int64_t begin, std::int64_t end, Scratch& scratch) {
        const std::size_t first = touched.size();
        for (std::int64_t i = begin; i < end; ++i) scratch.set.touch(held.at[i]);
        scratch.set.close_upward(tree);
        for (const std::int32_t s : scratch.set.nodes()) {
            scratch.place[static_cast<std::size_t>(s)] = touched.size();
            touched.push_back(s);
        }
        scratch.set.clear();
        for (std::size_t k = first; k < touched.size(); ++k)
            above.push_back(touched[k] > 0 ? scratch.place_of(tree.parent[touched[k]]) : k);
    }
};

}  // namespace everytree::held_out
