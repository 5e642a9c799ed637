// Survival curves of many rows.
#include "bind/common.hpp"
#include "bind/modules.hpp"
#include "core/parallel.hpp"
#include "distributions/survival_curves.hpp"

namespace everytree::bind {
namespace {

constexpr std::size_t rows_a_chunk = 64;

// (n_rows, n_cells * per_cell): row i has the mixture of the nodes start[i] .. start[i + 1].
Output<double> survival_curves(int size, int per_cell, Input<double> parameters, Input<std::int64_t> start,
                               Input<std::int64_t> nodes, Input<double> log_weights, Input<double> log_hazard,
                               int n_jobs) {
    if (per_cell < 1) throw std::invalid_argument("per_cell must be positive");
    const Survival family(size);
    const std::size_t n_rows = log_hazard.size(), width = static_cast<std::size_t>(family.n_parameters),
                      n_points = static_cast<std::size_t>(size * per_cell);
    if (start.size() != n_rows + 1 || nodes.size() != log_weights.size() || parameters.size() % width != 0)
        throw std::invalid_argument("arrays of the wrong size");
    for (std::size_t i = 0; i < n_rows; ++i)
        if (start.data()[i] < 0 || start.data()[i] > start.data()[i + 1])
            throw std::invalid_argument("start must rise");
    if (start.data()[n_rows] > static_cast<std::int64_t>(nodes.size()))
        throw std::invalid_argument("start: no such entry");
    for (std::size_t i = 0; i < nodes.size(); ++i)
        if (nodes.data()[i] < 0 || nodes.data()[i] >= static_cast<std::int64_t>(parameters.size() / width))
            throw std::invalid_argument("nodes: no such node");
    std::vector<double> out(n_rows * n_points, 0.0);
    const auto n_chunks = static_cast<std::int64_t>((n_rows + rows_a_chunk - 1) / rows_a_chunk);
    without_gil(true, [&] {
        in_chunks(n_chunks, n_jobs, [&](std::int64_t chunk, int) {
            distributions::SurvivalCurves curves(family, per_cell);
            const std::size_t begin = static_cast<std::size_t>(chunk) * rows_a_chunk;
            for (std::size_t i = begin; i < std::min(begin + rows_a_chunk, n_rows); ++i) {
                const double hazard = std::exp(log_hazard.data()[i]);
                for (std::int64_t e = start.data()[i]; e < start.data()[i + 1]; ++e)
                    curves.add(parameters.data() + static_cast<std::size_t>(nodes.data()[e]) * width, hazard,
                               std::exp(log_weights.data()[e]), out.data() + i * n_points);
            }
        });
    });
    return to_numpy(std::move(out), {n_rows, n_points});
}

}  // namespace

void bind_survival(nb::module_& module) {
    module.def("survival_curves", &survival_curves, nb::kw_only(), "size"_a, "per_cell"_a, "parameters"_a, "start"_a,
               "nodes"_a, "log_weights"_a, "log_hazard"_a, "n_jobs"_a);
}

}  // namespace everytree::bind
