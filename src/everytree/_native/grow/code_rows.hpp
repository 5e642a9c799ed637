// The codes of a table, row after row: a node that looks at many columns finds those of a row side by side.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/codes.hpp"

namespace everytree::grow {

template <class Code>
class CodeRows {
  public:
    static constexpr int few = 4, many = 16;  // columns that are looked at together; rows are filled up to `few`

    // `n_codes` says for each column how many codes it has, missing not counted; codes are known to be below.
    CodeRows(const Codes<Code>& codes, std::int64_t n_rows, std::vector<int> n_codes)
        : n_rows_(n_rows),
          n_codes_(std::move(n_codes)),
          stride_((n_codes_.size() + few - 1) / few * few),
          data_(static_cast<std::size_t>(n_rows) * stride_) {
        for (std::int64_t i = 0; i < n_rows; ++i)
            std::copy_n(codes.row(i), n_codes_.size(), data_.data() + static_cast<std::size_t>(i) * stride_);
    }
    int n_columns() const { return static_cast<int>(n_codes_.size()); }
    std::int64_t n_rows() const { return n_rows_; }
    int n_codes(int column) const { return n_codes_[static_cast<std::size_t>(column)]; }
    int most_codes() const { return n_codes_.empty() ? 0 : *std::max_element(n_codes_.begin(), n_codes_.end()); }
    int width() const { return static_cast<int>(stride_); }
    const Code* data() const { return data_.data(); }

  private:
    std::int64_t n_rows_;
    std::vector<int> n_codes_;
    std::size_t stride_;
    std::vector<Code> data_;
};

// The rows of a table, or some of them that stand closer together: in order to divide small nodes again and again,
// their rows are copied once to where the cache holds them.
template <class Code>
class NearRows {
  public:
    explicit NearRows(const CodeRows<Code>& table)
        : table_(table), data_(table.data()), stride_(static_cast<std::size_t>(table.width())) {}
    const Code* row(std::uint32_t i) const { return data_ + i * stride_; }
    // Reads the codes of one column.
    auto reader(int k) const {
        return [from = data_ + k, stride = stride_](std::uint32_t row) { return from[row * stride]; };
    }
    std::size_t most_rows() const { return most_bytes / (stride_ * sizeof(Code) + 1); }

    // From now on, row i is the i-th of these. They have a member `row`, their number in the table, which becomes i.
    template <class Row>
    void come_near(std::span<Row> rows) {
        copied_.resize(rows.size() * stride_);
        numbers_.resize(rows.size());
        for (std::size_t i = 0; i < rows.size(); ++i) {
            numbers_[i] = rows[i].row;
            std::copy_n(table_.data() + numbers_[i] * stride_, stride_, copied_.data() + i * stride_);
            rows[i].row = static_cast<std::uint32_t>(i);
        }
        data_ = copied_.data();
    }
    // As before; the rows are the same in any order.
    template <class Row>
    void go_back(std::span<Row> rows) {
        for (Row& each : rows) each.row = numbers_[each.row];
        data_ = table_.data();
    }

  private:
    static constexpr std::size_t most_bytes = std::size_t{1} << 15;

    const CodeRows<Code>& table_;
    const Code* data_;
    std::size_t stride_;
    std::vector<Code> copied_;
    std::vector<std::uint32_t> numbers_;
};

}  // namespace everytree::grow
