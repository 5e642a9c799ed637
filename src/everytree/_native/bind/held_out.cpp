// Comparison of priors on rows left out.
#include "core/held_out.hpp"

#include "bind/buffers.hpp"
#include "bind/modules.hpp"
#include "bind/tree.hpp"
#include "core/with_family.hpp"

namespace everytree {
namespace {

// The start of each row's nodes, their log weights and posterior parameters.
using Components = std::tuple<Output<std::int64_t>, Output<double>, Output<double>>;

// One tree and the rows it predicts, checked.
template <class Family>
class HeldOutInput {
  public:
    // False if the columns cannot be read in place.
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

// Predictions of one tree for its scored rows, each without the row's group, for each prior of the leaves and each of
// the splits: (n leaf priors, n split priors, n scored rows, n_values).
std::optional<Output<double>> predict_held_out(const std::string& name, int size, const Tree& tree,
                                               Input<double> statistics, Input<double> priors, Input<double> log_split,
                                               Input<double> log_stop, Input<std::int32_t> ends,
                                               Input<std::uint8_t> counted, nb::handle y, nb::handle weight,
                                               nb::handle extra, double constant, Input<std::uint8_t> scored,
                                               Input<std::int64_t> group_start) {
    return with_family(name, size, [&](const auto& family) -> std::optional<Output<double>> {
        using Family = std::decay_t<decltype(family)>;
        HeldOutInput<Family> in;
        if (!in.open(family, tree, statistics, log_split, log_stop, ends, counted, y, weight, extra, constant, scored,
                     group_start))
            return std::nullopt;
        if (priors.size() % family.n_prior != 0) throw std::invalid_argument("priors of the wrong size");
        const std::size_t n_priors = priors.size() / family.n_prior, n_splits = log_split.shape(0);
        const auto n_values = static_cast<std::size_t>(HeldOut<Family>::n_values(family));
        const auto n_scored = static_cast<std::size_t>(in.held.n_scored());
        std::vector<double> out(n_priors * n_splits * n_scored * n_values);
        without_gil(true, [&] {
            const HeldOutPaths paths(tree.view, in.held, HeldOut<Family>::n_classes(family));
            HeldOut<Family> held_out(family, tree.view, statistics.data());
            for (std::size_t p = 0; p < n_priors; ++p) {
                held_out.use(priors.data() + p * family.n_prior);
                held_out.predict(in.held, paths, in.splits, out.data() + p * n_splits * n_scored * n_values);
            }
        });
        return to_numpy(std::move(out), {n_priors, n_splits, n_scored, n_values});
    });
}

// The mixtures behind those predictions, for one prior: the start of each row's nodes, their log weights and posterior
// parameters.
std::optional<Components> held_out_components(const std::string& name, int size, const Tree& tree,
                                              Input<double> statistics, Input<double> prior, Input<double> log_split,
                                              Input<double> log_stop, Input<std::int32_t> ends,
                                              Input<std::uint8_t> counted, nb::handle y, nb::handle weight,
                                              nb::handle extra, double constant, Input<std::uint8_t> scored,
                                              Input<std::int64_t> group_start) {
    return with_family(name, size, [&](const auto& family) -> std::optional<Components> {
        using Family = std::decay_t<decltype(family)>;
        HeldOutInput<Family> in;
        if (!in.open(family, tree, statistics, log_split, log_stop, ends, counted, y, weight, extra, constant, scored,
                     group_start))
            return std::nullopt;
        if (static_cast<int>(prior.size()) != family.n_prior || log_split.shape(0) != 1)
            throw std::invalid_argument("one prior at a time");
        std::vector<std::int64_t> start;
        std::vector<double> log_weights, parameters;
        without_gil(true, [&] {
            const HeldOutPaths paths(tree.view, in.held, 0);
            HeldOut<Family> held_out(family, tree.view, statistics.data());
            held_out.use(prior.data());
            held_out.components(in.held, paths, in.splits, start, log_weights, parameters);
        });
        return Components(to_numpy(std::move(start)), to_numpy(std::move(log_weights)),
                          to_numpy(std::move(parameters)));
    });
}

}  // namespace

void bind_held_out(nb::module_& module) {
    module.def("predict_held_out", &predict_held_out, nb::kw_only(), "name"_a, "size"_a, "tree"_a, "statistics"_a,
               "priors"_a, "log_split"_a, "log_stop"_a, "ends"_a, "counted"_a, "y"_a, "weight"_a.none(),
               "extra"_a.none(), "constant"_a, "scored"_a, "group_start"_a);
    module.def("held_out_components", &held_out_components, nb::kw_only(), "name"_a, "size"_a, "tree"_a, "statistics"_a,
               "prior"_a, "log_split"_a, "log_stop"_a, "ends"_a, "counted"_a, "y"_a, "weight"_a.none(),
               "extra"_a.none(), "constant"_a, "scored"_a, "group_start"_a);
}

}  // namespace everytree
