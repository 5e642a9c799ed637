// What is learnt of a long table before its schema is known.
#pragma once
#include "bind/common.hpp"
#include "columns/scan.hpp"

namespace everytree {

// Distinct numbers of `known` and the column together (None where `known` is None, or there are more than `most`),
// whether some are missing, and the row of an infinite one or -1.
inline nb::object scan_numbers(nb::handle numbers, std::optional<Input<double>> known, std::size_t most) {
    Buffer buffer;
    const auto scalar = buffer.open(numbers) && buffer.ndim() == 1 ? buffer.scalar() : std::optional<Scalar>();
    if (!scalar) throw std::invalid_argument("numbers must be one number a row");
    const Column column{buffer.data(), buffer.stride(0), *scalar, 0.0};
    std::optional<FewNumbers> distinct;
    if (known && known->size() <= most) distinct.emplace(most);
    for (std::size_t i = 0; distinct && i < known->size(); ++i) distinct->add(known->data()[i]);
    const NumberScan found = without_gil(buffer.shape(0) > rows_worth_releasing, [&] {
        return scan_column(column, buffer.shape(0), distinct ? &*distinct : nullptr);
    });
    nb::object values = found.few ? nb::cast(to_numpy(distinct->take())) : nb::none();
    return nb::make_tuple(values, found.has_missing, found.infinite_row);
}

// Places and keys of the rows that a sample keeps.
inline nb::object draw_rows(std::uint64_t seed, std::uint64_t first_row, std::int64_t n_rows, std::uint64_t bound) {
    SampledRows sampled = without_gil(true, [&] { return sampled_rows(seed, first_row, n_rows, bound); });
    return nb::make_tuple(to_numpy(std::move(sampled.rows)), to_numpy(std::move(sampled.keys)));
}

}  // namespace everytree
