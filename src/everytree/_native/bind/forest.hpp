// Many trees over the same table, as Python holds them.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "bind/buffers.hpp"
#include "bind/tree.hpp"
#include "core/counting.hpp"
#include "core/forest.hpp"

namespace everytree::bind {

class ForestHandle {
  public:
    ForestHandle(std::vector<nb::object> trees, Input<std::uint16_t> known)
        : trees_(std::move(trees)),
          shape_(views_of(trees_, static_cast<std::int64_t>(known.size())),
                 {known.data(), known.data() + known.size()}) {}

    const ForestShape& shape() const { return shape_; }

    // (n_rows, n_trees) nodes, or None for a table that cannot be read in place.
    std::optional<Output<std::int32_t>> ends(nb::handle X, int n_jobs) const;

    // (n_rows, n_values): the weighted sum over trees of the values of the node where a row ends.
    std::optional<Output<double>> average(nb::handle X, const std::vector<Input<double>>& values, Input<double> weights,
                                          int n_values, int n_jobs) const;

    // Adds rows to the statistics of each tree's terminals, (n_nodes, n_statistics), and to their numbers, (n_trees,).
    // False if the arguments cannot be read in place.
    bool count(nb::handle X, nb::handle y, nb::handle weight, nb::handle extra, const std::string& name, int size,
               double constant, const std::vector<State<double>>& statistics, State<std::int64_t> n_rows,
               int n_jobs) const;

    // Fills in the statistics of inner nodes from those of the terminals.
    void sum_up(const std::string& name, int size, const std::vector<State<double>>& statistics) const;

    // Adds statistics of other rows over the same trees, node by node.
    void add(const std::string& name, int size, const std::vector<State<double>>& statistics,
             State<std::int64_t> n_rows, const std::vector<Input<double>>& more, Input<std::int64_t> n_more) const;

  private:
    void check_sizes(const std::vector<State<double>>& statistics, int size) const;
    std::vector<TreeCounts> counts_of(const std::vector<State<double>>& statistics, State<std::int64_t> n_rows,
                                      int size) const;
    static std::vector<TreeView> views_of(const std::vector<nb::object>& trees, std::int64_t n_columns);

    std::vector<nb::object> trees_;  // keep the arrays behind the views alive
    ForestShape shape_;
};

}  // namespace everytree::bind
