// Families by name, and their formulas over whole arrays.
#include "bind/buffers.hpp"
#include "bind/common.hpp"
#include "bind/modules.hpp"
#include "core/rows.hpp"
#include "core/taking_away.hpp"
#include "core/with_family.hpp"
#include "numerics/beta_negative_binomial.hpp"
#include "numerics/special.hpp"

namespace everytree::bind {
namespace {

using Numbers = Input<double>;

// Functions of several numbers, entry by entry over arrays of the same length.
template <class Function, class... Others>
Output<double> over_entries(Function function, const Numbers& first, const Others&... rest) {
    if (((rest.size() != first.size()) || ...)) throw std::invalid_argument("arrays of different sizes");
    std::vector<double> values(first.size());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = function(first.data()[i], rest.data()[i]...);
    return to_numpy(std::move(values));
}

// (n_rows, n_out) from row-wise function(in row, prior row, out row); one prior row for all where there is
// only one.
template <class Function>
Output<double> map_rows(Numbers in, std::size_t n_in, Numbers prior, std::size_t n_prior, std::size_t n_out,
                        Function function) {
    const std::size_t n = n_in == 0 ? 0 : in.size() / n_in;
    const std::size_t stride = prior.size() == n_prior ? 0 : n_prior;
    std::vector<double> values(n * n_out);
    for (std::size_t i = 0; i < n; ++i)
        function(in.data() + i * n_in, prior.data() + i * stride, values.data() + i * n_out);
    return to_numpy(std::move(values), {n, n_out});
}

Output<double> prepare_prior(const std::string& name, int size, Numbers hyper) {
    return with_family(name, size, [&](const auto& family) {
        return map_rows(hyper, family.n_hyper, hyper, family.n_hyper, family.n_prior,
                        [&](const double* in, const double*, double* out) { family.prepare(in, out); });
    });
}

Output<double> posterior_parameters(const std::string& name, int size, Numbers statistics, Numbers prior) {
    return with_family(name, size, [&](const auto& family) {
        return map_rows(statistics, family.layout.size(), prior, family.n_prior, family.n_parameters,
                        [&](const double* in, const double* p, double* out) { family.posterior(in, p, out); });
    });
}

Output<double> log_evidence(const std::string& name, int size, Numbers statistics, Numbers prior) {
    return with_family(name, size, [&](const auto& family) {
        return map_rows(statistics, family.layout.size(), prior, family.n_prior, 1,
                        [&](const double* in, const double* p, double* out) { *out = family.log_evidence(in, p); });
    });
}

// (n_rows, 3): the location of each row's predictive as a pair, and the share of its spread due to the coefficients.
Output<double> linear_predictions(int size, Numbers parameters, Numbers inputs) {
    const LinearRegression family(size);
    const std::size_t width = static_cast<std::size_t>(size), n = inputs.size() / width;
    if (inputs.size() != n * width || parameters.size() != n * static_cast<std::size_t>(family.n_parameters))
        throw std::invalid_argument("one row of parameters for each row of inputs");
    return map_rows(parameters, family.n_parameters, inputs, width, 3,
                    [&](const double* in, const double* x, double* out) { family.predict(in, x, out, out + 2); });
}

// (n_groups, n_statistics) from the statistics of rows and the group of each.
Output<double> sum_statistics(const std::string& name, int size, Numbers statistics, Input<std::int64_t> group,
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
        return to_numpy(std::move(sums), {n, k});
    });
}

// Statistics less others, row by row, and whether all of them had been there.
std::pair<Output<double>, bool> take_away(const std::string& name, int size, Numbers statistics, Numbers others) {
    return with_family(name, size, [&](const auto& family) {
        const auto k = static_cast<std::size_t>(family.layout.size());
        if (statistics.size() != others.size()) throw std::invalid_argument("arrays of different sizes");
        std::vector<double> left(statistics.data(), statistics.data() + statistics.size());
        bool was_there = true;
        for (std::size_t i = 0; i < left.size(); i += k)
            was_there &= everytree::take_away(family.layout, left.data() + i, others.data() + i);
        const std::size_t n = left.size() / k;
        return std::pair(to_numpy(std::move(left), {n, k}), was_there);
    });
}

// Each row's own contribution, (n_rows, n_statistics); None for columns that cannot be read in place.
std::optional<Output<double>> row_statistics(const std::string& name, int size, nb::handle y, nb::handle weight,
                                             nb::handle extra, double constant, std::int64_t n_rows) {
    return with_family(name, size, [&](const auto& family) -> std::optional<Output<double>> {
        RowBuffers buffers;
        if (!buffers.open(y, weight, extra, family.n_extra, constant, n_rows)) return std::nullopt;
        const std::size_t k = family.layout.size();
        std::vector<double> values(static_cast<std::size_t>(n_rows) * k, 0.0);
        RowChunk chunk(family.n_extra);
        chunk.read(family, buffers.columns, 0, n_rows);
        for (std::int64_t i = 0; i < n_rows; ++i) family.add(values.data() + i * k, chunk.view()[i]);
        return to_numpy(std::move(values), {static_cast<std::size_t>(n_rows), k});
    });
}

std::pair<int, int> family_shape(const std::string& name, int size) {
    return with_family(name, size, [](const auto& family) {
        return std::pair(static_cast<int>(family.layout.size()), static_cast<int>(family.n_hyper));
    });
}

double log_beta_ratio_of_two(double a, double b, double more_a, double more_b) {
    const double x[2] = {a, b}, n[2] = {more_a, more_b};
    double scratch[2];
    return numerics::log_beta_ratio(x, n, 2, numerics::log_beta(x, 2), scratch);
}

}  // namespace

void bind_families(nb::module_& module) {
    module.def(
        "log_rising", [](Numbers x, Numbers n) { return over_entries(numerics::log_rising, x, n); }, "x"_a, "n"_a);
    module.def(
        "log_beta_ratio",
        [](Numbers a, Numbers b, Numbers more_a, Numbers more_b) {
            return over_entries(log_beta_ratio_of_two, a, b, more_a, more_b);
        },
        "a"_a, "b"_a, "more_a"_a, "more_b"_a);
    module.def(
        "log_negative_binomial",
        [](Numbers k, Numbers shape, Numbers odds) {
            return over_entries(numerics::log_negative_binomial, k, shape, odds);
        },
        "k"_a, "shape"_a, "odds"_a);
    module.def(
        "log_beta_negative_binomial",
        [](Numbers k, Numbers r, Numbers a, Numbers b) {
            return over_entries(numerics::log_beta_negative_binomial, k, r, a, b);
        },
        "k"_a, "r"_a, "a"_a, "b"_a);
    module.def(
        "beta_negative_binomial_tail",
        [](Numbers k, Numbers r, Numbers a, Numbers b, bool is_above) {
            const auto tail = [is_above](double count, double shape, double alpha, double beta) {
                return numerics::beta_negative_binomial_tail(count, shape, alpha, beta, is_above);
            };
            return over_entries(tail, k, r, a, b);
        },
        "k"_a, "r"_a, "a"_a, "b"_a, "is_above"_a);
    module.def("family_shape", &family_shape, "name"_a, "size"_a);
    module.def("prepare_prior", &prepare_prior, "name"_a, "size"_a, "hyper"_a);
    module.def("posterior_parameters", &posterior_parameters, "name"_a, "size"_a, "statistics"_a, "prior"_a);
    module.def("log_evidence", &log_evidence, "name"_a, "size"_a, "statistics"_a, "prior"_a);
    module.def("linear_predictions", &linear_predictions, "size"_a, "parameters"_a, "inputs"_a);
    module.def("sum_statistics", &sum_statistics, "name"_a, "size"_a, nb::kw_only(), "statistics"_a, "group"_a,
               "n_groups"_a);
    module.def("take_away", &take_away, "name"_a, "size"_a, nb::kw_only(), "statistics"_a, "others"_a);
    module.def("row_statistics", &row_statistics, "name"_a, "size"_a, nb::kw_only(), "y"_a, "weight"_a.none(),
               "extra"_a.none(), "constant"_a, "n_rows"_a);
}

}  // namespace everytree::bind
