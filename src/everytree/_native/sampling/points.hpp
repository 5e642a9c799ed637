// The rows of a sampler: distinct rows of codes, each with the statistics of all rows that are equal to it. Equal rows
// are never separated, so a region with one point is not worth splitting.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/families.hpp"
#include "exact/conditions.hpp"
#include "exact/table.hpp"

namespace everytree::sampling {

using exact::CodeSet;
using exact::interval;
using exact::n_splits;

using Point = std::int32_t;

template <class Family>
class Points {
  public:
    // codes: (n_points, n_columns); statistics: (n_points, size).
    Points(const Family& family, const double* prior, const std::uint16_t* codes, std::int64_t n_points,
           std::vector<int> n_codes, std::vector<ColumnKind> kinds, std::vector<double> statistics)
        : prior_(prior, prior + family.n_prior),
          size_(static_cast<std::size_t>(family.layout.size())),
          n_points_(n_points),
          n_codes_(std::move(n_codes)),
          kinds_(std::move(kinds)),
          statistics_(std::move(statistics)) {
        const std::size_t n_columns = n_codes_.size();
        codes_.resize(static_cast<std::size_t>(n_points) * n_columns);
        for (std::int64_t i = 0; i < n_points; ++i)
            for (std::size_t k = 0; k < n_columns; ++k)
                codes_[k * static_cast<std::size_t>(n_points) + static_cast<std::size_t>(i)] =
                    codes[static_cast<std::size_t>(i) * n_columns + k];
        for (std::size_t k = 0; k < n_columns; ++k) {
            all_codes_.push_back(every_code(static_cast<int>(k)));
            n_possible_ += n_splits(kinds_[k], all_codes_[k]);
        }
        auto own = std::make_shared<Family>(family);
        if constexpr (requires { own->tabulated(0); }) {
            double total = 0.0;
            for (const double count : statistics_) total += count;
            own->tabulate(prior_.data(), static_cast<std::int64_t>(std::min(total, 1e5)) + 1);
        } else if constexpr (requires { own->tabulate(nullptr); }) {
            own->tabulate(prior_.data());
        }
        family_ = std::move(own);
    }

    std::int64_t n_points() const { return n_points_; }
    int n_columns() const { return static_cast<int>(n_codes_.size()); }
    int n_codes(int column) const { return n_codes_[static_cast<std::size_t>(column)]; }
    ColumnKind kind(int column) const { return kinds_[static_cast<std::size_t>(column)]; }
    const std::vector<CodeSet>& all_codes() const { return all_codes_; }
    // Number of splits of all codes.
    double n_possible() const { return n_possible_; }
    // Codes of all points in a column.
    const std::uint16_t* codes(int column) const {
        return codes_.data() + static_cast<std::size_t>(column) * static_cast<std::size_t>(n_points_);
    }
    std::size_t size() const { return size_; }
    const std::shared_ptr<const Family>& family() const { return family_; }
    const double* prior() const { return prior_.data(); }
    const Layout& layout() const { return family_->layout; }
    const double* statistic(Point point) const { return statistics_.data() + static_cast<std::size_t>(point) * size_; }

    // Log evidence of one leaf with these statistics.
    double log_evidence(const double* stat) const { return family_->log_evidence(stat, prior_.data()); }
    // Log evidence of one leaf with these points; `stat` is scratch space.
    double log_evidence(const Point* begin, const Point* end, double* stat) const {
        if (begin == end) return 0.0;
        layout().clear(stat);
        for (const Point* p = begin; p != end; ++p) layout().add(stat, statistic(*p));
        return log_evidence(stat);
    }

  private:
    CodeSet every_code(int column) const {
        const int n = n_codes(column);
        if (kind(column) == ColumnKind::ordered) return interval(0, static_cast<std::uint64_t>(n - 1));
        return n == 64 ? ~CodeSet{0} : (CodeSet{1} << n) - 1;
    }

    std::shared_ptr<const Family> family_;  // shared with what counts the rows as bits: its table may be large
    std::vector<double> prior_;
    std::size_t size_;
    std::int64_t n_points_;
    std::vector<int> n_codes_;
    std::vector<ColumnKind> kinds_;
    std::vector<CodeSet> all_codes_;
    double n_possible_ = 0.0;
    std::vector<std::uint16_t> codes_;  // column by column
    std::vector<double> statistics_;
};

}  // namespace everytree::sampling
