// Prediction from a compiled posterior over trees and splits: a row goes down all splits at once, divided by their
// shares.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <vector>

#include "route.hpp"

namespace everytree {

struct GraphView {
    std::int64_t n_nodes;
    const double* stop;
    const std::int64_t* first_edge;
    const std::int32_t *column, *code;
    const double* share;
    const std::int64_t* first_child;
    const std::int32_t* children;
    const std::uint8_t* kind;     // of each column
    const std::int32_t* n_codes;  // of each column; codes beyond are unknown

    // Children come after their parents and everything is in range: a walk always ends.
    void check(std::int64_t n_edges, std::int64_t n_children, std::int64_t n_columns) const {
        if (first_edge[0] != 0 || first_edge[n_nodes] != n_edges || first_child[0] != 0 ||
            first_child[n_edges] != n_children)
            throw std::invalid_argument("edges out of range");
        for (std::int64_t node = 0; node < n_nodes; ++node) {
            if (first_edge[node + 1] < first_edge[node]) throw std::invalid_argument("edges out of order");
            for (std::int64_t e = first_edge[node]; e < first_edge[node + 1]; ++e) {
                if (column[e] < 0 || column[e] >= n_columns) throw std::invalid_argument("no such column");
                const std::int64_t n = first_child[e + 1] - first_child[e];
                const bool is_multiway = kind[column[e]] == static_cast<std::uint8_t>(ColumnKind::multiway);
                if (n < 2 || (is_multiway && n != n_codes[column[e]]) || (!is_multiway && n != 2))
                    throw std::invalid_argument("wrong number of children");
                for (std::int64_t c = first_child[e]; c < first_child[e + 1]; ++c)
                    if (children[c] <= node || children[c] >= n_nodes)
                        throw std::invalid_argument("children come after their parents");
            }
        }
    }

    // Which child of an edge a code goes to.
    std::int32_t child(std::int64_t edge, std::int32_t value) const {
        return children[first_child[edge] +
                        child_of_split(static_cast<ColumnKind>(kind[column[edge]]), code[edge], value)];
    }
};

// One worker: where a row's probability is. Nodes are visited in order of their numbers, parents first.
class GraphWalk {
  public:
    explicit GraphWalk(const GraphView& graph) : graph_(graph), weight_(static_cast<std::size_t>(graph.n_nodes), 0.0) {}

    // Calls ends(node, weight) for each node where some of the row's probability ends. A column whose code is unknown
    // leaves the share of its splits where it is.
    template <class Code, class Ends>
    void walk(const Code* row, Ends ends) {
        weight_[0] = 1.0;
        heap_.assign(1, 0);
        while (!heap_.empty()) {
            std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
            const std::int32_t node = heap_.back();
            heap_.pop_back();
            const double here = weight_[node];
            weight_[node] = 0.0;
            double stays = graph_.stop[node];
            for (std::int64_t e = graph_.first_edge[node]; e < graph_.first_edge[node + 1]; ++e) {
                const std::int32_t value = row[graph_.column[e]];
                if (value >= graph_.n_codes[graph_.column[e]]) {
                    stays += graph_.share[e];
                    continue;
                }
                const std::int32_t to = graph_.child(e, value);
                if (weight_[to] == 0.0) {
                    heap_.push_back(to);
                    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
                }
                weight_[to] += here * graph_.share[e];
            }
            if (stays > 0.0) ends(node, here * stays);
        }
    }

  private:
    GraphView graph_;
    std::vector<double> weight_;
    std::vector<std::int32_t> heap_;
};

}  // namespace everytree
