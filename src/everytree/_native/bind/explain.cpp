// Contributions of columns to sums of trees.
#include <memory>
#include <optional>
#include <stdexcept>

#include "bind/buffers.hpp"
#include "bind/common.hpp"
#include "bind/modules.hpp"
#include "bind/tree.hpp"
#include "explain/tree_sum.hpp"

namespace everytree::bind {

using namespace explain;
namespace {

void check_tree(const Tree& tree, std::size_t n_columns, const Input<double>& mass, const Input<double>& values,
                std::int32_t first, int n_outputs) {
    const auto n_nodes = static_cast<std::size_t>(tree.view.n_nodes);
    if (mass.size() != n_nodes) throw std::invalid_argument("mass must have one entry a node");
    if (values.ndim() != 2 || values.shape(0) != n_nodes)
        throw std::invalid_argument("values must have one row a node");
    if (first < 0 || values.shape(1) + static_cast<std::size_t>(first) > static_cast<std::size_t>(n_outputs))
        throw std::invalid_argument("values must belong to outputs");
    if (static_cast<std::size_t>(tree.width.n_features) > n_columns)
        throw std::invalid_argument("trees must read no more columns than there are");
}

// A sum of trees, and what keeps their arrays alive.
struct HeldTreeSum {
    std::vector<nb::object> trees;
    std::vector<Input<double>> mass, values;
    TreeSum sum;
};

std::unique_ptr<HeldTreeSum> tree_sum(std::vector<nb::object> trees, std::vector<Input<double>> mass,
                                      std::vector<Input<double>> values, Input<double> weights,
                                      Input<std::int32_t> first_output, Input<std::int32_t> player,
                                      Input<std::uint16_t> known, int n_players, int n_outputs) {
    const std::size_t n = trees.size();
    if (mass.size() != n || values.size() != n || weights.size() != n || first_output.size() != n)
        throw std::invalid_argument("there must be as many arrays as trees");
    if (player.size() != known.size()) throw std::invalid_argument("player must have one entry a column");
    for (const std::int32_t each : to_span(player))
        if (each < 0 || each >= n_players) throw std::invalid_argument("no such player");
    std::vector<GameArrays> games;
    for (std::size_t i = 0; i < n; ++i) {
        const Tree& tree = nb::cast<const Tree&>(trees[i]);
        const std::int32_t first = first_output.data()[i];
        check_tree(tree, known.size(), mass[i], values[i], first, n_outputs);
        games.push_back({tree.view, mass[i].data(), values[i].data(), static_cast<int>(values[i].shape(1)), first,
                         weights.data()[i]});
    }
    TreeSum sum(std::move(games), std::vector<std::int32_t>(player.data(), player.data() + player.size()),
                std::vector<std::uint16_t>(known.data(), known.data() + known.size()), n_players, n_outputs);
    return std::make_unique<HeldTreeSum>(
        HeldTreeSum{std::move(trees), std::move(mass), std::move(values), std::move(sum)});
}

// (n_rows, n_players, n_outputs), or None for a table that cannot be read in place.
std::optional<Output<double>> explain_rows(const HeldTreeSum& held, nb::handle X, int n_jobs) {
    const TreeSum& self = held.sum;
    CodeBuffer buffer;
    if (!buffer.open(X, {self.n_columns(), true})) return std::nullopt;
    const auto n_rows = static_cast<std::size_t>(buffer.n_rows());
    std::vector<double> out(n_rows * self.n_players() * self.n_outputs(), 0.0);
    without_gil(true, [&] {
        if (buffer.is_narrow())
            self.explain<std::uint8_t>(buffer.table(), n_jobs, out.data());
        else
            self.explain<std::uint16_t>(buffer.table(), n_jobs, out.data());
    });
    return to_numpy(std::move(out), {n_rows, self.n_players(), self.n_outputs()});
}

}  // namespace

void bind_explain(nb::module_& module) {
    nb::class_<HeldTreeSum>(module, "TreeSum")
        .def("explain", &explain_rows, "X"_a.none(), "n_jobs"_a)
        .def("base", [](const HeldTreeSum& self) { return to_numpy(self.sum.base()); });
    module.def("tree_sum", &tree_sum, nb::kw_only(), "trees"_a, "mass"_a, "values"_a, "weights"_a, "first_output"_a,
               "player"_a, "known"_a, "n_players"_a, "n_outputs"_a);
}

}  // namespace everytree::bind
