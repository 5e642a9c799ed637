// The layout of a struct whose records NumPy keeps, as the dtype of such an array.
#pragma once
#include <nanobind/nanobind.h>

#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

namespace everytree::bind {

struct RecordField {
    const char* name;
    std::string format;
    std::size_t offset;
};

// As NumPy writes it: i4, u2, f8.
template <class T>
std::string number_format() {
    static_assert(std::is_arithmetic_v<T>);
    const char kind = std::is_floating_point_v<T> ? 'f' : std::is_signed_v<T> ? 'i' : 'u';
    return kind + std::to_string(sizeof(T));
}

#define EVERYTREE_FIELD(Struct, field)                                                             \
    everytree::bind::RecordField {                                                                 \
        #field, everytree::bind::number_format<decltype(Struct::field)>(), offsetof(Struct, field) \
    }

template <class Struct>
nanobind::object record_dtype(const std::vector<RecordField>& fields) {
    nanobind::list names, formats, offsets;
    for (const RecordField& field : fields) {
        names.append(field.name);
        formats.append(field.format);
        offsets.append(field.offset);
    }
    nanobind::dict layout;
    layout["names"] = names;
    layout["formats"] = formats;
    layout["offsets"] = offsets;
    layout["itemsize"] = sizeof(Struct);
    return nanobind::module_::import_("numpy").attr("dtype")(layout);
}

}  // namespace everytree::bind
