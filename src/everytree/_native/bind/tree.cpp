// Functions that need only the shape of a meta-tree.
#include "bind/tree.hpp"

#include "bind/modules.hpp"
#include "core/paths.hpp"
#include "core/route.hpp"
#include "core/top_trees.hpp"

namespace everytree::bind {
namespace {

using Nodes = Input<std::int32_t>;
using Numbers = Input<double>;

// Terminals of all rows, or None for a table that cannot be read in place.
std::optional<Output<std::int32_t>> route_rows(const Tree& tree, nb::handle X, int n_jobs) {
    CodeBuffer buffer;
    if (!buffer.open(X, tree.width)) return std::nullopt;
    return to_numpy(without_gil(buffer.n_rows() > rows_worth_releasing, [&] {
        return buffer.is_narrow() ? route_table<std::uint8_t>(tree.view, tree.checks, buffer.table(), n_jobs)
                                  : route_table<std::uint16_t>(tree.view, tree.checks, buffer.table(), n_jobs);
    }));
}

// Every node from `ends` to the root, once each, children before parents.
Output<std::int32_t> upward_closure(const Tree& tree, Nodes ends) {
    TouchedNodes touched(tree.view.n_nodes);
    for (const std::int32_t end : to_span(ends)) touched.touch(end);
    touched.close_upward(tree.view);
    return to_numpy(std::vector<std::int32_t>(touched.nodes()));
}

void sweep(const Tree& tree, Nodes nodes, Numbers log_split, Numbers log_stop, State<double> leaf,
           State<double> subtree, State<double> split_prob) {
    const SplitPrior prior = split_prior_of(tree.view.n_nodes, log_split, log_stop);
    const EvidenceView evidence{leaf.data(), subtree.data(), split_prob.data()};
    for (const std::int32_t node : to_span(nodes)) sweep_node(tree.view, prior, node, evidence);
}

auto paths(const Tree& tree, Nodes ends, Numbers log_split, Numbers log_stop, Numbers leaf, Numbers subtree) {
    const SplitPrior prior = split_prior_of(tree.view.n_nodes, log_split, log_stop);
    RowPaths found = paths_of_rows(tree.view, prior, leaf.data(), subtree.data(), ends.data(), ends.size());
    return std::tuple(to_numpy(std::move(found.path_of_row)), to_numpy(std::move(found.start)),
                      to_numpy(std::move(found.nodes)), to_numpy(std::move(found.log_weights)));
}

auto top_trees(const Tree& tree, Numbers log_split, Numbers log_stop, std::int32_t k) {
    BestTrees best = without_gil(true, [&] { return best_trees(tree.view, log_split.data(), log_stop.data(), k); });
    return std::tuple(to_numpy(std::move(best.log_probs)), to_numpy(std::move(best.start)),
                      to_numpy(std::move(best.leaves)));
}

// One entry per node, kept by the tree.
Output<const std::int32_t> lent(nb::handle owner, const std::vector<std::int32_t>& values) {
    return Output<const std::int32_t>(values.data(), {values.size()}, owner);
}

}  // namespace

void bind_tree(nb::module_& module) {
    nb::class_<Tree>(module, "Tree")
        .def(nb::init<Nodes, Nodes, Nodes, Nodes, Nodes, std::int64_t, bool>(), nb::kw_only(), "feature"_a,
             "first_child"_a, "n_children"_a, "threshold"_a, "missing_child"_a, "n_features"_a, "exact_width"_a)
        .def_prop_ro("parent", [](nb::handle self) { return lent(self, nb::cast<Tree&>(self).shape.parent()); })
        .def_prop_ro("depth", [](nb::handle self) { return lent(self, nb::cast<Tree&>(self).shape.depth()); })
        .def("route", &route_rows, "X"_a.none(), "n_jobs"_a)
        .def("upward_closure", &upward_closure, "ends"_a)
        .def("sweep", &sweep, "nodes"_a, nb::kw_only(), "log_split"_a, "log_stop"_a, "leaf"_a, "subtree"_a,
             "split_prob"_a)
        .def("paths", &paths, "ends"_a, nb::kw_only(), "log_split"_a, "log_stop"_a, "leaf"_a, "subtree"_a);
    module.def("top_trees", &top_trees, "tree"_a, "log_split"_a, "log_stop"_a, "k"_a);
}

}  // namespace everytree::bind
