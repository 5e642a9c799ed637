// Reads Python's arrays through the buffer protocol: no copies, no conversions, a fraction of a microsecond.
//
// Everything here returns false for what it cannot read in place (lists, data frames, object arrays, floats
// instead of codes); Python then converts the argument and calls again.
#pragma once
#include <nanobind/nanobind.h>

#include <optional>
#include <stdexcept>
#include <string>

#include "core/codes.hpp"
#include "core/rows.hpp"

namespace everytree::bind {

class Buffer {
  public:
    Buffer() = default;
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() {
        if (open_) PyBuffer_Release(&view_);
    }
    bool open(nanobind::handle object) {
        if (!PyObject_CheckBuffer(object.ptr())) return false;
        open_ = PyObject_GetBuffer(object.ptr(), &view_, PyBUF_STRIDES | PyBUF_FORMAT) == 0;
        if (!open_) PyErr_Clear();
        return open_;
    }
    int ndim() const { return view_.ndim; }
    std::int64_t shape(int axis) const { return view_.shape[axis]; }
    std::ptrdiff_t stride(int axis) const { return view_.strides[axis]; }
    const char* data() const { return static_cast<const char*>(view_.buf); }

    std::optional<Scalar> scalar() const {
        const char* format = view_.format ? view_.format : "B";
        if (*format == '@' || *format == '=') ++format;
        if (format[0] == '\0' || format[1] != '\0') return std::nullopt;
        const auto pick = [this](Scalar one, Scalar two, Scalar four, Scalar eight) -> std::optional<Scalar> {
            switch (view_.itemsize) {
                case 1:
                    return one;
                case 2:
                    return two;
                case 4:
                    return four;
                case 8:
                    return eight;
                default:
                    return std::nullopt;
            }
        };
        switch (*format) {
            case '?':
            case 'B':
            case 'H':
            case 'I':
            case 'L':
            case 'Q':
                return pick(Scalar::uint8, Scalar::uint16, Scalar::uint32, Scalar::uint64);
            case 'b':
            case 'h':
            case 'i':
            case 'l':
            case 'q':
                return pick(Scalar::int8, Scalar::int16, Scalar::int32, Scalar::int64);
            case 'f':
                return Scalar::float32;
            case 'd':
                return Scalar::float64;
            default:
                return std::nullopt;
        }
    }

  private:
    Py_buffer view_{};
    bool open_ = false;
};

// The width of a code table: exactly `n_features`, or at least that many if the tree has no declared width.
struct Width {
    std::int64_t n_features;
    bool exact;
};

// A table of whole numbers.
class CodeBuffer {
  public:
    bool open(nanobind::handle object, const Width& width) {
        if (!buffer_.open(object) || buffer_.ndim() != 2) return false;
        const auto scalar = buffer_.scalar();
        if (!scalar || *scalar == Scalar::float32 || *scalar == Scalar::float64) return false;
        scalar_ = *scalar;
        check_width(width);
        return true;
    }
    // Whether the codes are best read as uint8; all other types become uint16.
    bool is_narrow() const { return scalar_ == Scalar::uint8; }
    std::int64_t n_rows() const { return buffer_.shape(0); }
    CodeTable table() const {
        return {buffer_.data(), buffer_.stride(0), buffer_.stride(1), scalar_, buffer_.shape(0), buffer_.shape(1)};
    }

  private:
    void check_width(const Width& width) const {
        const std::int64_t has = buffer_.shape(1);
        if (width.exact ? has == width.n_features : has >= width.n_features) return;
        throw std::invalid_argument("X has " + std::to_string(has) + " columns, but this tree was made for " +
                                    (width.exact ? "" : "at least ") + std::to_string(width.n_features));
    }
    Buffer buffer_;
    Scalar scalar_ = Scalar::uint8;
};

// y, weights and extra columns; None stands for the constant.
class RowBuffers {
  public:
    bool open(nanobind::handle y, nanobind::handle weight, nanobind::handle extra, int n_extra, double extra_constant,
              std::int64_t n_rows) {
        columns.extra.assign(static_cast<std::size_t>(n_extra), Column{nullptr, 0, Scalar::float64, extra_constant});
        return open_column(y_, y, "y", n_rows, columns.y) &&
               (weight.is_none() || open_column(weight_, weight, "sample_weight", n_rows, columns.weight)) &&
               (extra.is_none() || open_extra(extra, n_extra, n_rows));
    }
    RowColumns columns;

  private:
    static bool open_column(Buffer& buffer, nanobind::handle object, const char* name, std::int64_t n_rows,
                            Column& column) {
        if (!buffer.open(object) || buffer.ndim() != 1) return false;
        const auto scalar = buffer.scalar();
        if (!scalar) return false;
        check_length(name, buffer.shape(0), n_rows);
        column = {buffer.data(), buffer.stride(0), *scalar, 0.0};
        return true;
    }
    bool open_extra(nanobind::handle object, int n_extra, std::int64_t n_rows) {
        if (!extra_.open(object) || extra_.ndim() != 2) return false;
        const auto scalar = extra_.scalar();
        if (!scalar || extra_.shape(1) != n_extra) return false;
        check_length("row data", extra_.shape(0), n_rows);
        for (int e = 0; e < n_extra; ++e)
            columns.extra[e] = {extra_.data() + e * extra_.stride(1), extra_.stride(0), *scalar, 0.0};
        return true;
    }
    static void check_length(const char* name, std::int64_t has, std::int64_t n_rows) {
        if (has == n_rows) return;
        throw std::invalid_argument(std::string(name) + " has " + std::to_string(has) + " entries, but X has " +
                                    std::to_string(n_rows) + " rows");
    }
    Buffer y_, weight_, extra_;
};

}  // namespace everytree::bind
