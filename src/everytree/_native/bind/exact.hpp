// The exact sum over trees and splits, one C++ type a family behind one Python type.
#pragma once
#include <memory>
#include <mutex>
#include <optional>

#include "bind/families.hpp"
#include "exact/answers.hpp"
#include "exact/tables.hpp"

namespace everytree {

class ExactHandle {
  public:
    virtual ~ExactHandle() = default;
    virtual void run(std::int64_t regions, std::optional<std::vector<std::int64_t>> expansions, double seconds,
                     nb::object progress) = 0;
    virtual std::vector<std::int64_t> n_expanded() const = 0;
    virtual double log_upper() const = 0;
    virtual double threshold(double truncation, std::int64_t most, bool with_unknown) const = 0;
    virtual double left_out(double threshold, bool with_unknown) const = 0;
    virtual nb::dict leaves(double threshold, bool with_unknown) const = 0;
    virtual nb::object feature_use(double negligible) const = 0;
    virtual double log_evidence() const = 0;
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

    void run(std::int64_t regions, std::optional<std::vector<std::int64_t>> expansions, double seconds,
             nb::object progress) override {
        std::lock_guard alone(guard_.writing);
        nb::gil_scoped_release released;
        sums_.reset();
        Watch watch(check_signals);
        kernel_.run({regions, seconds, std::move(expansions)}, watch,
                    [&](int depth, std::size_t done, std::size_t total) {
                        nb::gil_scoped_acquire held;
                        if (PyErr_CheckSignals() != 0) throw nb::python_error();
                        if (!progress.is_none()) progress(depth, done, total);
                    });
    }
    std::vector<std::int64_t> n_expanded() const override { return kernel_.n_expanded(); }
    double log_upper() const override { return kernel_.log_upper(); }
    // The threshold below which shares of the posterior may be left out, and what that leaves out in all.
    double threshold(double truncation, std::int64_t most, bool with_unknown) const override {
        return spread(with_unknown).threshold(truncation - kernel_.options().negligible, most);
    }
    double left_out(double threshold, bool with_unknown) const override {
        return spread(with_unknown).below(threshold) + kernel_.options().negligible;
    }
    nb::dict leaves(double threshold, bool with_unknown) const override {
        const auto& mass = sums().mass;
        auto all = without_gil(
            true, [&] { return collect_leaves(kernel_, mass, threshold, with_unknown, Watch(check_signals)); });
        nb::dict out;
        out["weight"] = to_numpy(std::move(all.weight));
        out["statistics"] = to_numpy(std::move(all.statistics));
        out["start"] = to_numpy(std::move(all.start));
        out["column"] = to_numpy(std::move(all.column));
        out["codes"] = to_numpy(std::move(all.codes));
        return out;
    }
    nb::object feature_use(double negligible) const override {
        const auto& mass = sums().mass;
        return nb::cast(to_numpy(without_gil(
            true, [&] { return everytree::feature_use(kernel_, mass, negligible, Watch(check_signals)); })));
    }
    double log_evidence() const override { return kernel_.log_evidence(); }
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
        const bool is_last = !kernel_.is_expanded(depth, place);
        RegionView view;
        const auto fate = kernel_.fate(depth, place, view);
        std::vector<std::int32_t> column, code, n_children, children;
        std::vector<double> child_best;
        std::size_t at = is_last ? 0 : level.first_child[place];
        const double n_possible = kernel_.n_possible_splits(view);
        if (!fate.log_split.empty()) {
            kernel_.each_candidate(view, [&](int k, int split, const std::vector<CodeSet>& sets, const double* stats) {
                column.push_back(k);
                code.push_back(split);
                n_children.push_back(static_cast<std::int32_t>(sets.size()));
                for (std::size_t c = 0; c < sets.size(); ++c) {
                    const double* stat = stats + c * kernel_.size();
                    const std::int32_t child = is_last ? -2 : level.children[at++];
                    children.push_back(child);
                    if (is_last)
                        child_best.push_back(kernel_.leaf_evidence(stat) +
                                             kernel_.stop_of_child(view, k, sets[c], c, depth + 1));
                    else if (child >= 0)
                        child_best.push_back(kernel_.levels()[depth + 1].best[child]);
                    else
                        child_best.push_back(kernel_.best_unseen(view, n_possible, k, sets[c], depth + 1));
                }
            });
        }
        nb::dict out;
        out["log_leaf"] = kernel_.log_leaf(depth, place, !fate.log_split.empty());
        out["log_stop"] = fate.log_stop;
        out["log_split"] = to_numpy(std::vector<double>(fate.log_split));
        out["column"] = to_numpy(std::move(column));
        out["code"] = to_numpy(std::move(code));
        out["n_children"] = to_numpy(std::move(n_children));
        out["children"] = to_numpy(std::move(children));
        out["child_best"] = to_numpy(std::move(child_best));
        return out;
    }
    nb::dict summary() const override {
        const ExactSummary& all = sums();
        nb::dict out;
        out["root_feature"] = to_numpy(std::vector<double>(all.root_feature));
        out["expected_splits"] = to_numpy(std::vector<double>(all.expected_splits));
        out["expected_leaves"] = all.expected_leaves;
        out["entropy"] = all.entropy;
        return out;
    }

  private:
    static void check_signals() {
        nb::gil_scoped_acquire held;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
    // Computed when first asked for, by one thread at a time.
    const ExactSummary& sums() const {
        std::lock_guard alone(guard_.writing);
        if (!sums_)
            sums_ = without_gil(
                true, [&] { return std::make_unique<ExactSummary>(summarise(kernel_, Watch(check_signals))); });
        return *sums_;
    }
    Spread spread(bool with_unknown) const {
        Spread all = sums().ending;
        if (with_unknown) all.add(sums().asked);
        return all;
    }
    ExactKernel<Family> kernel_;
    mutable Guard guard_;
    mutable std::unique_ptr<ExactSummary> sums_;
};

// Leaves as Python keeps them.
struct LeafArrays {
    Input<double> weight;
    Input<std::int64_t> start;
    Input<std::int32_t> column;
    Input<std::uint64_t> codes;

    LeafView view(const std::vector<int>& n_codes, const std::vector<ColumnKind>& kinds) const {
        const auto n = static_cast<std::int64_t>(weight.size());
        if (start.size() != weight.size() + 1 || column.size() != codes.size() || start.data()[0] != 0 ||
            start.data()[n] != static_cast<std::int64_t>(column.size()))
            throw std::invalid_argument("leaves of the wrong size");
        for (std::int64_t leaf = 0; leaf < n; ++leaf)
            if (start.data()[leaf + 1] < start.data()[leaf]) throw std::invalid_argument("leaves out of order");
        for (std::size_t c = 0; c < column.size(); ++c) {
            const std::int32_t k = column.data()[c];
            if (k < 0 || k >= static_cast<std::int32_t>(n_codes.size())) throw std::invalid_argument("no such column");
            const CodeSet set = codes.data()[c];
            if (set != unknown_codes && kinds[k] == ColumnKind::ordered &&
                (highest_of(set) >= n_codes[k] || highest_of(set) < lowest_of(set)))
                throw std::invalid_argument("codes out of range");
        }
        return {n, weight.data(), start.data(), column.data(), codes.data()};
    }
};

inline std::vector<ColumnKind> kinds_of(const std::vector<int>& kinds, const std::vector<int>& n_codes) {
    if (kinds.size() != n_codes.size()) throw std::invalid_argument("one kind a column");
    std::vector<ColumnKind> out;
    for (std::size_t k = 0; k < kinds.size(); ++k) {
        if (kinds[k] < 0 || kinds[k] > 2 || n_codes[k] < 1 || (kinds[k] != 0 && n_codes[k] > 64))
            throw std::invalid_argument("no such kind of column");
        out.push_back(static_cast<ColumnKind>(kinds[k]));
    }
    return out;
}

// Tables of weight times value, or None where they would have more than `most` numbers.
inline nb::object tabulate(Input<double> weight, Input<std::int64_t> start, Input<std::int32_t> column,
                           Input<std::uint64_t> codes, Input<double> values, const std::vector<int>& n_codes,
                           const std::vector<int>& kinds, bool with_unknown, std::int64_t most, int n_jobs) {
    const std::vector<ColumnKind> kind_of = kinds_of(kinds, n_codes);
    const LeafView leaves = LeafArrays{weight, start, column, codes}.view(n_codes, kind_of);
    if (values.ndim() != 2 || values.shape(0) != weight.size()) throw std::invalid_argument("one row of values a leaf");
    std::optional<AnswerTables> tables;
    without_gil(true, [&] {
        TableBuilder builder(leaves, {n_codes, kind_of}, with_unknown);
        if (builder.n_cells() <= most / static_cast<std::int64_t>(values.shape(1)))
            tables = builder.fill(values.data(), values.shape(1), n_jobs);
    });
    if (!tables) return nb::none();
    return nb::make_tuple(to_numpy(std::move(tables->set_start)), to_numpy(std::move(tables->column)),
                          to_numpy(std::move(tables->map_start)), to_numpy(std::move(tables->place)),
                          to_numpy(std::move(tables->first_cell)), to_numpy(std::move(tables->cells)));
}

// The leaves that hold each row: where its entries start, and the leaves.
inline nb::object leaves_of_rows(Input<double> weight, Input<std::int64_t> start, Input<std::int32_t> column,
                                 Input<std::uint64_t> codes, Input<std::uint16_t> rows, const std::vector<int>& n_codes,
                                 const std::vector<int>& kinds) {
    const std::vector<ColumnKind> kind_of = kinds_of(kinds, n_codes);
    const LeafView leaves = LeafArrays{weight, start, column, codes}.view(n_codes, kind_of);
    const ColumnView columns{n_codes, kind_of};
    if (rows.ndim() != 2 || rows.shape(1) != n_codes.size()) throw std::invalid_argument("codes of the wrong width");
    std::vector<std::int64_t> first{0}, found;
    without_gil(true, [&] {
        for (std::size_t i = 0; i < rows.shape(0); ++i) {
            const std::uint16_t* row = rows.data() + i * rows.shape(1);
            for (std::int64_t leaf = 0; leaf < leaves.n_leaves; ++leaf) {
                std::int64_t c = leaves.start[leaf];
                while (c < leaves.start[leaf + 1] &&
                       columns.holds(leaves.column[c], leaves.codes[c], row[leaves.column[c]]))
                    ++c;
                if (c == leaves.start[leaf + 1]) found.push_back(leaf);
            }
            first.push_back(static_cast<std::int64_t>(found.size()));
        }
    });
    return nb::make_tuple(to_numpy(std::move(first)), to_numpy(std::move(found)));
}

// Answers by lookup, from arrays that Python keeps.
class TablesHandle {
  public:
    TablesHandle(Input<std::int64_t> set_start, Input<std::int32_t> column, Input<std::int64_t> map_start,
                 Input<std::int32_t> place, Input<std::int64_t> first_cell, Input<double> cells, std::int64_t width,
                 Input<std::int32_t> n_codes)
        : set_start_(set_start),
          column_(column),
          map_start_(map_start),
          place_(place),
          first_cell_(first_cell),
          cells_(cells),
          n_codes_(n_codes) {
        if (set_start.size() == 0 || first_cell.size() != set_start.size() || map_start.size() != column.size() + 1 ||
            width < 1)
            throw std::invalid_argument("arrays of the wrong size");
        view_ = {static_cast<std::int64_t>(set_start.size()) - 1,
                 width,
                 set_start_.data(),
                 column_.data(),
                 map_start_.data(),
                 place_.data(),
                 first_cell_.data(),
                 cells_.data(),
                 static_cast<std::int64_t>(n_codes.size()),
                 n_codes_.data()};
        if (cells.size() % static_cast<std::size_t>(width) != 0) throw std::invalid_argument("cells of the wrong size");
        view_.check(static_cast<std::int64_t>(column.size()), static_cast<std::int64_t>(map_start.size()) - 1,
                    static_cast<std::int64_t>(place.size()), static_cast<std::int64_t>(cells.size()) / width);
        n_shared_ = view_.shared();
    }

    // (n_rows, width) sum of the cells of each row.
    nb::object look_up(Input<std::uint16_t> codes, int n_jobs) const {
        if (codes.ndim() != 2 || codes.shape(1) != n_codes_.size())
            throw std::invalid_argument("codes of the wrong width");
        const std::size_t n_rows = codes.shape(0), n_columns = codes.shape(1);
        const auto width = static_cast<std::size_t>(view_.width);
        std::vector<double> out(n_rows * width, 0.0);
        without_gil(true, [&] {
            constexpr std::size_t together = 512;
            const auto n_workers = static_cast<std::size_t>(std::max(n_jobs, 1));
            std::vector<LookUpScratch> scratch(n_workers);
            const auto work = [&](std::int64_t chunk, int worker) {
                const std::size_t first = static_cast<std::size_t>(chunk) * together;
                view_.look_up(codes.data() + first * n_columns, std::min(together, n_rows - first), n_shared_,
                              out.data() + first * width, scratch[worker]);
            };
            in_chunks(static_cast<std::int64_t>((n_rows + together - 1) / together), n_jobs, work);
        });
        return nb::cast(to_numpy(std::move(out), {n_rows, width}));
    }

  private:
    Input<std::int64_t> set_start_;
    Input<std::int32_t> column_;
    Input<std::int64_t> map_start_;
    Input<std::int32_t> place_;
    Input<std::int64_t> first_cell_;
    Input<double> cells_;
    Input<std::int32_t> n_codes_;
    TablesView view_{};
    std::vector<std::int32_t> n_shared_;
};

inline std::unique_ptr<ExactHandle> make_exact(
    const std::string& name, int size, Input<double> prior, Input<std::uint16_t> codes, const std::vector<int>& n_codes,
    const std::vector<int>& kinds, Input<std::int64_t> place, std::int64_t n_places, Input<double> of_place,
    const std::vector<std::int64_t>& class_start, const std::vector<double>& log_split,
    const std::vector<double>& log_stop, bool only_nontrivial, double negligible, int n_jobs) {
    const std::size_t n_columns = n_codes.size();
    if (codes.ndim() != 2 || codes.shape(1) != n_columns || kinds.size() != n_columns ||
        place.size() != codes.shape(0) || log_split.size() != log_stop.size() || n_places < 1)
        throw std::invalid_argument("arrays of the wrong size");
    const auto n_rows = static_cast<std::int64_t>(codes.shape(0));
    const std::vector<ColumnKind> kind_of = kinds_of(kinds, n_codes);
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
    ExactOptions options{max_depth, only_nontrivial, log_split, log_stop, negligible, n_jobs};
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
