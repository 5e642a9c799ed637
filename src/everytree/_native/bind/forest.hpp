// Many trees at once: where rows end, averages of what waits there, and how priors compare on rows left out.
#pragma once
#include "bind/families.hpp"
#include "bind/tree.hpp"
#include "core/counting.hpp"
#include "core/forest.hpp"
#include "core/held_out.hpp"
#include "core/pool.hpp"

namespace everytree {

class ForestHandle {
  public:
    ForestHandle(std::vector<nb::object> trees, Input<std::uint16_t> known)
        : trees_(std::move(trees)),
          shape_(views_of(trees_, static_cast<std::int64_t>(known.size())),
                 {known.data(), known.data() + known.size()}) {}

    // (n_rows, n_trees) nodes, or None for a table that cannot be read as it is.
    nb::object ends(nb::handle X, int n_jobs) const {
        CodeBuffer buffer;
        if (!buffer.open(X, {shape_.n_features(), true})) return nb::none();
        const std::size_t n_rows = static_cast<std::size_t>(buffer.n_rows()), n_trees = shape_.n_trees();
        std::vector<std::int32_t> nodes(n_rows * n_trees);
        without_gil(true, [&] {
            if (buffer.is_narrow())
                ends_of<std::uint8_t>(buffer.table(), n_jobs, nodes.data());
            else
                ends_of<std::uint16_t>(buffer.table(), n_jobs, nodes.data());
        });
        return nb::cast(to_numpy(std::move(nodes), {n_rows, n_trees}));
    }

    // (n_rows, n_values): the weighted sum over trees of the values of the node where a row ends.
    nb::object average(nb::handle X, const std::vector<Input<double>>& values, Input<double> weights, int n_values,
                       int n_jobs) const {
        CodeBuffer buffer;
        if (!buffer.open(X, {shape_.n_features(), true})) return nb::none();
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
        return nb::cast(to_numpy(std::move(out), {n_rows, width}));
    }

    // Adds rows to the statistics of each tree, (n_nodes, n_statistics), and to their numbers, (n_trees,). False where
    // the arguments cannot be read as they are.
    bool count(const std::string& name, int size, const std::vector<State<double>>& statistics,
               State<std::int64_t> n_rows, nb::handle X, nb::handle y, nb::handle weight, nb::handle extra,
               double constant, int n_jobs) const {
        CodeBuffer codes;
        if (!codes.open(X, {shape_.n_features(), true})) return false;
        return with_family(name, size, [&](const auto& family) {
            using Family = std::decay_t<decltype(family)>;
            RowBuffers rows;
            if (!rows.open(y, weight, extra, family.n_extra, constant, codes.n_rows())) return false;
            const std::vector<TreeCounts> trees = counts_of(statistics, n_rows, family.layout.size());
            without_gil(codes.n_rows() > rows_worth_releasing, [&] {
                if (codes.is_narrow())
                    ForestCount<Family, std::uint8_t>(shape_, family, trees).run(codes.table(), rows.columns, n_jobs);
                else
                    ForestCount<Family, std::uint16_t>(shape_, family, trees).run(codes.table(), rows.columns, n_jobs);
            });
            return true;
        });
    }

    // Adds statistics of other rows over the same trees, node by node.
    void add(const std::string& name, int size, const std::vector<State<double>>& statistics,
             State<std::int64_t> n_rows, const std::vector<Input<double>>& more, Input<std::int64_t> n_more) const {
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

  private:
    std::vector<TreeCounts> counts_of(const std::vector<State<double>>& statistics, State<std::int64_t> n_rows,
                                      int size) const {
        if (statistics.size() != shape_.n_trees() || n_rows.size() != shape_.n_trees())
            throw std::invalid_argument("statistics and n_rows must have an entry for each tree");
        std::vector<TreeCounts> trees;
        for (std::size_t tree = 0; tree < statistics.size(); ++tree) {
            if (statistics[tree].size() != static_cast<std::size_t>(shape_.n_nodes(tree) * size))
                throw std::invalid_argument("statistics of tree " + std::to_string(tree) + " do not fit its nodes");
            trees.push_back({statistics[tree].data(), n_rows.data() + tree});
        }
        return trees;
    }
    static std::vector<TreeView> views_of(const std::vector<nb::object>& trees, std::int64_t n_columns) {
        std::vector<TreeView> views;
        for (const nb::object& tree : trees) {
            const Tree* known = nb::cast<const Tree*>(tree, false);
            if (known == nullptr) throw std::invalid_argument("trees must not be None");
            if (known->width.n_features > n_columns) throw std::invalid_argument("known has fewer columns than a tree");
            views.push_back(known->view);
        }
        return views;
    }
    template <class Code>
    void ends_of(const CodeTable& table, int n_jobs, std::int32_t* nodes) const {
        const std::size_t n_trees = shape_.n_trees();
        over_rows<Code>(shape_, table, n_jobs,
                        [&](std::int64_t begin, std::int64_t n, const Codes<Code>& codes, auto& mine) {
                            for (std::size_t tree = 0; tree < n_trees; ++tree) {
                                shape_.ends(tree, codes, begin, n, mine.unusual, mine.at.data());
                                for (std::int64_t i = 0; i < n; ++i) nodes[(begin + i) * n_trees + tree] = mine.at[i];
                            }
                        });
    }

    std::vector<nb::object> trees_;  // keep the arrays behind the views alive
    ForestShape shape_;
};

inline nb::object average_over_paths(const Tree& tree, Input<double> log_split, Input<double> log_stop,
                                     Input<double> leaf, Input<double> subtree, Input<double> values) {
    const auto n_nodes = static_cast<std::size_t>(tree.view.n_nodes);
    if (leaf.size() != n_nodes || subtree.size() != n_nodes || values.ndim() != 2 || values.shape(0) != n_nodes)
        throw std::invalid_argument("one entry a node");
    check_prior_size(tree.view.n_nodes, log_split, log_stop);
    const std::ptrdiff_t stride = log_split.size() == 1 ? 0 : 1;
    const SplitPrior prior{{log_split.data(), stride}, {log_stop.data(), stride}};
    std::vector<double> out(values.size());
    without_gil(true, [&] {
        average_along_paths(tree.view, prior, leaf.data(), subtree.data(), values.data(),
                            static_cast<int>(values.shape(1)), out.data());
    });
    return nb::cast(to_numpy(std::move(out), {n_nodes, values.shape(1)}));
}

inline nb::object node_fates(const Tree& tree, Input<double> log_split, Input<double> log_stop, Input<double> leaf,
                             Input<double> subtree) {
    const auto n_nodes = static_cast<std::size_t>(tree.view.n_nodes);
    if (leaf.size() != n_nodes || subtree.size() != n_nodes) throw std::invalid_argument("one entry a node");
    check_prior_size(tree.view.n_nodes, log_split, log_stop);
    const std::ptrdiff_t stride = log_split.size() == 1 ? 0 : 1;
    std::vector<double> reached(n_nodes), stop(n_nodes);
    log_node_fates(tree.view, {{log_split.data(), stride}, {log_stop.data(), stride}}, leaf.data(), subtree.data(),
                   reached.data(), stop.data());
    return nb::make_tuple(to_numpy(std::move(reached)), to_numpy(std::move(stop)));
}

// Where each row's nodes start, the nodes, and their log weights.
inline nb::object pooled_paths(Input<std::int64_t> ends, Input<std::int32_t> parent, Input<double> log_reached,
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
    return nb::make_tuple(to_numpy(std::move(paths.start)), to_numpy(std::move(paths.nodes)),
                          to_numpy(std::move(paths.log_weights)));
}

// One tree and the rows it is asked about, checked.
template <class Family>
class HeldOutInput {
  public:
    // False where the columns cannot be read as they are.
    bool open(const Family& family, const Tree& tree, Input<double> statistics, Input<double> log_split,
              Input<double> log_stop, Input<std::int32_t> ends, Input<std::uint8_t> counted, nb::handle y,
              nb::handle weight, nb::handle extra, double constant, Input<std::uint8_t> scored,
              Input<std::int64_t> group_start) {
        const auto n_rows = static_cast<std::int64_t>(ends.size());
        if (!buffers_.open(y, weight, extra, family.n_extra, constant, n_rows)) return false;
        const std::int64_t n_nodes = tree.view.n_nodes;
        if (static_cast<std::int64_t>(statistics.size()) != n_nodes * family.layout.size() ||
            counted.size() != ends.size() || scored.size() != ends.size() || log_split.ndim() != 2 ||
            log_split.size() != log_stop.size() ||
            (log_split.shape(1) != 1 && static_cast<std::int64_t>(log_split.shape(1)) != n_nodes))
            throw std::invalid_argument("arrays of the wrong size");
        for (std::int64_t i = 0; i < n_rows; ++i)
            if (ends.data()[i] < 0 || ends.data()[i] >= n_nodes) throw std::invalid_argument("ends: no such node");
        check_groups(group_start, n_rows);
        splits = {log_split.data(), log_stop.data(), static_cast<std::int64_t>(log_split.shape(0)),
                  static_cast<std::ptrdiff_t>(log_split.shape(1))};
        rows_ = std::make_unique<RowChunk>(family.n_extra);
        rows_->read(family, buffers_.columns, 0, n_rows);
        held = {rows_->view(),
                ends.data(),
                n_rows,
                counted.data(),
                scored.data(),
                group_start.data(),
                static_cast<std::int64_t>(group_start.size()) - 1};
        return true;
    }
    HeldOutRows held;
    SplitPriors splits;

  private:
    static void check_groups(Input<std::int64_t> start, std::int64_t n_rows) {
        bool fits = start.size() > 0 && start.data()[0] == 0 && start.data()[start.size() - 1] == n_rows;
        for (std::size_t i = 1; fits && i < start.size(); ++i) fits = start.data()[i - 1] <= start.data()[i];
        if (!fits) throw std::invalid_argument("group_start must rise from 0 to the number of rows");
    }
    RowBuffers buffers_;
    std::unique_ptr<RowChunk> rows_;
};

// What the scored rows of one tree are given by the tree without their groups, for each prior of the leaves and each of
// the splits: (n leaf priors, n split priors, n scored rows, n_values).
inline nb::object predict_held_out(const std::string& name, int size, const Tree& tree, Input<double> statistics,
                                   Input<double> priors, Input<double> log_split, Input<double> log_stop,
                                   Input<std::int32_t> ends, Input<std::uint8_t> counted, nb::handle y,
                                   nb::handle weight, nb::handle extra, double constant, Input<std::uint8_t> scored,
                                   Input<std::int64_t> group_start) {
    return with_family(name, size, [&](const auto& family) -> nb::object {
        using Family = std::decay_t<decltype(family)>;
        HeldOutInput<Family> in;
        if (!in.open(family, tree, statistics, log_split, log_stop, ends, counted, y, weight, extra, constant, scored,
                     group_start))
            return nb::none();
        if (priors.size() % family.n_prior != 0) throw std::invalid_argument("priors of the wrong size");
        const std::size_t n_priors = priors.size() / family.n_prior, n_splits = log_split.shape(0);
        std::size_t n_values = 1;
        if constexpr (HeldOut<Family>::writes_classes) n_values = static_cast<std::size_t>(family.n_classes);
        const auto n_scored = static_cast<std::size_t>(in.held.n_scored());
        std::vector<double> out(n_priors * n_splits * n_scored * n_values);
        without_gil(true, [&] {
            for (std::size_t p = 0; p < n_priors; ++p)
                HeldOut<Family>(family, tree.view, statistics.data(), priors.data() + p * family.n_prior)
                    .predict(in.held, in.splits, out.data() + p * n_splits * n_scored * n_values);
        });
        return nb::cast(to_numpy(std::move(out), {n_priors, n_splits, n_scored, n_values}));
    });
}

// The mixtures behind those predictions, for one prior: where each row's nodes start, their log weights and posterior
// parameters.
inline nb::object held_out_components(const std::string& name, int size, const Tree& tree, Input<double> statistics,
                                      Input<double> prior, Input<double> log_split, Input<double> log_stop,
                                      Input<std::int32_t> ends, Input<std::uint8_t> counted, nb::handle y,
                                      nb::handle weight, nb::handle extra, double constant, Input<std::uint8_t> scored,
                                      Input<std::int64_t> group_start) {
    return with_family(name, size, [&](const auto& family) -> nb::object {
        using Family = std::decay_t<decltype(family)>;
        HeldOutInput<Family> in;
        if (!in.open(family, tree, statistics, log_split, log_stop, ends, counted, y, weight, extra, constant, scored,
                     group_start))
            return nb::none();
        if (static_cast<int>(prior.size()) != family.n_prior || log_split.shape(0) != 1)
            throw std::invalid_argument("one prior at a time");
        std::vector<std::int64_t> start;
        std::vector<double> log_weights, parameters;
        without_gil(true, [&] {
            HeldOut<Family>(family, tree.view, statistics.data(), prior.data())
                .components(in.held, in.splits[0], start, log_weights, parameters);
        });
        return nb::make_tuple(to_numpy(std::move(start)), to_numpy(std::move(log_weights)),
                              to_numpy(std::move(parameters)));
    });
}

}  // namespace everytree
