// The shape of a meta-tree, and the questions that need nothing else.
#pragma once
#include <unordered_map>

#include "bind/common.hpp"
#include "core/route.hpp"
#include "core/sweep.hpp"
#include "core/top_trees.hpp"

namespace everytree {

// One number for all nodes, or one for each.
inline void check_prior_size(std::int64_t n_nodes, const Input<double>& log_split, const Input<double>& log_stop) {
    const auto n = static_cast<std::int64_t>(log_split.size());
    if ((n != 1 && n != n_nodes) || log_stop.size() != log_split.size())
        throw std::invalid_argument("split priors must be one for all nodes or one for each");
}

struct Tree {
    Input<std::uint8_t> routes;
    std::optional<Input<std::uint64_t>> binary_routes;
    Input<std::int32_t> first_child, n_children, parent, depth;
    Input<std::uint16_t> limit, shift;
    TreeView view;
    Width width;
    std::unique_ptr<CodeChecks> checks;

    Tree(Input<std::uint8_t> routes_, std::optional<Input<std::uint64_t>> binary_routes_,
         Input<std::int32_t> first_child_, Input<std::int32_t> n_children_, Input<std::int32_t> parent_,
         Input<std::int32_t> depth_, Input<std::uint16_t> limit_, Input<std::uint16_t> shift_, int shallowest,
         int deepest, bool exact_width)
        : routes(routes_),
          binary_routes(binary_routes_),
          first_child(first_child_),
          n_children(n_children_),
          parent(parent_),
          depth(depth_),
          limit(limit_),
          shift(shift_) {
        view = {reinterpret_cast<const RouteNode*>(routes.data()),
                binary_routes ? binary_routes->data() : nullptr,
                first_child.data(),
                n_children.data(),
                parent.data(),
                depth.data(),
                static_cast<std::int64_t>(parent.size()),
                shallowest,
                deepest};
        width = {static_cast<std::int64_t>(limit.size()), exact_width};
        checks = std::make_unique<CodeChecks>(CodeLimits{limit.data(), shift.data(), static_cast<int>(limit.size())});
    }
    // Terminals of all rows, or None for a table that cannot be read as it is.
    nb::object route_rows(nb::handle X, int n_jobs) const {
        CodeBuffer buffer;
        if (!buffer.open(X, width)) return nb::none();
        std::vector<std::int32_t> ends = without_gil(buffer.n_rows() > rows_worth_releasing, [&] {
            return buffer.is_narrow() ? route_all<std::uint8_t>(buffer.table(), n_jobs)
                                      : route_all<std::uint16_t>(buffer.table(), n_jobs);
        });
        return nb::cast(to_numpy(std::move(ends)));
    }
    template <class Code>
    std::vector<std::int32_t> route_all(const CodeTable& table, int n_jobs) const {
        const CodeReader<Code> reader(table, checks->limits());
        std::vector<std::int32_t> at(static_cast<std::size_t>(table.n_rows), 0);
        std::vector<std::vector<Code>> buffers(static_cast<std::size_t>(std::max(n_jobs, 1)));
        const auto work = [&](std::int64_t chunk, int worker) {
            const std::int64_t begin = chunk * chunk_rows, n = std::min(chunk_rows, table.n_rows - begin);
            const Codes<Code> codes = reader.rows(begin, n, buffers[worker]);
            checks->of<Code>()(codes, begin, n);
            route(view, codes, begin, n, at.data() + begin);
        };
        in_chunks((table.n_rows + chunk_rows - 1) / chunk_rows, n_jobs, work);
        return at;
    }

    // Every node from `ends` to the root, once each, children before parents.
    Output<std::int32_t> upward_closure(Input<std::int32_t> ends) const {
        TouchedNodes touched(view.n_nodes);
        for (std::size_t i = 0; i < ends.size(); ++i) touched.touch(ends.data()[i]);
        touched.close_upward(view);
        return to_numpy(std::vector<std::int32_t>(touched.nodes()));
    }

    void sweep(Input<std::int32_t> nodes, Input<double> log_split, Input<double> log_stop, State<double> leaf,
               State<double> subtree, State<double> split_prob) const {
        check_prior_size(view.n_nodes, log_split, log_stop);
        const std::ptrdiff_t stride = log_split.size() == 1 ? 0 : 1;
        const SplitPrior prior{{log_split.data(), stride}, {log_stop.data(), stride}};
        const EvidenceView evidence{leaf.data(), subtree.data(), split_prob.data()};
        for (std::size_t i = 0; i < nodes.size(); ++i) sweep_node(view, prior, nodes.data()[i], evidence);
    }

    // For rows that end in `ends`: which distinct path each one takes; then, path by path, the nodes from the root to
    // the end and the log of their weights prod(split_prob above) * (1 - split_prob). In logs, and from evidences:
    // where a split is all but certain, one minus its probability has no digits left.
    nb::tuple paths(Input<std::int32_t> ends, Input<double> log_split, Input<double> log_stop, Input<double> leaf,
                    Input<double> subtree) const {
        check_prior_size(view.n_nodes, log_split, log_stop);
        const std::ptrdiff_t stride = log_split.size() == 1 ? 0 : 1;
        const SplitPrior prior{{log_split.data(), stride}, {log_stop.data(), stride}};
        std::vector<std::int32_t> path_of_row(ends.size()), distinct;
        std::unordered_map<std::int32_t, std::int32_t> sparse;
        const bool dense = static_cast<std::int64_t>(ends.size()) * 8 > view.n_nodes;
        std::vector<std::int32_t> known(dense ? static_cast<std::size_t>(view.n_nodes) : 0, -1);
        for (std::size_t i = 0; i < ends.size(); ++i) {
            const std::int32_t end = ends.data()[i];
            std::int32_t& id = dense ? known[end] : sparse.try_emplace(end, -1).first->second;
            if (id < 0) {
                id = static_cast<std::int32_t>(distinct.size());
                distinct.push_back(end);
            }
            path_of_row[i] = id;
        }
        std::vector<std::int64_t> start{0};
        std::vector<std::int32_t> nodes;
        std::vector<double> log_weights;
        for (const std::int32_t end : distinct) {
            const std::size_t first = nodes.size();
            for (std::int32_t s = end; s >= 0; s = view.parent[s]) nodes.push_back(s);
            std::reverse(nodes.begin() + static_cast<std::ptrdiff_t>(first), nodes.end());
            double reached = 0.0;
            for (std::size_t i = first; i + 1 < nodes.size(); ++i) {
                const std::int32_t s = nodes[i];
                const LogFates fates = fates_of_node(view, prior, s, leaf.data(), subtree.data());
                log_weights.push_back(reached + fates.stop);
                reached += fates.split;
            }
            log_weights.push_back(reached);
            start.push_back(static_cast<std::int64_t>(nodes.size()));
        }
        return nb::make_tuple(to_numpy(std::move(path_of_row)), to_numpy(std::move(start)), to_numpy(std::move(nodes)),
                              to_numpy(std::move(log_weights)));
    }
};

// Log probabilities of the k best trees, and their leaves one after another with where each tree's start.
inline nb::tuple top_trees(const Tree& tree, Input<double> log_split, Input<double> log_stop, std::int32_t k) {
    std::vector<double> log_probs;
    std::vector<std::int64_t> start{0};
    std::vector<std::int32_t> leaves;
    {
        nb::gil_scoped_release released;
        TopTrees top(tree.view, log_split.data(), log_stop.data());
        for (std::int32_t rank = 0; rank < k && top.has(rank); ++rank) {
            log_probs.push_back(top.log_prob(rank));
            top.leaves(rank, leaves);
            start.push_back(static_cast<std::int64_t>(leaves.size()));
        }
    }
    return nb::make_tuple(to_numpy(std::move(log_probs)), to_numpy(std::move(start)), to_numpy(std::move(leaves)));
}

}  // namespace everytree
