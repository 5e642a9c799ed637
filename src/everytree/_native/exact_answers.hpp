// What the regions of an exact sum say together: sums over the whole posterior, and the graph that predictions walk.
#pragma once
#include "exact.hpp"

namespace everytree {

inline double weighted_log(double log_p) {
    return log_p == -std::numeric_limits<double>::infinity() ? 0.0 : std::exp(log_p) * log_p;
}

// Sums over the whole joint posterior, from the root down.
struct ExactSummary {
    std::vector<double> root_feature, expected_splits;  // by column
    double expected_leaves = 0.0, entropy = 0.0;
};
template <class Family>
ExactSummary summarise(const ExactKernel<Family>& kernel) {
    ExactSummary out;
    const auto n_columns = kernel.n_columns();
    out.root_feature.assign(n_columns, 0.0);
    out.expected_splits.assign(n_columns, 0.0);
    std::vector<double> mass{1.0}, next;
    RegionView view;
    for (int depth = 0; depth < static_cast<int>(kernel.levels().size()); ++depth) {
        const Level& level = kernel.levels()[depth];
        next.assign(depth + 1 < static_cast<int>(kernel.levels().size()) ? kernel.levels()[depth + 1].size() : 0, 0.0);
        for (std::size_t region = 0; region < level.size(); ++region) {
            if (!(mass[region] > 0.0)) continue;
            const bool is_last = !kernel.is_expanded(depth, region);
            const RegionFate here = kernel.fate(depth, region, view);
            out.expected_leaves += mass[region] * std::exp(here.log_stop);
            out.entropy -= mass[region] * weighted_log(here.log_stop);
            std::size_t i = 0, at = is_last ? 0 : level.first_child[region];
            if (here.log_split.empty()) continue;
            kernel.each_candidate(view, [&](int k, int, const std::vector<CodeSet>& sets, const double*) {
                const double log_share = here.log_split[i++], share = mass[region] * std::exp(log_share);
                out.entropy -= mass[region] * weighted_log(log_share);
                out.expected_splits[k] += share;
                if (depth == 0) out.root_feature[k] += share;
                for (std::size_t c = 0; c < sets.size(); ++c) {
                    const std::int32_t child = is_last ? -1 : level.children[at++];
                    if (child >= 0) {
                        next[child] += share;
                        continue;
                    }
                    const Unseen below = is_last ? Unseen{} : kernel.unseen(view, k, sets[c], depth + 1);
                    out.expected_leaves += share * below.leaves;
                    out.entropy += share * below.entropy;
                }
            });
        }
        mass.swap(next);
    }
    return out;
}

// The splits of one node of the graph.
struct NodeEdges {
    std::vector<std::int32_t> column, code, children;
    std::vector<std::size_t> n_children;
    std::vector<double> share;
};

// The posterior as a graph of regions, for prediction. A split whose share of the whole posterior is below the
// threshold is left out, and its region a leaf instead; `dropped` is all that was left out.
struct ExactGraph {
    std::vector<double> statistics;  // (n_nodes, size); node 0 is the root
    std::vector<double> stop;        // probability that a row that is here ends here
    std::vector<std::int64_t> first_edge{0};
    std::vector<std::int32_t> column, code;
    std::vector<double> share;  // of each edge, given that a row is here
    std::vector<std::int64_t> first_child{0};
    std::vector<std::int32_t> children;
    double dropped = 0.0;
};
template <class Family>
ExactGraph compile(const ExactKernel<Family>& kernel, double threshold) {
    ExactGraph graph;
    std::vector<double> mass{1.0};
    std::vector<std::int32_t> node_of{0}, next_node_of;  // by region of the level, -1 where it is not reached
    std::vector<double> next_mass;
    graph.statistics.resize(kernel.size());
    graph.stop.assign(1, 1.0);
    std::vector<NodeEdges> edges(1);
    const auto new_node = [&](const double* stat) {
        graph.statistics.insert(graph.statistics.end(), stat, stat + kernel.size());
        graph.stop.push_back(1.0);
        edges.emplace_back();
        return static_cast<std::int32_t>(graph.stop.size() - 1);
    };
    const std::vector<double> zeros(kernel.size(), 0.0);
    RegionView view;
    for (int depth = 0; depth < static_cast<int>(kernel.levels().size()); ++depth) {
        const Level& level = kernel.levels()[depth];
        const std::size_t n_below =
            depth + 1 < static_cast<int>(kernel.levels().size()) ? kernel.levels()[depth + 1].size() : 0;
        next_node_of.assign(n_below, -1);
        next_mass.assign(n_below, 0.0);
        std::int32_t nothing = -1;  // the one node below this level of all regions without rows
        for (std::size_t region = 0; region < level.size(); ++region) {
            const std::int32_t node = node_of[region];
            if (node < 0) continue;
            const RegionFate here = kernel.fate(depth, region, view);
            std::copy(view.total.begin(), view.total.end(), graph.statistics.begin() + node * kernel.size());
            if (here.log_split.empty()) continue;
            graph.stop[node] = std::exp(here.log_stop);
            std::size_t i = 0, at = kernel.is_expanded(depth, region) ? level.first_child[region] : 0;
            kernel.each_candidate(view, [&](int k, int code, const std::vector<CodeSet>& sets, const double* stats) {
                const double share = std::exp(here.log_split[i++]);
                const std::size_t first = at;
                if (kernel.is_expanded(depth, region)) at += sets.size();
                if (share * mass[region] < threshold || share == 0.0) {
                    graph.stop[node] += share;
                    graph.dropped += share * mass[region];
                    return;
                }
                edges[node].column.push_back(k);
                edges[node].code.push_back(code);
                edges[node].share.push_back(share);
                for (std::size_t c = 0; c < sets.size(); ++c) {
                    const std::int32_t child = kernel.is_expanded(depth, region) ? level.children[first + c] : -2;
                    std::int32_t to;
                    if (child >= 0) {
                        if (next_node_of[child] < 0) next_node_of[child] = new_node(zeros.data());
                        to = next_node_of[child];
                        next_mass[child] += share * mass[region];
                    } else if (view.child_rows[c] > 0) {
                        to = new_node(stats + c * kernel.size());
                    } else {
                        to = nothing = nothing < 0 ? new_node(zeros.data()) : nothing;
                    }
                    edges[node].children.push_back(to);
                }
                edges[node].n_children.push_back(sets.size());
            });
        }
        node_of.swap(next_node_of);
        mass.swap(next_mass);
    }
    for (const NodeEdges& own : edges) {
        std::size_t at = 0;
        for (std::size_t e = 0; e < own.column.size(); ++e) {
            graph.column.push_back(own.column[e]);
            graph.code.push_back(own.code[e]);
            graph.share.push_back(own.share[e]);
            for (std::size_t c = 0; c < own.n_children[e]; ++c) graph.children.push_back(own.children[at++]);
            graph.first_child.push_back(static_cast<std::int64_t>(graph.children.size()));
        }
        graph.first_edge.push_back(static_cast<std::int64_t>(graph.column.size()));
    }
    return graph;
}

}  // namespace everytree
