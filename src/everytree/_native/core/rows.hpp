// Targets, weights and other columns of rows, read chunk by chunk into doubles from any type.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/families.hpp"

namespace everytree {

enum class Scalar { uint8, int8, uint16, int16, uint32, int32, uint64, int64, float32, float64 };

// One number per row, anywhere in memory; without data, a constant.
struct Column {
    const char* data = nullptr;
    std::ptrdiff_t stride = 0;
    Scalar scalar = Scalar::float64;
    double constant = 1.0;

    // Rows begin .. begin + n to out[0], out[step], ...
    void read(std::int64_t begin, std::int64_t n, double* out, std::ptrdiff_t step) const {
        if (data == nullptr) {
            for (std::int64_t i = 0; i < n; ++i) out[i * step] = constant;
            return;
        }
        switch (scalar) {
            case Scalar::uint8:
                return copy<std::uint8_t>(begin, n, out, step);
            case Scalar::int8:
                return copy<std::int8_t>(begin, n, out, step);
            case Scalar::uint16:
                return copy<std::uint16_t>(begin, n, out, step);
            case Scalar::int16:
                return copy<std::int16_t>(begin, n, out, step);
            case Scalar::uint32:
                return copy<std::uint32_t>(begin, n, out, step);
            case Scalar::int32:
                return copy<std::int32_t>(begin, n, out, step);
            case Scalar::uint64:
                return copy<std::uint64_t>(begin, n, out, step);
            case Scalar::int64:
                return copy<std::int64_t>(begin, n, out, step);
            case Scalar::float32:
                return copy<float>(begin, n, out, step);
            case Scalar::float64:
                return copy<double>(begin, n, out, step);
        }
    }

  private:
    template <class T>
    void copy(std::int64_t begin, std::int64_t n, double* out, std::ptrdiff_t step) const {
        const char* at = data + begin * stride;
        if (stride == sizeof(T) && step == 1) {  // a loop that the compiler vectorises
            for (std::int64_t i = 0; i < n; ++i) out[i] = number<T>(at + i * static_cast<std::ptrdiff_t>(sizeof(T)));
            return;
        }
        for (std::int64_t i = 0; i < n; ++i, at += stride) out[i * step] = number<T>(at);
    }
    template <class T>
    static double number(const char* at) {
        T value;
        std::memcpy(&value, at, sizeof(T));  // a user's column need not be aligned
        return static_cast<double>(value);
    }
};

// The shortest text that identifies the number.
inline std::string shortest(double value) {
    char text[32];
    for (int digits = 1; digits <= 17; ++digits) {
        std::snprintf(text, sizeof text, "%.*g", digits, value);
        if (std::strtod(text, nullptr) == value) break;
    }
    return text;
}

struct RowColumns {
    Column y, weight;
    std::vector<Column> extra;
};

inline constexpr std::int64_t chunk_rows = 8192;

// Rows of a chunk: plain pointers, which loops can keep in registers.
struct RowView {
    const double *y, *weight, *extra;
    std::ptrdiff_t n_extra;
    Row operator[](std::int64_t i) const { return {y[i], weight[i], extra + i * n_extra}; }
};

// One worker's copy of a chunk.
class RowChunk {
  public:
    explicit RowChunk(int n_extra) : n_extra_(n_extra) {}

    // Reads and checks rows begin .. begin + n; throws for the first one the family does not support.
    template <class Family>
    void read(const Family& family, const RowColumns& columns, std::int64_t begin, std::int64_t n) {
        if (static_cast<std::int64_t>(y_.size()) < n) resize(n);
        columns.y.read(begin, n, y_.data(), 1);
        read_weights(columns.weight, begin, n);
        for (int e = 0; e < n_extra_; ++e) columns.extra[e].read(begin, n, extra_.data() + e, n_extra_);
        std::int64_t n_wrong = 0;  // counted without branches: the compiler then checks several rows at a time
        const RowView rows = view();
        for (std::int64_t i = 0; i < n; ++i) n_wrong += family.supports(rows[i]) ? 0 : 1;
        if (columns.weight.data != nullptr)
            for (std::int64_t i = 0; i < n; ++i) n_wrong += is_weight(rows.weight[i]) ? 0 : 1;
        for (std::int64_t i = 0; n_wrong && i < n; ++i) {
            if (!family.supports(rows[i])) complain(family.complain(rows[i]), begin + i);
            if (!is_weight(rows.weight[i]))
                complain({"sample_weight", rows.weight[i], "finite, from 0 to 1e60"}, begin + i);
        }
    }
    RowView view() const { return {y_.data(), weight_.data(), extra_.data(), n_extra_}; }

  private:
    static bool is_weight(double weight) { return (weight >= 0.0) & (weight <= largest_magnitude); }
    void read_weights(const Column& column, std::int64_t begin, std::int64_t n) {
        const bool constant = column.data == nullptr;
        if (constant && n <= n_unit_weights_) return;  // still there from the chunk before
        column.read(begin, n, weight_.data(), 1);
        n_unit_weights_ = constant ? n : 0;
    }
    void resize(std::int64_t n) {
        n_unit_weights_ = 0;
        y_.resize(n);
        weight_.resize(n);
        extra_.resize(static_cast<std::size_t>(n * n_extra_) + 1);
    }
    [[noreturn]] static void complain(const Complaint& what, std::int64_t place) {
        const std::string at = std::to_string(place) + (what.column < 0 ? "" : ", " + std::to_string(what.column));
        throw std::invalid_argument(std::string(what.argument) + "[" + at + "] is " + shortest(what.value) +
                                    ", but must be " + what.must);
    }

    int n_extra_;
    std::int64_t n_unit_weights_ = 0;
    std::vector<double> y_, weight_, extra_;
};

}  // namespace everytree
