// Families by name, and their formulas over whole arrays.
#pragma once
#include "bind/common.hpp"
#include "core/linear.hpp"

namespace everytree {

// Calls `make(family)` with the family of that name.
template <class Make>
auto with_family(const std::string& name, int size, Make make) {
    if (name == "categorical") return make(Categorical(size));
    if (name == "poisson") return make(Poisson());
    if (name == "exponential") return make(Exponential());
    if (name == "geometric") return make(Geometric());
    if (name == "normal") return make(Normal());
    if (name == "linear") return make(LinearRegression(size));
    throw std::invalid_argument("no kernel for a family named " + name);
}

// Functions of several numbers, entry by entry over arrays of the same length.
template <class Function, class... Numbers>
nb::object over_entries(Function function, const Input<double>& first, const Numbers&... rest) {
    std::vector<double> values(first.size());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = function(first.data()[i], rest.data()[i]...);
    return nb::cast(to_numpy(std::move(values)));
}

// (n_rows, n_out) from row-wise function(in row, prior row, out row); one prior row for all where there is
// only one.
template <class Function>
nb::object map_rows(Input<double> in, std::size_t n_in, Input<double> prior, std::size_t n_prior, std::size_t n_out,
                    Function function) {
    const std::size_t n = n_in == 0 ? 0 : in.size() / n_in;
    const std::size_t stride = prior.size() == n_prior ? 0 : n_prior;
    std::vector<double> values(n * n_out);
    for (std::size_t i = 0; i < n; ++i)
        function(in.data() + i * n_in, prior.data() + i * stride, values.data() + i * n_out);
    return nb::cast(to_numpy(std::move(values), {n, n_out}));
}

inline nb::object prepare_prior(const std::string& name, int size, Input<double> hyper) {
    return with_family(name, size, [&](const auto& family) {
        return map_rows(hyper, family.n_hyper, hyper, family.n_hyper, family.n_prior,
                        [&](const double* in, const double*, double* out) { family.prepare(in, out); });
    });
}

inline nb::object posterior_parameters(const std::string& name, int size, Input<double> statistics,
                                       Input<double> prior) {
    return with_family(name, size, [&](const auto& family) {
        return map_rows(statistics, family.layout.size(), prior, family.n_prior, family.n_parameters,
                        [&](const double* in, const double* p, double* out) { family.posterior(in, p, out); });
    });
}

inline nb::object log_evidence(const std::string& name, int size, Input<double> statistics, Input<double> prior) {
    return with_family(name, size, [&](const auto& family) {
        return map_rows(statistics, family.layout.size(), prior, family.n_prior, 1,
                        [&](const double* in, const double* p, double* out) { *out = family.log_evidence(in, p); });
    });
}

// (n_rows, 3): the location of each row's predictive as a pair, and how much of its spread is due to the coefficients.
inline nb::object linear_predictions(int size, Input<double> parameters, Input<double> inputs) {
    const LinearRegression family(size);
    const std::size_t width = static_cast<std::size_t>(size), n = inputs.size() / width;
    if (inputs.size() != n * width || parameters.size() != n * static_cast<std::size_t>(family.n_parameters))
        throw std::invalid_argument("one row of parameters for each row of inputs");
    return map_rows(parameters, family.n_parameters, inputs, width, 3,
                    [&](const double* in, const double* x, double* out) { family.predict(in, x, out, out + 2); });
}

// (n_groups, n_statistics) from the statistics of rows and the group of each.
inline nb::object sum_statistics(const std::string& name, int size, Input<double> statistics, Input<std::int64_t> group,
                                 std::int64_t n_groups) {
    return with_family(name, size, [&](const auto& family) {
        const auto k = static_cast<std::size_t>(family.layout.size()), n = static_cast<std::size_t>(n_groups);
        if (statistics.size() != k * group.size()) throw std::invalid_argument("one group for each row of statistics");
        std::vector<double> sums(n * k, 0.0);
        for (std::size_t i = 0; i < group.size(); ++i) {
            const std::int64_t into = group.data()[i];
            if (into < 0 || into >= n_groups) throw std::invalid_argument("a group that there is not");
            family.layout.add(sums.data() + static_cast<std::size_t>(into) * k, statistics.data() + i * k);
        }
        return nb::cast(to_numpy(std::move(sums), {n, k}));
    });
}

// Each row's own contribution, (n_rows, n_statistics); None for columns that cannot be read as they are.
inline nb::object row_statistics(const std::string& name, int size, nb::handle y, nb::handle weight, nb::handle extra,
                                 double constant, std::int64_t n_rows) {
    return with_family(name, size, [&](const auto& family) -> nb::object {
        RowBuffers buffers;
        if (!buffers.open(y, weight, extra, family.n_extra, constant, n_rows)) return nb::none();
        const std::size_t k = family.layout.size();
        std::vector<double> values(static_cast<std::size_t>(n_rows) * k, 0.0);
        RowChunk chunk(family.n_extra);
        chunk.read(family, buffers.columns, 0, n_rows);
        for (std::int64_t i = 0; i < n_rows; ++i) family.add(values.data() + i * k, chunk.view()[i]);
        return nb::cast(to_numpy(std::move(values), {static_cast<std::size_t>(n_rows), k}));
    });
}

}  // namespace everytree
