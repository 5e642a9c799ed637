// Rows that come as dicts: names become columns, values become doubles.
#include <cmath>
#include <limits>
#include <string>

#include "bind/common.hpp"
#include "bind/modules.hpp"
#include "online/nodes.hpp"
#include "online/split.hpp"
#include "online/values.hpp"

namespace everytree::bind {

using namespace online;
namespace {

struct FeatureValue {
    double value;  // NaN: missing
    bool nominal;
};

// Reads numbers and texts directly; anything else is first converted by Python. Returns what is wrong, or null.
const char* read_value(nb::handle object, nb::handle simplify, FeatureValue& out, bool simplified = false) {
    out = {std::numeric_limits<double>::quiet_NaN(), false};
    if (object.is_none()) return nullptr;
    if (PyUnicode_Check(object.ptr())) {
        Py_ssize_t size = 0;
        const char* text = PyUnicode_AsUTF8AndSize(object.ptr(), &size);
        if (text == nullptr) {
            PyErr_Clear();
            return "must be a text that UTF-8 can write";
        }
        out = {category_code({text, static_cast<std::size_t>(size)}), true};
        return nullptr;
    }
    if (PyFloat_Check(object.ptr())) {
        out.value = PyFloat_AS_DOUBLE(object.ptr());
    } else if (PyLong_Check(object.ptr())) {
        out.value = PyLong_AsDouble(object.ptr());
        if (PyErr_Occurred()) {
            PyErr_Clear();
            out.value = std::numeric_limits<double>::infinity();
        }
    } else {
        return simplified ? "must be a number, a text, a date or None"
                          : read_value(simplify(object), simplify, out, true);
    }
    return std::fabs(out.value) > largest_feature ? "must be a number of at most 1e150 in size" : nullptr;
}

// The column of a feature, or null. Owned where Python can do so: without the GIL another thread may take it away.
nb::object column_of(const nb::dict& index, const nb::object& key) {
    PyObject* column = nullptr;
#if PY_VERSION_HEX >= 0x030d0000
    const bool failed = PyDict_GetItemRef(index.ptr(), key.ptr(), &column) < 0;
#else
    column = PyDict_GetItemWithError(index.ptr(), key.ptr());
    Py_XINCREF(column);
    const bool failed = PyErr_Occurred() != nullptr;
#endif
    if (failed) nb::raise_python_error();
    return nb::steal(column);
}

std::string complaint(nb::handle key, std::int64_t row, std::int64_t n_rows, const char* wrong, nb::handle object) {
    const auto shown = [](nb::handle what) { return std::string(nb::repr(what).c_str()); };
    return (n_rows > 1 ? "row " + std::to_string(row) + ", " : std::string()) + "feature " + shown(key) + " " + wrong +
           ", but is " + shown(object);
}

// (n_rows, n_features) values, NaN where a row has none, and the features of the rows that are not in `index`, as
// (name, is nominal) in order of appearance.
nb::object encode_dicts(nb::list rows, nb::dict index, Input<std::uint8_t> kinds, nb::callable simplify) {
    const std::size_t n_features = kinds.size();
    std::vector<double> values(nb::len(rows) * n_features, std::numeric_limits<double>::quiet_NaN());
    nb::dict strangers;
    const auto n_rows = static_cast<std::int64_t>(nb::len(rows));
    for (std::int64_t i = 0; i < n_rows; ++i) {
        const nb::dict row = nb::cast<nb::dict>(rows[i]);
        for (const auto [borrowed_key, borrowed_object] : row) {  // owned: `simplify` may run any code
            const nb::object key = nb::borrow(borrowed_key), object = nb::borrow(borrowed_object);
            FeatureValue read;
            if (const char* wrong = read_value(object, simplify, read))
                throw nb::value_error(complaint(key, i, n_rows, wrong, object).c_str());
            if (std::isnan(read.value)) continue;
            const nb::object column = column_of(index, key);
            if (!column.is_valid()) {
                if (!strangers.contains(key)) strangers[key] = read.nominal;
                continue;
            }
            const auto f = nb::cast<std::size_t>(column);
            if (f >= n_features) throw nb::index_error("a column beyond the kinds of columns");
            if (((kinds.data()[f] & is_nominal) != 0) != read.nominal)
                throw nb::type_error(complaint(key, i, n_rows,
                                               read.nominal ? "has been a number so far" : "has been a text so far",
                                               object)
                                         .c_str());
            values[static_cast<std::size_t>(i) * n_features + f] = read.value;
        }
    }
    return nb::make_tuple(to_numpy(std::move(values), {static_cast<std::size_t>(n_rows), n_features}),
                          nb::list(strangers.items()));
}

// (n_texts,) the position of each text as a category in one tree of a forest.
nb::object category_positions(const std::vector<std::string>& texts, std::uint64_t seed, std::int64_t tree) {
    std::vector<double> positions;
    for (const std::string& text : texts)
        positions.push_back(place_of_category(category_code(text), seed_of_tree(seed, tree)));
    return nb::cast(to_numpy(std::move(positions)));
}

}  // namespace

void bind_row_dicts(nb::module_& module) {
    module.def("category_positions", &category_positions, "texts"_a, "seed"_a, "tree"_a);
    module.def("encode_dicts", &encode_dicts, "rows"_a, "index"_a, "kinds"_a, "simplify"_a);
    module.attr("LARGEST_FEATURE") = largest_feature;
}

}  // namespace everytree::bind
