// Conversions of arrays that all bindings use.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <initializer_list>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

namespace everytree::bind {

namespace nb = nanobind;
using nb::literals::operator""_a;

template <class T>
using Input = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;
template <class T>
using State = nb::ndarray<T, nb::c_contig, nb::device::cpu>;
template <class T>
using Output = nb::ndarray<nb::numpy, T>;

template <class T>
std::span<const T> to_span(const Input<T>& array) {
    return {array.data(), array.size()};
}

// An array that NumPy owns from now on, of one dimension unless a shape is given.
template <class T>
Output<T> to_numpy(std::vector<T>&& values, std::initializer_list<std::size_t> shape) {
    auto* kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return Output<T>(kept->data(), shape, owner);
}
template <class T>
Output<T> to_numpy(std::vector<T>&& values) {
    const std::size_t size = values.size();
    return to_numpy(std::move(values), {size});
}

// Checks the columns that trees may split on.
inline void check_columns(std::span<const std::int32_t> columns, int n_columns) {
    if (columns.empty()) throw std::invalid_argument("columns must name at least one column");
    for (const std::int32_t column : columns)
        if (column < 0 || column >= n_columns) throw std::invalid_argument("columns must be numbers of columns");
}

// Minimum amount of work for which the GIL is released: below this the release costs more than it gains.
inline constexpr std::int64_t rows_worth_releasing = 512;

// Checks for an interrupt by the user; for threads that run without the GIL.
inline void check_signals() {
    nb::gil_scoped_acquire held;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

template <class Work>
auto without_gil(bool worth_it, Work work) {
    if (!worth_it) return work();
    nb::gil_scoped_release released;
    return work();
}

}  // namespace everytree::bind
