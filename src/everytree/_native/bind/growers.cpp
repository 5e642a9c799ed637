// Trees grown on codes.
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>

#include "bind/common.hpp"
#include "bind/modules.hpp"
#include "core/with_family.hpp"
#include "grow/criteria.hpp"
#include "grow/number_search.hpp"
#include "grow/tree.hpp"

namespace everytree::bind {

using namespace grow;
namespace {

using GrownArrays = std::tuple<Output<std::int32_t>, Output<std::int32_t>, Output<std::int32_t>, Output<std::int32_t>,
                               Output<std::int32_t>, Output<std::int32_t>>;

// The table and its targets; each call grows one tree, from any thread.
class Grower {
  public:
    virtual ~Grower() = default;
    virtual GrownTree grow(std::span<const std::int64_t> sample, std::span<const std::int32_t> columns,
                           const GrowRule& rule, std::uint64_t seed) const = 0;
    virtual std::int64_t n_rows() const = 0;
    virtual int n_columns() const = 0;
};

template <class Code, class Criterion, class Search, class Kept>
class TypedGrower final : public Grower {
  public:
    using Table = typename Search::Table;

    TypedGrower(Table columns, std::vector<std::uint8_t> has_missing, const Criterion& criterion, Kept kept)
        : columns_(std::move(columns)),
          has_missing_(std::move(has_missing)),
          criterion_(criterion),
          kept_(std::move(kept)) {}
    GrownTree grow(std::span<const std::int64_t> sample, std::span<const std::int32_t> columns, const GrowRule& rule,
                   std::uint64_t seed) const override {
        TreeGrower<Code, Criterion, Search> grower(columns_, criterion_, rule);
        grower.use_columns({columns.begin(), columns.end()});
        return grower.grow(sample, has_missing_.data(), seed);
    }
    std::int64_t n_rows() const override { return columns_.n_rows(); }
    int n_columns() const override { return columns_.n_columns(); }

  private:
    Table columns_;
    std::vector<std::uint8_t> has_missing_;
    Criterion criterion_;
    Kept kept_;  // what the criterion borrows
};

struct TableArrays {
    nb::handle codes;
    Input<std::int32_t> n_codes;
    Input<bool> has_missing;
};

// How splits are searched, for any type of codes.
template <class Criterion>
struct SearchOf {
    template <class Code>
    using Type = SplitSearch<Code, Criterion>;
};
template <>
struct SearchOf<PlainNumbers> {
    template <class Code>
    using Type = NumberSearch<Code, PlainNumbers>;
};
template <>
struct SearchOf<TwoClasses> {
    template <class Code>
    using Type = NumberSearch<Code, TwoClasses>;
};

template <class Criterion, class Kept>
std::unique_ptr<Grower> make(const TableArrays& table, std::size_t n_targets, const Criterion& criterion, Kept kept) {
    const auto with = [&]<class Code>(const Input<Code>& codes) -> std::unique_ptr<Grower> {
        if (codes.ndim() != 2) throw std::invalid_argument("codes must be a table");
        const auto n_rows = static_cast<std::int64_t>(codes.shape(0));
        const std::size_t n_columns = codes.shape(1);
        if (n_targets != codes.shape(0)) throw std::invalid_argument("codes and targets must have as many rows");
        if (table.n_codes.size() != n_columns || table.has_missing.size() != n_columns)
            throw std::invalid_argument("n_codes and has_missing must have one entry a column");
        if (n_rows >= std::int64_t{1} << 32) throw std::invalid_argument("a grower takes fewer than 2**32 rows");
        std::vector<int> n_codes(table.n_codes.data(), table.n_codes.data() + n_columns);
        for (const int n : n_codes)
            if (n < 0 || n > missing_code<Code>) throw std::invalid_argument("n_codes does not fit the type of codes");
        using Search = typename SearchOf<Criterion>::template Type<Code>;
        typename Search::Table columns({codes.data(), static_cast<std::ptrdiff_t>(n_columns)}, n_rows,
                                       std::move(n_codes));
        std::vector<std::uint8_t> has_missing(table.has_missing.data(), table.has_missing.data() + n_columns);
        return std::make_unique<TypedGrower<Code, Criterion, Search, Kept>>(std::move(columns), std::move(has_missing),
                                                                            criterion, std::move(kept));
    };
    Input<std::uint8_t> narrow;
    Input<std::uint16_t> wide;
    if (nb::try_cast(table.codes, narrow, false)) return with(narrow);
    if (nb::try_cast(table.codes, wide, false)) return with(wide);
    throw std::invalid_argument("codes must be uint8 or uint16");
}

template <Impurity impurity>
std::unique_ptr<Grower> make_of_impurity(const TableArrays& table, Input<std::int64_t> labels,
                                         std::optional<Input<double>> weight, int n_classes) {
    const std::size_t n = labels.size();
    if (weight) {
        const WeightedClassCriterion<impurity> criterion(labels.data(), weight->data(), n_classes);
        return make(table, n, criterion, std::pair(labels, *weight));
    }
    if constexpr (impurity == Impurity::gini)
        if (n_classes == 2 && static_cast<std::int64_t>(n) < Packed::most_rows)
            return make(table, n, TwoClasses(labels.data()), labels);
    if (n_classes == 2) return make(table, n, ClassCriterion<impurity, 2>(labels.data(), 2), labels);
    return make(table, n, ClassCriterion<impurity, 0>(labels.data(), n_classes), labels);
}

void check_as_long(const std::optional<Input<double>>& weight, std::size_t n) {
    if (weight && weight->size() != n) throw std::invalid_argument("weight must have one entry a row");
}

std::unique_ptr<Grower> class_grower(nb::handle codes, Input<std::int32_t> n_codes, Input<bool> has_missing,
                                     Input<std::int64_t> y, std::optional<Input<double>> weight, int n_classes,
                                     const std::string& criterion) {
    for (const std::int64_t label : to_span(y))
        if (label < 0 || label >= n_classes) throw std::invalid_argument("y must be class numbers below n_classes");
    check_as_long(weight, y.size());
    const TableArrays table{codes, n_codes, has_missing};
    if (criterion == "gini") return make_of_impurity<Impurity::gini>(table, y, weight, n_classes);
    if (criterion == "entropy") return make_of_impurity<Impurity::entropy>(table, y, weight, n_classes);
    throw std::invalid_argument("criterion must be 'gini' or 'entropy'");
}

std::unique_ptr<Grower> number_grower(nb::handle codes, Input<std::int32_t> n_codes, Input<bool> has_missing,
                                      Input<double> y, std::optional<Input<double>> weight) {
    check_as_long(weight, y.size());
    if (!weight && static_cast<std::int64_t>(y.size()) < Packed::most_rows)
        return make({codes, n_codes, has_missing}, y.size(), PlainNumbers(y.data()), y);
    const NumberCriterion criterion(y.data(), weight ? weight->data() : nullptr);
    return make({codes, n_codes, has_missing}, y.size(), criterion, std::pair(y, weight));
}

std::unique_ptr<Grower> evidence_grower(nb::handle codes, Input<std::int32_t> n_codes, Input<bool> has_missing,
                                        Input<double> statistics, const std::string& name, int size,
                                        Input<double> prior) {
    return with_family(name, size, [&](auto family) -> std::unique_ptr<Grower> {
        using Family = decltype(family);
        const auto width = static_cast<std::size_t>(family.layout.size());
        if (prior.size() != static_cast<std::size_t>(family.n_hyper) || statistics.size() % width != 0)
            throw std::invalid_argument("prior and statistics must be those of the family");
        struct Kept {
            std::unique_ptr<Family> family;
            std::unique_ptr<double[]> prior;
            Input<double> statistics;
        };
        Kept kept{std::make_unique<Family>(family),
                  std::make_unique<double[]>(static_cast<std::size_t>(family.n_prior)), statistics};
        family.prepare(prior.data(), kept.prior.get());
        if constexpr (requires { kept.family->tabulate(kept.prior.get()); }) kept.family->tabulate(kept.prior.get());
        const EvidenceCriterion<Family> criterion(*kept.family, kept.prior.get(), statistics.data());
        return make({codes, n_codes, has_missing}, statistics.size() / width, criterion, std::move(kept));
    });
}

GrownArrays grow_tree(const Grower& self, Input<std::int64_t> sample, std::optional<Input<std::int32_t>> columns,
                      std::uint64_t seed, bool random_splits, int max_features, std::int64_t min_samples_leaf,
                      int max_depth, std::int64_t max_leaf_nodes) {
    for (const std::int64_t row : to_span(sample))
        if (row < 0 || row >= self.n_rows()) throw std::invalid_argument("sample must be numbers of rows");
    std::vector<std::int32_t> used(static_cast<std::size_t>(self.n_columns()));
    std::iota(used.begin(), used.end(), 0);
    if (columns) {
        check_columns(to_span(*columns), self.n_columns());
        used.assign(columns->data(), columns->data() + columns->size());
    }
    const GrowRule rule{random_splits ? Splitter::random : Splitter::best, max_features, min_samples_leaf, max_depth,
                        max_leaf_nodes};
    GrownTree tree = without_gil(true, [&] { return self.grow(to_span(sample), used, rule, seed); });
    return {to_numpy(std::move(tree.feature)),       to_numpy(std::move(tree.first_child)),
            to_numpy(std::move(tree.n_children)),    to_numpy(std::move(tree.threshold)),
            to_numpy(std::move(tree.missing_child)), to_numpy(std::move(tree.terminal))};
}

}  // namespace

void bind_growers(nb::module_& module) {
    nb::class_<Grower>(module, "Grower")
        .def("grow", &grow_tree, nb::kw_only(), "sample"_a, "columns"_a = nb::none(), "seed"_a, "random_splits"_a,
             "max_features"_a, "min_samples_leaf"_a, "max_depth"_a, "max_leaf_nodes"_a);
    module.def("class_grower", &class_grower, nb::kw_only(), "codes"_a, "n_codes"_a, "has_missing"_a, "y"_a,
               "weight"_a.none(), "n_classes"_a, "criterion"_a);
    module.def("number_grower", &number_grower, nb::kw_only(), "codes"_a, "n_codes"_a, "has_missing"_a, "y"_a,
               "weight"_a.none());
    module.def("evidence_grower", &evidence_grower, nb::kw_only(), "codes"_a, "n_codes"_a, "has_missing"_a,
               "statistics"_a, "name"_a, "size"_a, "prior"_a);
}

}  // namespace everytree::bind
