// The codes of a table, row after row: a node that looks at many columns finds those of a row side by side.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
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
    const Code* row(std::uint32_t i) const { return data_.data() + i * stride_; }
    // Reads the codes of one column.
    auto reader(int k) const {
        return [from = data_.data() + k, stride = stride_](std::uint32_t row) { return from[row * stride]; };
    }

  private:
    std::int64_t n_rows_;
    std::vector<int> n_codes_;
    std::size_t stride_;
    std::vector<Code> data_;
};

}  // namespace everytree::grow
