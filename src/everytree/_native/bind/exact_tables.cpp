// Predictions of an exact sum by lookup.
#include <limits>
#include <optional>

#include "bind/common.hpp"
#include "bind/modules.hpp"
#include "exact/tables.hpp"

namespace everytree::bind {

using namespace exact;
namespace {

// AnswerTables in the form Python keeps.
using AnswerArrays = std::tuple<Output<std::int64_t>, Output<std::int32_t>, Output<std::int64_t>, Output<std::int32_t>,
                                Output<std::int64_t>, Output<double>>;

// Leaves in the form Python keeps.
struct LeafArrays {
    Input<double> weight;
    Input<std::int64_t> start;
    Input<std::int32_t> column;
    Input<std::uint64_t> codes;

    LeafView view(const std::vector<int>& n_codes, const std::vector<ColumnKind>& kinds) const {
        const auto n = static_cast<std::int64_t>(weight.size());
        if (start.size() != weight.size() + 1 || column.size() != codes.size())
            throw std::invalid_argument("leaves of the wrong size");
        const LeafView leaves{n, weight.data(), start.data(), column.data(), codes.data()};
        leaves.check(static_cast<std::int64_t>(column.size()), {n_codes, kinds});
        return leaves;
    }
};

// Tables of weight times value, or None where they would have more than `most` numbers or take more than `most_steps`
// additions of rows of values.
std::optional<AnswerArrays> tabulate(Input<double> weight, Input<std::int64_t> start, Input<std::int32_t> column,
                                     Input<std::uint64_t> codes, Input<double> values, const std::vector<int>& n_codes,
                                     const std::vector<int>& kinds, bool with_unknown, std::int64_t most,
                                     double most_steps, int n_jobs) {
    const std::vector<ColumnKind> kind_of = kinds_of(kinds, n_codes);
    const LeafView leaves = LeafArrays{weight, start, column, codes}.view(n_codes, kind_of);
    if (values.ndim() != 2 || values.shape(0) != weight.size()) throw std::invalid_argument("one row of values a leaf");
    std::optional<AnswerTables> tables;
    without_gil(true, [&] {
        const Watch watch(check_signals);
        TableBuilder builder(leaves, {n_codes, kind_of}, with_unknown, watch);
        if (builder.n_cells() <= most / static_cast<std::int64_t>(values.shape(1)) &&
            (most_steps == std::numeric_limits<double>::infinity() || builder.n_steps() <= most_steps))
            tables = builder.fill(values.data(), values.shape(1), n_jobs);
    });
    if (!tables) return std::nullopt;
    return AnswerArrays(to_numpy(std::move(tables->set_start)), to_numpy(std::move(tables->column)),
                        to_numpy(std::move(tables->map_start)), to_numpy(std::move(tables->place)),
                        to_numpy(std::move(tables->first_cell)), to_numpy(std::move(tables->cells)));
}

auto find_leaves(Input<double> weight, Input<std::int64_t> start, Input<std::int32_t> column,
                 Input<std::uint64_t> codes, Input<std::uint16_t> rows, const std::vector<int>& n_codes,
                 const std::vector<int>& kinds) {
    const std::vector<ColumnKind> kind_of = kinds_of(kinds, n_codes);
    const LeafView leaves = LeafArrays{weight, start, column, codes}.view(n_codes, kind_of);
    if (rows.ndim() != 2 || rows.shape(1) != n_codes.size()) throw std::invalid_argument("codes of the wrong width");
    LeavesOfRows found = without_gil(true, [&] {
        return leaves_of_rows(leaves, {n_codes, kind_of}, rows.data(), rows.shape(0), Watch(check_signals));
    });
    return std::tuple(to_numpy(std::move(found.start)), to_numpy(std::move(found.leaves)));
}

// Predictions by lookup, from arrays that Python keeps.
class TablesHandle {
  public:
    TablesHandle(Input<std::int64_t> set_start, Input<std::int32_t> column, Input<std::int64_t> map_start,
                 Input<std::int32_t> place, Input<std::int64_t> first_cell, Input<double> cells, std::int64_t width,
                 Input<std::int32_t> n_codes)
        : set_start_(set_start),
          column_(column),
          map_start_(map_start),
          place_(place),
          first_cell_(first_cell),
          cells_(cells),
          n_codes_(n_codes) {
        if (set_start.size() == 0 || first_cell.size() != set_start.size() || map_start.size() != column.size() + 1 ||
            width < 1)
            throw std::invalid_argument("arrays of the wrong size");
        view_ = {static_cast<std::int64_t>(set_start.size()) - 1,
                 width,
                 set_start_.data(),
                 column_.data(),
                 map_start_.data(),
                 place_.data(),
                 first_cell_.data(),
                 cells_.data(),
                 static_cast<std::int64_t>(n_codes.size()),
                 n_codes_.data()};
        if (cells.size() % static_cast<std::size_t>(width) != 0) throw std::invalid_argument("cells of the wrong size");
        view_.check(static_cast<std::int64_t>(column.size()), static_cast<std::int64_t>(map_start.size()) - 1,
                    static_cast<std::int64_t>(place.size()), static_cast<std::int64_t>(cells.size()) / width);
        n_shared_ = view_.shared();
    }

    // (n_rows, width) sum of the cells of each row.
    Output<double> look_up(Input<std::uint16_t> codes, int n_jobs) const {
        if (codes.ndim() != 2 || codes.shape(1) != n_codes_.size())
            throw std::invalid_argument("codes of the wrong width");
        const std::size_t n_rows = codes.shape(0), width = static_cast<std::size_t>(view_.width);
        std::vector<double> out(n_rows * width, 0.0);
        without_gil(true, [&] { view_.look_up_all(codes.data(), n_rows, n_shared_, n_jobs, out.data()); });
        return to_numpy(std::move(out), {n_rows, width});
    }

  private:
    Input<std::int64_t> set_start_;
    Input<std::int32_t> column_;
    Input<std::int64_t> map_start_;
    Input<std::int32_t> place_;
    Input<std::int64_t> first_cell_;
    Input<double> cells_;
    Input<std::int32_t> n_codes_;
    TablesView view_{};
    std::vector<std::int32_t> n_shared_;
};

}  // namespace

void bind_exact_tables(nb::module_& module) {
    module.def("tabulate", &tabulate, nb::kw_only(), "weight"_a, "start"_a, "column"_a, "codes"_a, "values"_a,
               "n_codes"_a, "kinds"_a, "with_unknown"_a, "most"_a, "most_steps"_a, "n_jobs"_a);
    module.def("leaves_of_rows", &find_leaves, nb::kw_only(), "weight"_a, "start"_a, "column"_a, "codes"_a, "rows"_a,
               "n_codes"_a, "kinds"_a);
    nb::class_<TablesHandle>(module, "Tables")
        .def(nb::init<Input<std::int64_t>, Input<std::int32_t>, Input<std::int64_t>, Input<std::int32_t>,
                      Input<std::int64_t>, Input<double>, std::int64_t, Input<std::int32_t>>(),
             nb::kw_only(), "set_start"_a, "column"_a, "map_start"_a, "place"_a, "first_cell"_a, "cells"_a, "width"_a,
             "n_codes"_a)
        .def("look_up", &TablesHandle::look_up, "codes"_a, "n_jobs"_a);
}

}  // namespace everytree::bind
