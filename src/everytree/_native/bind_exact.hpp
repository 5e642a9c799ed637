// The exact sum over trees and splits, one C++ type a family behind one Python type.
#pragma once
#include "bind_families.hpp"
#include "exact_answers.hpp"
#include "exact_graph.hpp"

namespace everytree {

class ExactHandle {
  public:
    virtual ~ExactHandle() = default;
    virtual void run(std::int64_t regions, double seconds, nb::object progress) = 0;
    virtual double log_upper() const = 0;
    virtual nb::dict compile(double threshold) const = 0;
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

    void run(std::int64_t regions, double seconds, nb::object progress) override {
        nb::gil_scoped_release released;
        kernel_.run({regions, seconds}, [&](int depth, std::size_t done, std::size_t total) {
            nb::gil_scoped_acquire held;
            if (PyErr_CheckSignals() != 0) throw nb::python_error();
            if (!progress.is_none()) progress(depth, done, total);
        });
    }
    double log_upper() const override { return kernel_.log_upper(); }
    nb::dict compile(double threshold) const override {
        auto graph = without_gil(true, [&] { return everytree::compile(kernel_, threshold); });
        nb::dict out;
        out["statistics"] = to_numpy(std::move(graph.statistics));
        out["stop"] = to_numpy(std::move(graph.stop));
        out["first_edge"] = to_numpy(std::move(graph.first_edge));
        out["column"] = to_numpy(std::move(graph.column));
        out["code"] = to_numpy(std::move(graph.code));
        out["share"] = to_numpy(std::move(graph.share));
        out["first_child"] = to_numpy(std::move(graph.first_child));
        out["children"] = to_numpy(std::move(graph.children));
        out["dropped"] = graph.dropped;
        return out;
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
        const bool is_last = !kernel_.is_expanded(depth, place);
        RegionView view;
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
                        child_best.push_back(kernel_.leaf_evidence(stat) +
                                             kernel_.stop_of_child(view, k, sets[c], c, depth + 1));
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
        const auto all = without_gil(true, [&] { return summarise(kernel_); });
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

// A compiled posterior and tables of codes.
class GraphHandle {
  public:
    GraphHandle(Input<double> stop, Input<std::int64_t> first_edge, Input<std::int32_t> column,
                Input<std::int32_t> code, Input<double> share, Input<std::int64_t> first_child,
                Input<std::int32_t> children, Input<std::uint8_t> kind, Input<std::int32_t> n_codes)
        : stop_(stop),
          first_edge_(first_edge),
          column_(column),
          code_(code),
          share_(share),
          first_child_(first_child),
          children_(children),
          kind_(kind),
          n_codes_(n_codes) {
        if (stop.size() == 0 || first_edge.size() != stop.size() + 1 || code.size() != column.size() ||
            share.size() != column.size() || first_child.size() != column.size() + 1 || kind.size() != n_codes.size())
            throw std::invalid_argument("arrays of the wrong size");
        view_ = {static_cast<std::int64_t>(stop.size()),
                 stop_.data(),
                 first_edge_.data(),
                 column_.data(),
                 code_.data(),
                 share_.data(),
                 first_child_.data(),
                 children_.data(),
                 kind_.data(),
                 n_codes_.data()};
        view_.check(static_cast<std::int64_t>(column.size()), static_cast<std::int64_t>(children.size()),
                    static_cast<std::int64_t>(n_codes.size()));
    }

    // (n_rows, n_values) average of the values of the nodes where each row ends.
    nb::object average(Input<std::uint16_t> codes, Input<double> values, int n_jobs) const {
        check_width(codes);
        if (values.ndim() != 2 || values.shape(0) != stop_.size())
            throw std::invalid_argument("one row of values a node");
        const std::size_t n_rows = codes.shape(0), width = values.shape(1), n_columns = codes.shape(1);
        auto* out = new std::vector<double>(n_rows * width, 0.0);
        nb::capsule owner(out, [](void* p) noexcept { delete static_cast<std::vector<double>*>(p); });
        without_gil(true, [&] {
            std::vector<GraphWalk> walks(static_cast<std::size_t>(std::max(n_jobs, 1)), GraphWalk(view_));
            constexpr std::size_t together = 256;
            const auto work = [&](std::int64_t chunk, int worker) {
                const std::size_t first = static_cast<std::size_t>(chunk) * together;
                for (std::size_t i = first; i < std::min(first + together, n_rows); ++i)
                    walks[worker].walk(codes.data() + i * n_columns, [&](std::int32_t node, double weight) {
                        for (std::size_t v = 0; v < width; ++v)
                            (*out)[i * width + v] += weight * values.data()[node * width + v];
                    });
            };
            in_ordered_chunks(static_cast<std::int64_t>((n_rows + together - 1) / together), n_jobs, work,
                              [](std::int64_t, int) {});
        });
        return nb::cast(Output<double>(out->data(), {n_rows, width}, owner));
    }

    // Where each row's nodes start, the nodes, and the weight of each.
    nb::object ends(Input<std::uint16_t> codes) const {
        check_width(codes);
        std::vector<std::int64_t> start{0};
        std::vector<std::int64_t> nodes;
        std::vector<double> weights;
        without_gil(true, [&] {
            GraphWalk walk(view_);
            for (std::size_t i = 0; i < codes.shape(0); ++i) {
                walk.walk(codes.data() + i * codes.shape(1), [&](std::int32_t node, double weight) {
                    nodes.push_back(node);
                    weights.push_back(weight);
                });
                start.push_back(static_cast<std::int64_t>(nodes.size()));
            }
        });
        return nb::make_tuple(to_numpy(std::move(start)), to_numpy(std::move(nodes)), to_numpy(std::move(weights)));
    }

  private:
    void check_width(const Input<std::uint16_t>& codes) const {
        if (codes.ndim() != 2 || codes.shape(1) != n_codes_.size())
            throw std::invalid_argument("codes of the wrong width");
    }
    Input<double> stop_;
    Input<std::int64_t> first_edge_;
    Input<std::int32_t> column_, code_;
    Input<double> share_;
    Input<std::int64_t> first_child_;
    Input<std::int32_t> children_;
    Input<std::uint8_t> kind_;
    Input<std::int32_t> n_codes_;
    GraphView view_{};
};

inline std::unique_ptr<ExactHandle> make_exact(
    const std::string& name, int size, Input<double> prior, Input<std::uint16_t> codes, const std::vector<int>& n_codes,
    const std::vector<int>& kinds, Input<std::int64_t> place, std::int64_t n_places, Input<double> of_place,
    const std::vector<std::int64_t>& class_start, const std::vector<double>& log_split,
    const std::vector<double>& log_stop, bool only_nontrivial, std::int64_t max_regions, int n_jobs) {
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
