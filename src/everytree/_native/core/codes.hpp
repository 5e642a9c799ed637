// Tables of codes: reads any integer type and refuses codes that the tree does not know.
#pragma once
#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/rows.hpp"
#include "core/tree.hpp"

namespace everytree {

template <class Code>
inline constexpr Code missing_code = std::numeric_limits<Code>::max();

// Row-major codes, columns next to each other. Rows keep the number they have in the user's table.
template <class Code>
struct Codes {
    const Code* data;
    std::ptrdiff_t row_stride;
    std::int64_t first_row = 0;
    const Code* row(std::int64_t i) const { return data + (i - first_row) * row_stride; }
};

// The user's table as it lies in memory: whole numbers of any type, any strides (in bytes).
struct CodeTable {
    const char* data;
    std::ptrdiff_t row_stride, column_stride;
    Scalar scalar;
    std::int64_t n_rows, n_columns;
};

[[noreturn]] inline void complain_about_code(std::int64_t row, std::int64_t column, const std::string& code,
                                             long long largest, bool missing_too) {
    throw std::invalid_argument("X: column " + std::to_string(column) + ", row " + std::to_string(row) + ": code " +
                                code + ", but this tree knows codes 0.." + std::to_string(largest) +
                                (missing_too ? " and the missing code" : ""));
}

// A table as codes of one type: in place if it has that type already, else through a buffer, a chunk at a
// time.
template <class Code>
class CodeReader {
  public:
    CodeReader(const CodeTable& table, const CodeLimits& limits) : table_(table), limits_(limits) {
        constexpr Scalar own = sizeof(Code) == 1 ? Scalar::uint8 : Scalar::uint16;
        constexpr std::ptrdiff_t size = sizeof(Code);
        in_place_ = table.scalar == own && (table.column_stride == size || table.n_columns <= 1) &&
                    table.row_stride % size == 0 && reinterpret_cast<std::uintptr_t>(table.data) % size == 0;
    }
    std::int64_t n_rows() const { return table_.n_rows; }

    // Rows begin .. begin + n; throws for numbers that are not codes.
    Codes<Code> rows(std::int64_t begin, std::int64_t n, std::vector<Code>& buffer) const {
        if (in_place_) {
            const std::ptrdiff_t stride = table_.row_stride / static_cast<std::ptrdiff_t>(sizeof(Code));
            return {reinterpret_cast<const Code*>(table_.data) + begin * stride, stride, begin};
        }
        // Only the columns the tree was made for: a wider table may hold anything beyond them.
        buffer.resize(static_cast<std::size_t>(n * limits_.n_features) + 1);
        convert(begin, n, buffer.data());
        return {buffer.data(), limits_.n_features, begin};
    }

  private:
    void convert(std::int64_t begin, std::int64_t n, Code* out) const {
        switch (table_.scalar) {
            case Scalar::uint8:
                return convert_from<std::uint8_t>(begin, n, out);
            case Scalar::int8:
                return convert_from<std::int8_t>(begin, n, out);
            case Scalar::uint16:
                return convert_from<std::uint16_t>(begin, n, out);
            case Scalar::int16:
                return convert_from<std::int16_t>(begin, n, out);
            case Scalar::uint32:
                return convert_from<std::uint32_t>(begin, n, out);
            case Scalar::int32:
                return convert_from<std::int32_t>(begin, n, out);
            case Scalar::uint64:
                return convert_from<std::uint64_t>(begin, n, out);
            case Scalar::int64:
                return convert_from<std::int64_t>(begin, n, out);
            default:
                throw std::invalid_argument("X must hold whole numbers");
        }
    }

    // In unsigned arithmetic every number that is not a code is large, -1 the largest: one comparison finds them
    // all.
    template <class T>
    void convert_from(std::int64_t begin, std::int64_t n, Code* out) const {
        using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
        constexpr auto own = static_cast<std::uint64_t>(missing_code<Code>);
        constexpr bool same_type = std::is_same_v<T, Code>;
        const int n_features = limits_.n_features;
        for (std::int64_t i = 0; i < n; ++i) {
            const char* at = table_.data + (begin + i) * table_.row_stride;
            std::uint64_t largest = 0;
            for (int k = 0; k < n_features; ++k, at += table_.column_stride) {
                T value;
                std::memcpy(&value, at, sizeof(T));
                const auto wide = static_cast<std::uint64_t>(static_cast<Wide>(value));
                largest = std::max(largest, wide);
                *out++ = static_cast<Code>(wide);
            }
            if (!same_type && largest >= own) check_row<T>(begin + i, out - n_features);
        }
    }

    // -1 is the missing code of signed types, in columns that have a branch for it; everything else is wrong.
    template <class T>
    void check_row(std::int64_t i, Code* out) const {
        const char* at = table_.data + i * table_.row_stride;
        for (int k = 0; k < limits_.n_features; ++k, at += table_.column_stride) {
            T value;
            std::memcpy(&value, at, sizeof(T));
            if (std::is_signed_v<T> && value == static_cast<T>(-1) && limits_.shift[k]) {
                out[k] = missing_code<Code>;
            } else if (value < 0 || static_cast<std::uint64_t>(value) >= missing_code<Code>) {
                const bool free = limits_.limit[k] == std::numeric_limits<std::uint16_t>::max();
                const long long largest = free ? missing_code<Code> - 1 : limits_.limit[k] - limits_.shift[k];
                complain_about_code(i, k, std::to_string(value), largest, limits_.shift[k]);
            }
        }
    }

    CodeTable table_;
    CodeLimits limits_;
    bool in_place_;
};

// Checks rows against the limits, sixteen at a time if they are contiguous.
template <class Code>
class CodeCheck {
  public:
    explicit CodeCheck(const CodeLimits& limits) : n_features_(limits.n_features) {
        constexpr std::uint16_t largest = missing_code<Code>;
        for (int repeat = 0; repeat < n_together; ++repeat)
            for (int k = 0; k < n_features_; ++k) {
                limit_.push_back(static_cast<Code>(std::min(limits.limit[k], largest)));
                shift_.push_back(static_cast<Code>(limits.shift[k]));
            }
    }

    // Throws for the first bad code of rows begin .. begin + n, in row order.
    void operator()(const Codes<Code>& codes, std::int64_t begin, std::int64_t n) const {
        std::int64_t i = 0;
        if (codes.row_stride == n_features_)
            while (i + n_together <= n && !any_bad(codes.row(begin + i), n_together * n_features_)) i += n_together;
        for (; i < n; ++i)
            if (any_bad(codes.row(begin + i), n_features_)) complain(codes.row(begin + i), begin + i);
    }

  private:
    static constexpr int n_together = 16;

    bool is_bad(const Code* row, int k) const { return static_cast<Code>(row[k] + shift_[k]) > limit_[k]; }
    bool any_bad(const Code* row, int n) const {
        const Code *limit = limit_.data(), *shift = shift_.data();
        Code bad = 0;
        for (int k = 0; k < n; ++k) bad |= static_cast<Code>(static_cast<Code>(row[k] + shift[k]) > limit[k]);
        return bad != 0;
    }
    [[noreturn]] void complain(const Code* row, std::int64_t place) const {
        int k = 0;
        while (!is_bad(row, k)) ++k;
        complain_about_code(place, k, std::to_string(row[k]), limit_[k] - shift_[k], shift_[k]);
    }

    int n_features_;
    std::vector<Code> limit_, shift_;
};

// Requirements of a table that is read for several trees: as wide as the widest, and missing only where all agree.
class MergedLimits {
  public:
    void add(const CodeLimits& limits) {
        const auto width = static_cast<std::size_t>(limits.n_features);
        if (limit_.size() < width) {
            limit_.resize(width, std::numeric_limits<std::uint16_t>::max());
            shift_.resize(width, 1);
        }
        for (std::size_t k = 0; k < width; ++k) {
            limit_[k] = std::min(limit_[k], limits.limit[k]);
            shift_[k] = std::min(shift_[k], limits.shift[k]);
        }
    }
    CodeLimits view() const { return {limit_.data(), shift_.data(), static_cast<int>(limit_.size())}; }

  private:
    std::vector<std::uint16_t> limit_, shift_;
};

// The checks of one tree, for either type of codes.
class CodeChecks {
  public:
    explicit CodeChecks(const CodeLimits& limits) : limits_(limits), narrow_(limits), wide_(limits) {}
    const CodeLimits& limits() const { return limits_; }
    template <class Code>
    const CodeCheck<Code>& of() const {
        if constexpr (sizeof(Code) == 1)
            return narrow_;
        else
            return wide_;
    }

  private:
    CodeLimits limits_;
    CodeCheck<std::uint8_t> narrow_;
    CodeCheck<std::uint16_t> wide_;
};

}  // namespace everytree
