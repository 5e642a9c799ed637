// The exact sum over trees and splits, one C++ type a family behind one Python type.
#pragma once
#include "bind_families.hpp"
#include "exact.hpp"

namespace everytree {

class ExactHandle {
  public:
    virtual ~ExactHandle() = default;
    virtual void run() = 0;
    virtual double log_evidence() const = 0;
    virtual double log_best() const = 0;
    virtual std::vector<std::int64_t> n_regions() const = 0;
    virtual nb::dict region(int depth, std::int64_t number) const = 0;
    virtual nb::dict summary() const = 0;
};

template <class Family>
class TypedExact final : public ExactHandle {
  public:
    TypedExact(const Family& family, const double* prior, BitTable table, RowStatistics<Family> statistics,
               std::vector<std::uint64_t> rows, ExactOptions options)
        : kernel_(family, prior, std::move(table), std::move(statistics), std::move(rows), std::move(options)) {}

    void run() override {
        nb::gil_scoped_release released;
        kernel_.run([] {
            nb::gil_scoped_acquire held;
            if (PyErr_CheckSignals() != 0) throw nb::python_error();
        });
    }
    double log_evidence() const override { return kernel_.log_evidence(); }
    double log_best() const override { return kernel_.log_best(); }
    std::vector<std::int64_t> n_regions() const override {
        std::vector<std::int64_t> sizes;
        for (const Level& level : kernel_.levels()) sizes.push_back(static_cast<std::int64_t>(level.size()));
        return sizes;
    }
    // One region: its evidences, its candidates with the probability of each, and where their children are: a number on
    // the next level, -1 where no rows are, -2 below the last level.
    nb::dict region(int depth, std::int64_t number) const override {
        if (depth < 0 || depth >= static_cast<int>(kernel_.levels().size()) || number < 0 ||
            number >= static_cast<std::int64_t>(kernel_.levels()[depth].size()))
            throw std::invalid_argument("no such region");
        const Level& level = kernel_.levels()[depth];
        const auto place = static_cast<std::size_t>(number);
        const bool is_last = depth + 1 >= static_cast<int>(kernel_.levels().size());
        RegionView<Family> view;
        const auto fate = kernel_.fate(depth, place, view);
        std::vector<std::int32_t> column, code, n_children, children;
        std::vector<double> child_statistics, child_best, child_leaves;
        std::size_t at = is_last ? 0 : level.first_child[place];
        if (!fate.log_split.empty()) {
            kernel_.each_candidate(view, [&](int k, int split, const std::vector<CodeSet>& sets, const double* stats) {
                column.push_back(k);
                code.push_back(split);
                n_children.push_back(static_cast<std::int32_t>(sets.size()));
                for (std::size_t c = 0; c < sets.size(); ++c) {
                    const double* stat = stats + c * kernel_.size();
                    const std::int32_t child = is_last ? -2 : level.children[at++];
                    children.push_back(child);
                    child_statistics.insert(child_statistics.end(), stat, stat + kernel_.size());
                    if (is_last)
                        child_best.push_back(kernel_.leaf_evidence(stat));
                    else if (child >= 0)
                        child_best.push_back(kernel_.levels()[depth + 1].best[child]);
                    else
                        child_best.push_back(kernel_.unseen(view, k, sets[c], depth + 1).log_best);
                }
            });
        }
        nb::dict out;
        out["leaf"] = level.leaf[place];
        out["subtree"] = level.subtree[place];
        out["best"] = level.best[place];
        out["log_stop"] = fate.log_stop;
        out["log_split"] = to_numpy(std::vector<double>(fate.log_split));
        out["column"] = to_numpy(std::move(column));
        out["code"] = to_numpy(std::move(code));
        out["n_children"] = to_numpy(std::move(n_children));
        out["children"] = to_numpy(std::move(children));
        out["child_statistics"] = to_numpy(std::move(child_statistics));
        out["child_best"] = to_numpy(std::move(child_best));
        out["statistics"] = to_numpy(std::vector<double>(view.total));
        return out;
    }
    nb::dict summary() const override {
        const auto all = without_gil(true, [&] { return kernel_.summary(); });
        nb::dict out;
        out["root_feature"] = to_numpy(std::vector<double>(all.root_feature));
        out["expected_splits"] = to_numpy(std::vector<double>(all.expected_splits));
        out["expected_leaves"] = all.expected_leaves;
        out["entropy"] = all.entropy;
        return out;
    }

  private:
    ExactKernel<Family> kernel_;
};

inline std::unique_ptr<ExactHandle> make_exact(const std::string& name, int size, Input<double> prior,
                                               Input<std::uint16_t> codes, const std::vector<int>& n_codes,
                                               const std::vector<int>& kinds, Input<std::int64_t> place,
                                               std::int64_t n_places, Input<double> of_place,
                                               const std::vector<std::int64_t>& class_start,
                                               const std::vector<double>& log_split,
                                               const std::vector<double>& log_stop, bool only_nontrivial,
                                               std::int64_t max_regions, int n_jobs) {
    const std::size_t n_columns = n_codes.size();
    if (codes.ndim() != 2 || codes.shape(1) != n_columns || kinds.size() != n_columns ||
        place.size() != codes.shape(0) || log_split.size() != log_stop.size() || n_places < 1)
        throw std::invalid_argument("arrays of the wrong size");
    const auto n_rows = static_cast<std::int64_t>(codes.shape(0));
    std::vector<ColumnKind> kind_of;
    for (std::size_t k = 0; k < n_columns; ++k) {
        if (kinds[k] < 0 || kinds[k] > 2 || n_codes[k] < 1 || (kinds[k] != 0 && n_codes[k] > 64))
            throw std::invalid_argument("no such kind of column");
        kind_of.push_back(static_cast<ColumnKind>(kinds[k]));
    }
    std::vector<std::uint64_t> rows(static_cast<std::size_t>((n_places + 63) / 64), 0);
    for (std::int64_t i = 0; i < n_rows; ++i) {
        const std::int64_t at = place.data()[i];
        if (at < 0 || at >= n_places) throw std::invalid_argument("place out of range");
        rows[at / 64] |= std::uint64_t{1} << (at % 64);
        for (std::size_t k = 0; k < n_columns; ++k)
            if (codes.data()[i * n_columns + k] >= n_codes[k]) throw std::invalid_argument("code out of range");
    }
    BitTable table(codes.data(), n_rows, n_codes, kind_of, {place.data(), place.data() + n_rows}, n_places);
    const int max_depth = static_cast<int>(log_split.size());
    ExactOptions options{max_depth, only_nontrivial, log_split, log_stop, max_regions, n_jobs};
    return with_family(name, size, [&](const auto& family) -> std::unique_ptr<ExactHandle> {
        using Family = std::decay_t<decltype(family)>;
        const auto width = static_cast<std::size_t>(family.layout.size());
        if (static_cast<int>(prior.size()) != family.n_prior ||
            (class_start.empty() ? of_place.size() != rows.size() * 64 * width : class_start.size() != width + 1))
            throw std::invalid_argument("statistics of the wrong size");
        std::vector<double> of_row(of_place.data(), of_place.data() + of_place.size());
        return std::make_unique<TypedExact<Family>>(family, prior.data(), std::move(table),
                                                    RowStatistics<Family>(family, std::move(of_row), class_start),
                                                    std::move(rows), std::move(options));
    });
}

}  // namespace everytree
