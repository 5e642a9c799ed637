// Columns of numbers: their codes, and a scan of them before their schema is known.
#include <deque>

#include "bind/buffers.hpp"
#include "bind/common.hpp"
#include "bind/modules.hpp"
#include "columns/bins.hpp"
#include "columns/encode.hpp"
#include "columns/scan.hpp"

namespace everytree::bind {

using namespace columns;
namespace {

// The cuts of a schema, and the codes of the number columns of a table.
class Encoder {
  public:
    // All cuts one after another, the start of each column's cuts and the end of the last, and whether a column's
    // numbers are rounded to float32 first; for each column the code for every number of cuts below, -1 for missing, or
    // nothing.
    Encoder(Input<double> cuts, Input<std::int64_t> start, Input<std::uint8_t> single,
            const std::vector<Input<std::int32_t>>& groups) {
        const std::size_t n_columns = single.size();
        const std::int64_t* at = start.data();
        bool fits =
            start.size() == n_columns + 1 && at[0] == 0 && at[n_columns] == static_cast<std::int64_t>(cuts.size());
        for (std::size_t k = 0; fits && k < n_columns; ++k) fits = at[k] <= at[k + 1];
        if (!fits) throw std::invalid_argument("start does not part the cuts into columns");
        if (!groups.empty() && groups.size() != n_columns)
            throw std::invalid_argument("groups must have an entry for each column");
        trees_.reserve(n_columns);
        for (std::size_t k = 0; k < n_columns; ++k) {
            const auto n_cuts = static_cast<std::size_t>(at[k + 1] - at[k]);
            std::vector<std::uint16_t> codes;
            if (!groups.empty()) codes = group_codes(groups[k], n_cuts + 1);
            trees_.emplace_back(cuts.data() + at[k], n_cuts, single.data()[k] != 0, std::move(codes));
        }
    }

    // Writes the codes of the columns that are not None; returns (row, column) of an infinite number, or None.
    template <class Code>
    nb::object encode(nb::list columns, State<Code> out, int n_jobs) const {
        const std::size_t width = trees_.size();
        if (out.ndim() != 2 || out.shape(1) != width || columns.size() != width)
            throw std::invalid_argument("the table and the codes must have " + std::to_string(width) + " columns");
        const auto n_rows = static_cast<std::int64_t>(out.shape(0));
        std::deque<Buffer> buffers;
        std::vector<Column> numbers(width);
        for (std::size_t k = 0; k < width; ++k) {
            if (columns[k].is_none()) continue;
            if (trees_[k].largest_code() >= missing_code<Code>)
                throw std::invalid_argument("column " + std::to_string(k) + " has more codes than their type holds");
            Buffer& buffer = buffers.emplace_back();
            const auto scalar =
                buffer.open(columns[k]) && buffer.ndim() == 1 ? buffer.scalar() : std::optional<Scalar>();
            if (!scalar || buffer.shape(0) != n_rows)
                throw std::invalid_argument("column " + std::to_string(k) + " must be " + std::to_string(n_rows) +
                                            " numbers");
            numbers[k] = {buffer.data(), buffer.stride(0), *scalar, 0.0};
        }
        try {
            without_gil(n_rows > rows_worth_releasing,
                        [&] { encode_table<Code>(trees_, numbers, n_rows, out.data(), n_jobs); });
        } catch (const InfinitePlace& place) {
            return nb::make_tuple(place.row, place.column);
        }
        return nb::none();
    }

  private:
    static std::vector<std::uint16_t> group_codes(const Input<std::int32_t>& groups, std::size_t n_wanted) {
        std::vector<std::uint16_t> codes;
        for (std::size_t i = 0; i < groups.size(); ++i) {
            const std::int32_t group = groups.data()[i];
            if (groups.size() != n_wanted || group < -1 || group > largest_code)
                throw std::invalid_argument("groups must have a code, or -1, for each number of cuts below");
            codes.push_back(group < 0 ? missing_code<std::uint16_t> : static_cast<std::uint16_t>(group));
        }
        return codes;
    }

    static constexpr std::int32_t largest_code = 65534;
    std::vector<CutTree> trees_;
};

// Distinct numbers of `known` and the column together (None where `known` is None, or there are more than `most`),
// whether some are missing, and the row of an infinite one or -1.
nb::object scan_numbers(nb::handle numbers, std::optional<Input<double>> known, std::size_t most) {
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

// Indices and keys of the rows that a sample keeps.
nb::object draw_rows(std::uint64_t seed, std::uint64_t first_row, std::int64_t n_rows, std::uint64_t bound) {
    SampledRows sampled = without_gil(true, [&] { return sampled_rows(seed, first_row, n_rows, bound); });
    return nb::make_tuple(to_numpy(std::move(sampled.rows)), to_numpy(std::move(sampled.keys)));
}

// Last value of each bin but the final one.
Output<std::int64_t> last_values(Input<double> mass, std::int64_t n_bins) {
    if (n_bins < 1 || n_bins > static_cast<std::int64_t>(mass.size()))
        throw std::invalid_argument("n_bins must be from 1 to the number of values");
    return to_numpy(last_of_bins(to_span(mass), n_bins));
}

}  // namespace

void bind_columns(nb::module_& module) {
    module.def("scan_numbers", &scan_numbers, "numbers"_a, "known"_a.none(), "most"_a);
    module.def("draw_rows", &draw_rows, "seed"_a, "first_row"_a, "n_rows"_a, "bound"_a);
    module.def("last_of_bins", &last_values, "mass"_a, "n_bins"_a);
    nb::class_<Encoder>(module, "Encoder")
        .def(nb::init<Input<double>, Input<std::int64_t>, Input<std::uint8_t>,
                      const std::vector<Input<std::int32_t>>&>(),
             "cuts"_a, "start"_a, "single"_a, "groups"_a = std::vector<Input<std::int32_t>>())
        .def("encode", &Encoder::encode<std::uint8_t>, "columns"_a, "out"_a.noconvert(), "n_jobs"_a)
        .def("encode", &Encoder::encode<std::uint16_t>, "columns"_a, "out"_a.noconvert(), "n_jobs"_a);
}

}  // namespace everytree::bind
