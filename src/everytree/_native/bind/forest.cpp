// Many trees at once: the nodes where rows end, and averages of the values there.
#include "bind/forest.hpp"

#include "bind/modules.hpp"
#include "core/node_pool.hpp"
#include "core/pool.hpp"
#include "core/with_family.hpp"

namespace everytree::bind {

std::optional<Output<std::int32_t>> ForestHandle::ends(nb::handle X, int n_jobs) const {
    CodeBuffer buffer;
    if (!buffer.open(X, {shape_.n_features(), true})) return std::nullopt;
    const std::size_t n_rows = static_cast<std::size_t>(buffer.n_rows()), n_trees = shape_.n_trees();
    std::vector<std::int32_t> nodes(n_rows * n_trees);
    without_gil(true, [&] {
        if (buffer.is_narrow())
            ends_of_rows<std::uint8_t>(shape_, buffer.table(), n_jobs, nodes.data());
        else
            ends_of_rows<std::uint16_t>(shape_, buffer.table(), n_jobs, nodes.data());
    });
    return to_numpy(std::move(nodes), {n_rows, n_trees});
}

std::optional<Output<double>> ForestHandle::average(nb::handle X, const std::vector<Input<double>>& values,
                                                    Input<double> weights, int n_values, int n_jobs) const {
    CodeBuffer buffer;
    if (!buffer.open(X, {shape_.n_features(), true})) return std::nullopt;
    if (values.size() != shape_.n_trees() || weights.size() != shape_.n_trees() || n_values < 1)
        throw std::invalid_argument("one table of values and one weight a tree");
    std::vector<NodeValues> tables;
    for (std::size_t tree = 0; tree < values.size(); ++tree) {
        if (values[tree].size() != static_cast<std::size_t>(shape_.n_nodes(tree) * n_values))
            throw std::invalid_argument("values of tree " + std::to_string(tree) + " do not fit its nodes");
        tables.push_back({values[tree].data(), weights.data()[tree]});
    }
    const auto n_rows = static_cast<std::size_t>(buffer.n_rows()), width = static_cast<std::size_t>(n_values);
    std::vector<double> out(n_rows * width, 0.0);
    without_gil(true, [&] {
        if (buffer.is_narrow())
            everytree::average<std::uint8_t>(shape_, buffer.table(), tables, n_values, n_jobs, out.data());
        else
            everytree::average<std::uint16_t>(shape_, buffer.table(), tables, n_values, n_jobs, out.data());
    });
    return to_numpy(std::move(out), {n_rows, width});
}

bool ForestHandle::count(nb::handle X, nb::handle y, nb::handle weight, nb::handle extra, const std::string& name,
                         int size, double constant, const std::vector<State<double>>& statistics,
                         State<std::int64_t> n_rows, int n_jobs) const {
    CodeBuffer codes;
    if (!codes.open(X, {shape_.n_features(), true})) return false;
    return with_family(name, size, [&](const auto& family) {
        using Family = std::decay_t<decltype(family)>;
        RowBuffers rows;
        if (!rows.open(y, weight, extra, family.n_extra, constant, codes.n_rows())) return false;
        using Into = IntoStatistics<Family>;
        Into into(family, counts_of(statistics, n_rows, family.layout.size()));
        without_gil(codes.n_rows() > rows_worth_releasing, [&] {
            if (codes.is_narrow())
                ForestCount<Family, std::uint8_t, Into>(shape_, family, into).run(codes.table(), rows.columns, n_jobs);
            else
                ForestCount<Family, std::uint16_t, Into>(shape_, family, into).run(codes.table(), rows.columns, n_jobs);
        });
        return true;
    });
}

void ForestHandle::add(const std::string& name, int size, const std::vector<State<double>>& statistics,
                       State<std::int64_t> n_rows, const std::vector<Input<double>>& more,
                       Input<std::int64_t> n_more) const {
    with_family(name, size, [&](const auto& family) {
        const std::vector<TreeCounts> trees = counts_of(statistics, n_rows, family.layout.size());
        if (more.size() != trees.size() || n_more.size() != trees.size())
            throw std::invalid_argument("more statistics must have an entry for each tree");
        for (std::size_t tree = 0; tree < trees.size(); ++tree)
            if (more[tree].size() != statistics[tree].size())
                throw std::invalid_argument("more statistics of tree " + std::to_string(tree) +
                                            " do not fit its nodes");
        for (std::size_t tree = 0; tree < trees.size(); ++tree) {
            const auto width = static_cast<std::size_t>(family.layout.size());
            for (std::size_t at = 0; at < more[tree].size(); at += width)
                family.layout.add(trees[tree].statistics + at, more[tree].data() + at);
            *trees[tree].n_rows += n_more.data()[tree];
        }
    });
}

void ForestHandle::sum_up(const std::string& name, int size, const std::vector<State<double>>& statistics) const {
    with_family(name, size, [&](const auto& family) {
        check_sizes(statistics, family.layout.size());
        without_gil(true, [&] {
            for (std::size_t tree = 0; tree < statistics.size(); ++tree)
                everytree::sum_up(shape_.tree(tree), family.layout, statistics[tree].data());
        });
    });
}

void ForestHandle::check_sizes(const std::vector<State<double>>& statistics, int size) const {
    if (statistics.size() != shape_.n_trees())
        throw std::invalid_argument("statistics and n_rows must have an entry for each tree");
    for (std::size_t tree = 0; tree < statistics.size(); ++tree)
        if (statistics[tree].size() != static_cast<std::size_t>(shape_.n_nodes(tree) * size))
            throw std::invalid_argument("statistics of tree " + std::to_string(tree) + " do not fit its nodes");
}

std::vector<TreeCounts> ForestHandle::counts_of(const std::vector<State<double>>& statistics,
                                                State<std::int64_t> n_rows, int size) const {
    check_sizes(statistics, size);
    if (n_rows.size() != shape_.n_trees())
        throw std::invalid_argument("statistics and n_rows must have an entry for each tree");
    std::vector<TreeCounts> trees;
    for (std::size_t tree = 0; tree < statistics.size(); ++tree)
        trees.push_back({statistics[tree].data(), n_rows.data() + tree});
    return trees;
}

std::vector<TreeView> ForestHandle::views_of(const std::vector<nb::object>& trees, std::int64_t n_columns) {
    std::vector<TreeView> views;
    for (const nb::object& tree : trees) {
        const Tree* known = nb::cast<const Tree*>(tree, false);
        if (known == nullptr) throw std::invalid_argument("trees must not be None");
        if (known->width.n_features > n_columns) throw std::invalid_argument("known has fewer columns than a tree");
        views.push_back(known->view);
    }
    return views;
}

namespace {

Output<double> average_over_paths(const Tree& tree, Input<double> log_split, Input<double> log_stop, Input<double> leaf,
                                  Input<double> subtree, Input<double> values) {
    const auto n_nodes = static_cast<std::size_t>(tree.view.n_nodes);
    if (leaf.size() != n_nodes || subtree.size() != n_nodes || values.ndim() != 2 || values.shape(0) != n_nodes)
        throw std::invalid_argument("one entry a node");
    const SplitPrior prior = split_prior_of(tree.view.n_nodes, log_split, log_stop);
    std::vector<double> out(values.size());
    without_gil(true, [&] {
        average_along_paths(tree.view, prior, leaf.data(), subtree.data(), values.data(),
                            static_cast<int>(values.shape(1)), out.data());
    });
    return to_numpy(std::move(out), {n_nodes, values.shape(1)});
}

auto node_fates(const Tree& tree, Input<double> log_split, Input<double> log_stop, Input<double> leaf,
                Input<double> subtree) {
    const auto n_nodes = static_cast<std::size_t>(tree.view.n_nodes);
    if (leaf.size() != n_nodes || subtree.size() != n_nodes) throw std::invalid_argument("one entry a node");
    const SplitPrior prior = split_prior_of(tree.view.n_nodes, log_split, log_stop);
    std::vector<double> reached(n_nodes), stop(n_nodes);
    log_node_fates(tree.view, prior, leaf.data(), subtree.data(), reached.data(), stop.data());
    return std::tuple(to_numpy(std::move(reached)), to_numpy(std::move(stop)));
}

// The start of each row's nodes, the nodes, and their log weights.
auto pooled_paths(Input<std::int64_t> ends, Input<std::int32_t> parent, Input<double> log_reached,
                  Input<double> log_stop, Input<double> log_tree_weights, double log_negligible) {
    const std::size_t n_trees = log_tree_weights.size();
    const PooledNodes pool{parent.data(), log_reached.data(), log_stop.data(),
                           static_cast<std::int64_t>(parent.size())};
    if (n_trees == 0 || ends.size() % n_trees != 0 || log_reached.size() != parent.size() ||
        log_stop.size() != parent.size())
        throw std::invalid_argument("arrays of the wrong size");
    for (std::size_t i = 0; i < ends.size(); ++i)
        if (ends.data()[i] < 0 || ends.data()[i] >= pool.n_nodes) throw std::invalid_argument("ends: no such node");
    for (std::size_t s = 0; s < parent.size(); ++s)
        if (parent.data()[s] >= static_cast<std::int64_t>(s)) throw std::invalid_argument("parents come first");
    PooledPaths paths;
    without_gil(true, [&] {
        for (std::size_t i = 0; i < ends.size(); i += n_trees)
            paths.add(pool, ends.data() + i, log_tree_weights.data(), n_trees, log_negligible);
    });
    return std::tuple(to_numpy(std::move(paths.start)), to_numpy(std::move(paths.nodes)),
                      to_numpy(std::move(paths.log_weights)));
}

void make_node_pool(NodePool* self, Input<std::int64_t> first, Input<std::int32_t> parent, Input<double> log_reached,
                    Input<double> log_stop, Input<double> log_tree_weights, double log_negligible, int n_jobs) {
    if (log_reached.size() != parent.size() || log_stop.size() != parent.size())
        throw std::invalid_argument("arrays of the wrong size");
    const PooledNodes nodes{parent.data(), log_reached.data(), log_stop.data(),
                            static_cast<std::int64_t>(parent.size())};
    without_gil(true,
                [&] { new (self) NodePool(nodes, to_span(first), to_span(log_tree_weights), log_negligible, n_jobs); });
}

// (n_nodes, n_statistics) from rows whose terminals are known; None for columns that cannot be read in place.
std::optional<Output<double>> placed_statistics(const std::string& name, int size, const Tree& tree,
                                                Input<std::int32_t> ends, nb::handle y, nb::handle weight,
                                                nb::handle extra, double constant) {
    const auto n_rows = static_cast<std::int64_t>(ends.size());
    for (const std::int32_t end : to_span(ends))
        if (end < 0 || end >= tree.view.n_nodes) throw std::invalid_argument("ends: no such node");
    return with_family(name, size, [&](const auto& family) -> std::optional<Output<double>> {
        RowBuffers rows;
        if (!rows.open(y, weight, extra, family.n_extra, constant, n_rows)) return std::nullopt;
        std::vector<double> statistics =
            without_gil(true, [&] { return count_placed(family, tree.view, ends.data(), rows.columns, n_rows); });
        const auto width = static_cast<std::size_t>(family.layout.size());
        return to_numpy(std::move(statistics), {static_cast<std::size_t>(tree.view.n_nodes), width});
    });
}

}  // namespace

void bind_forest(nb::module_& module) {
    nb::class_<ForestHandle>(module, "Forest")
        .def(nb::init<std::vector<nb::object>, Input<std::uint16_t>>(), "trees"_a, "known"_a)
        .def("ends", &ForestHandle::ends, "X"_a.none(), "n_jobs"_a)
        .def("average", &ForestHandle::average, "X"_a.none(), nb::kw_only(), "values"_a, "weights"_a, "n_values"_a,
             "n_jobs"_a)
        .def("count", &ForestHandle::count, "X"_a.none(), "y"_a.none(), "weight"_a.none(), "extra"_a.none(),
             nb::kw_only(), "name"_a, "size"_a, "constant"_a, "statistics"_a, "n_rows"_a, "n_jobs"_a)
        .def("sum_up", &ForestHandle::sum_up, nb::kw_only(), "name"_a, "size"_a, "statistics"_a)
        .def("add", &ForestHandle::add, nb::kw_only(), "name"_a, "size"_a, "statistics"_a, "n_rows"_a, "more"_a,
             "n_more"_a);
    module.def("placed_statistics", &placed_statistics, "name"_a, "size"_a, nb::kw_only(), "tree"_a, "ends"_a,
               "y"_a.none(), "weight"_a.none(), "extra"_a.none(), "constant"_a);
    module.def("average_over_paths", &average_over_paths, "tree"_a, nb::kw_only(), "log_split"_a, "log_stop"_a,
               "leaf"_a, "subtree"_a, "values"_a);
    module.def("log_node_fates", &node_fates, "tree"_a, nb::kw_only(), "log_split"_a, "log_stop"_a, "leaf"_a,
               "subtree"_a);
    module.def("pooled_paths", &pooled_paths, nb::kw_only(), "ends"_a, "parent"_a, "log_reached"_a, "log_stop"_a,
               "log_tree_weights"_a, "log_negligible"_a);
    nb::class_<NodePool>(module, "NodePool")
        .def("__init__", &make_node_pool, nb::kw_only(), "first"_a, "parent"_a, "log_reached"_a, "log_stop"_a,
             "log_tree_weights"_a, "log_negligible"_a, "n_jobs"_a)
        .def(
            "sums_along",
            [](const NodePool& self, Input<double> values, int n_jobs) {
                return to_numpy(without_gil(true, [&] { return self.sums_along(to_span(values), n_jobs); }),
                                {self.n_nodes(), 2});
            },
            nb::kw_only(), "values"_a, "n_jobs"_a)
        .def(
            "averages",
            [](const NodePool& self, Input<std::int32_t> ends, Input<double> sums, int n_jobs) {
                return to_numpy(without_gil(true, [&] { return self.averages(to_span(ends), to_span(sums), n_jobs); }));
            },
            nb::kw_only(), "ends"_a, "sums"_a, "n_jobs"_a);
}

}  // namespace everytree::bind
