// The codes of a table, column after column: a split looks at few columns and at many rows.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/codes.hpp"

namespace everytree::grow {

template <class Code>
class CodeColumns {
  public:
    // `n_codes` says for each column how many codes it has, missing not counted; codes are known to be below.
    CodeColumns(const Codes<Code>& codes, std::int64_t n_rows, std::vector<int> n_codes)
        : n_rows_(n_rows), n_codes_(std::move(n_codes)), data_(static_cast<std::size_t>(n_rows) * n_codes_.size()) {
        constexpr std::int64_t block = 64;  // rows that stay in the cache while their columns are written
        for (std::int64_t begin = 0; begin < n_rows; begin += block) {
            const std::int64_t end = std::min(begin + block, n_rows);
            for (int k = 0; k < n_columns(); ++k)
                for (std::int64_t i = begin; i < end; ++i)
                    data_[place(k) + static_cast<std::size_t>(i)] = codes.row(i)[k];
        }
    }
    int n_columns() const { return static_cast<int>(n_codes_.size()); }
    std::int64_t n_rows() const { return n_rows_; }
    int n_codes(int column) const { return n_codes_[static_cast<std::size_t>(column)]; }
    int most_codes() const { return n_codes_.empty() ? 0 : *std::max_element(n_codes_.begin(), n_codes_.end()); }
    // Reads the codes of one column.
    auto reader(int k) const {
        return [from = column(k)](std::uint32_t row) { return from[row]; };
    }
    const Code* column(int k) const { return data_.data() + place(k); }

  private:
    std::size_t place(int k) const { return static_cast<std::size_t>(k) * static_cast<std::size_t>(n_rows_); }

    std::int64_t n_rows_;
    std::vector<int> n_codes_;
    std::vector<Code> data_;
};

}  // namespace everytree::grow
