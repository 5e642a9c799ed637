// The exact sum over trees and splits: one C++ type per family behind one Python type.
#include <memory>
#include <mutex>
#include <optional>

#include "bind/common.hpp"
#include "bind/guard.hpp"
#include "bind/modules.hpp"
#include "core/with_family.hpp"
#include "exact/answers.hpp"
#include "exact/continued.hpp"
#include "exact/inspect.hpp"
#include "exact/leaves.hpp"

namespace everytree::bind {

using namespace exact;
namespace {

class ExactHandle {
  public:
    virtual ~ExactHandle() = default;
    virtual void run(std::int64_t regions, std::optional<std::vector<std::int64_t>> expansions, double seconds,
                     nb::object progress) = 0;
    virtual nb::dict list_continued(std::int64_t regions, nb::object progress) = 0;
    virtual void sum_up(Input<double> given, nb::object progress) = 0;
    virtual Output<double> continued_mass() const = 0;
    virtual std::vector<std::int64_t> n_expanded() const = 0;
    virtual double log_upper() const = 0;
    virtual double threshold(double truncation, std::int64_t most, bool with_unknown) const = 0;
    virtual double left_out(double threshold, bool with_unknown) const = 0;
    virtual nb::dict leaves(double threshold, bool with_unknown) const = 0;
    virtual Output<double> feature_use(double negligible) const = 0;
    virtual double log_evidence() const = 0;
    virtual std::vector<std::int64_t> n_regions() const = 0;
    virtual nb::dict region(int depth, std::int64_t number) const = 0;
    virtual nb::dict summary() const = 0;
    virtual std::pair<double, double> tree_sums() const = 0;
};

template <class Family>
class TypedExact final : public ExactHandle {
  public:
    TypedExact(const Family& family, const double* prior, BitTable table, RowStatistics<Family> statistics,
               std::vector<std::uint64_t> rows, ExactOptions options)
        : kernel_(RegionReader<Family>(family, prior, std::move(table), std::move(statistics), std::move(rows),
                                       std::move(options))) {}

    void run(std::int64_t regions, std::optional<std::vector<std::int64_t>> expansions, double seconds,
             nb::object progress) override {
        if (kernel_.options().is_continued) throw std::invalid_argument("continued regions are summed up in two steps");
        std::lock_guard alone(guard_.writing);
        nb::gil_scoped_release released;
        forget_sums();
        Watch watch(check_signals);
        kernel_.run({regions, seconds, std::move(expansions)}, watch, telling(progress));
    }
    nb::dict list_continued(std::int64_t regions, nb::object progress) override {
        if (!kernel_.options().is_continued) throw std::invalid_argument("nothing is continued");
        std::lock_guard alone(guard_.writing);
        n_listed_ = -1;
        forget_sums();
        auto all = without_gil(true, [&] {
            Watch watch(check_signals);
            Budget budget;
            budget.regions = regions;
            kernel_.list(budget, watch, telling(progress));
            return continued_regions(kernel_);
        });
        n_listed_ = static_cast<std::int64_t>(all.start.size()) - 1;
        nb::dict out;
        out["start"] = to_numpy(std::move(all.start));
        out["column"] = to_numpy(std::move(all.column));
        out["codes"] = to_numpy(std::move(all.codes));
        out["first"] = to_numpy(std::move(all.first));
        out["place"] = to_numpy(std::move(all.place));
        return out;
    }
    void sum_up(Input<double> given, nb::object progress) override {
        std::lock_guard alone(guard_.writing);
        if (n_listed_ < 0 || static_cast<std::int64_t>(given.size()) != n_listed_)
            throw std::invalid_argument("one number for each region that was listed is needed");
        nb::gil_scoped_release released;
        forget_sums();
        Watch watch(check_signals);
        kernel_.sum_up(watch, telling(progress), given.data());
    }
    // Probability that each continued region is in the tree.
    Output<double> continued_mass() const override {
        if (!kernel_.options().is_continued) throw std::invalid_argument("nothing is continued");
        return to_numpy(std::vector<double>(sums().mass.back()));
    }
    std::vector<std::int64_t> n_expanded() const override { return kernel_.n_expanded(); }
    double log_upper() const override { return kernel_.log_upper(); }
    // The threshold below which shares of the posterior may be left out, and the total that this leaves out.
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
    Output<double> feature_use(double negligible) const override {
        const auto& mass = sums().mass;
        return to_numpy(
            without_gil(true, [&] { return exact::feature_use(kernel_, mass, negligible, Watch(check_signals)); }));
    }
    double log_evidence() const override { return kernel_.log_evidence(); }
    std::vector<std::int64_t> n_regions() const override {
        std::vector<std::int64_t> sizes;
        for (const Level& level : kernel_.levels()) sizes.push_back(static_cast<std::int64_t>(level.size()));
        return sizes;
    }
    nb::dict region(int depth, std::int64_t number) const override {
        RegionFacts facts = look_into(kernel_, depth, number);
        nb::dict out;
        out["log_leaf"] = facts.log_leaf;
        out["log_stop"] = facts.log_stop;
        out["log_split"] = to_numpy(std::move(facts.log_split));
        out["column"] = to_numpy(std::move(facts.column));
        out["code"] = to_numpy(std::move(facts.code));
        out["n_children"] = to_numpy(std::move(facts.n_children));
        out["children"] = to_numpy(std::move(facts.children));
        out["child_best"] = to_numpy(std::move(facts.child_best));
        return out;
    }
    nb::dict summary() const override {
        const ExactSummary& all = sums();
        nb::dict out;
        out["root_feature"] = to_numpy(std::vector<double>(all.root_feature));
        out["expected_splits"] = to_numpy(std::vector<double>(all.expected_splits));
        return out;
    }
    // Expected leaves of the tree, and the entropy of its distribution.
    std::pair<double, double> tree_sums() const override {
        std::lock_guard alone(guard_.writing);
        if (!tree_sums_) {
            std::unique_ptr<ExactSummary> all = summed(true);
            tree_sums_ = {all->expected_leaves, all->entropy};
            if (!sums_) sums_ = std::move(all);
        }
        return *tree_sums_;
    }

  private:
    static auto telling(const nb::object& progress) {
        return [&progress](int depth, std::size_t done, std::size_t total) {
            check_signals();
            nb::gil_scoped_acquire held;
            if (!progress.is_none()) progress(depth, done, total);
        };
    }
    // Computed on first use, by one thread at a time.
    const ExactSummary& sums() const {
        std::lock_guard alone(guard_.writing);
        if (!sums_) sums_ = summed(false);
        return *sums_;
    }
    std::unique_ptr<ExactSummary> summed(bool counts_unseen) const {
        return without_gil(true, [&] {
            return std::make_unique<ExactSummary>(summarise(kernel_, counts_unseen, Watch(check_signals)));
        });
    }
    void forget_sums() {
        sums_.reset();
        tree_sums_.reset();
    }
    Spread spread(bool with_unknown) const {
        Spread all = sums().ending;
        if (with_unknown) all.add(sums().ending_unknown);
        return all;
    }
    ExactKernel<Family> kernel_;
    mutable Guard guard_;
    mutable std::unique_ptr<ExactSummary> sums_;  // without regions without rows, or with them
    mutable std::optional<std::pair<double, double>> tree_sums_;
    std::int64_t n_listed_ = -1;  // continued regions
};

std::unique_ptr<ExactHandle> make_exact(const std::string& name, int size, Input<double> prior,
                                        Input<std::uint16_t> codes, const std::vector<int>& n_codes,
                                        const std::vector<int>& kinds, Input<std::int64_t> place, std::int64_t n_places,
                                        Input<double> of_place, const std::vector<std::int64_t>& class_start,
                                        const std::vector<double>& log_split, const std::vector<double>& log_stop,
                                        bool only_nontrivial, double negligible, double temperature, bool is_continued,
                                        int n_jobs) {
    const std::size_t n_columns = n_codes.size();
    if (codes.ndim() != 2 || codes.shape(1) != n_columns || kinds.size() != n_columns ||
        place.size() != codes.shape(0) || log_split.size() != log_stop.size() || n_places < 1)
        throw std::invalid_argument("arrays of the wrong size");
    const auto n_rows = static_cast<std::int64_t>(codes.shape(0));
    const std::vector<ColumnKind> kind_of = kinds_of(kinds, n_codes);
    check_codes(codes.data(), n_rows, n_codes);
    std::vector<std::uint64_t> rows = rows_as_bits(place.data(), n_rows, n_places);
    BitTable table(codes.data(), n_rows, n_codes, kind_of, {place.data(), place.data() + n_rows}, n_places);
    const int max_depth = static_cast<int>(log_split.size());
    ExactOptions options{max_depth,  only_nontrivial, log_split,    log_stop,
                         negligible, temperature,     is_continued, n_jobs};
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

}  // namespace

void bind_exact(nb::module_& module) {
    nb::class_<ExactHandle>(module, "Exact")
        .def("run", &ExactHandle::run, "regions"_a, "expansions"_a.none(), "seconds"_a, "progress"_a.none())
        .def("list_continued", &ExactHandle::list_continued, "regions"_a, "progress"_a.none())
        .def("sum_up", &ExactHandle::sum_up, "given"_a, "progress"_a.none())
        .def("continued_mass", &ExactHandle::continued_mass)
        .def("n_expanded", &ExactHandle::n_expanded)
        .def("log_upper", &ExactHandle::log_upper)
        .def("threshold", &ExactHandle::threshold, "truncation"_a, "most"_a, "with_unknown"_a)
        .def("left_out", &ExactHandle::left_out, "threshold"_a, "with_unknown"_a)
        .def("leaves", &ExactHandle::leaves, "threshold"_a, "with_unknown"_a)
        .def("feature_use", &ExactHandle::feature_use, "negligible"_a)
        .def("log_evidence", &ExactHandle::log_evidence)
        .def("n_regions", &ExactHandle::n_regions)
        .def("region", &ExactHandle::region, "depth"_a, "number"_a)
        .def("summary", &ExactHandle::summary)
        .def("tree_sums", &ExactHandle::tree_sums);
    module.def("make_exact", &make_exact, nb::kw_only(), "name"_a, "size"_a, "prior"_a, "codes"_a, "n_codes"_a,
               "kinds"_a, "place"_a, "n_places"_a, "of_place"_a, "class_start"_a, "log_split"_a, "log_stop"_a,
               "only_nontrivial"_a, "negligible"_a, "temperature"_a, "is_continued"_a, "n_jobs"_a);
}

}  // namespace everytree::bind
