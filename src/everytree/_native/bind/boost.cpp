// Chains of boosted trees.
#include <atomic>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>

#include "bind/buffers.hpp"
#include "bind/common.hpp"
#include "bind/modules.hpp"
#include "boost/additive.hpp"
#include "boost/chain.hpp"

namespace everytree::bind {

using namespace boost;
using namespace grow;
namespace {

// The table and its targets; each call runs one chain, from any thread.
class Booster {
  public:
    virtual ~Booster() = default;
    virtual Chain run(const std::uint8_t* role, const BoostRule& rule, std::uint64_t seed) const = 0;
    virtual std::int64_t n_rows() const = 0;
    virtual int n_columns() const = 0;
    std::atomic<bool> is_stopped{false};
};

struct TargetArrays {
    Input<double> y;
    std::optional<Input<double>> weight, exposure;
    int n_classes;
    BoostRows rows() const {
        return {y.data(), weight ? weight->data() : nullptr, exposure ? exposure->data() : nullptr,
                static_cast<std::int64_t>(y.size())};
    }
};

template <class Code, class Loss>
class TypedBooster final : public Booster {
  public:
    TypedBooster(const Input<Code>& codes, CodeColumns<Code> columns, std::vector<std::uint8_t> has_missing,
                 const Loss& loss, TargetArrays kept, std::optional<Points> points)
        : codes_(codes),
          columns_(std::move(columns)),
          has_missing_(std::move(has_missing)),
          loss_(loss),
          kept_(std::move(kept)),
          points_(std::move(points)) {}
    Chain run(const std::uint8_t* role, const BoostRule& rule, std::uint64_t seed) const override {
        const Codes<Code> codes{codes_.data(), static_cast<std::ptrdiff_t>(codes_.shape(1))};
        ChainBooster<Code, Loss> chain(columns_, codes, has_missing_.data(), loss_, kept_.rows(), rule,
                                       points_ ? &*points_ : nullptr);
        return chain.run(role, seed, is_stopped);
    }
    std::int64_t n_rows() const override { return columns_.n_rows(); }
    int n_columns() const override { return columns_.n_columns(); }

  private:
    Input<Code> codes_;
    CodeColumns<Code> columns_;
    std::vector<std::uint8_t> has_missing_;
    Loss loss_;
    TargetArrays kept_;
    std::optional<Points> points_;
};

template <class Code>
std::unique_ptr<Booster> make(const Input<Code>& codes, const Input<std::int32_t>& n_codes,
                              const Input<bool>& has_missing, const TargetArrays& target,
                              const std::optional<Input<double>>& points, const std::string& loss) {
    if (codes.ndim() != 2) throw std::invalid_argument("codes must be a table");
    const auto n_rows = static_cast<std::int64_t>(codes.shape(0));
    const std::size_t n_columns = codes.shape(1);
    if (target.y.size() != codes.shape(0)) throw std::invalid_argument("codes and y must have as many rows");
    if (n_codes.size() != n_columns || has_missing.size() != n_columns)
        throw std::invalid_argument("n_codes and has_missing must have one entry a column");
    if (n_rows >= std::int64_t{1} << 32) throw std::invalid_argument("boosting takes fewer than 2**32 rows");
    std::vector<int> known(n_codes.data(), n_codes.data() + n_columns);
    for (const int n : known)
        if (n < 0 || n > missing_code<Code>) throw std::invalid_argument("n_codes does not fit the type of codes");
    std::optional<Points> kept;
    if (points) {
        if (loss != "squared" && loss != "rate")
            throw std::invalid_argument("lines are for the losses 'squared' and 'rate'");
        if (static_cast<std::int64_t>(points->size()) != std::accumulate(known.begin(), known.end(), std::int64_t{0}))
            throw std::invalid_argument("points must have one entry for each code of each column");
        kept.emplace(points->data(), known);
    }
    CodeColumns<Code> columns({codes.data(), static_cast<std::ptrdiff_t>(n_columns)}, n_rows, std::move(known));
    std::vector<std::uint8_t> missing(has_missing.data(), has_missing.data() + n_columns);
    const auto of = [&]<class Loss>(const Loss& one) -> std::unique_ptr<Booster> {
        return std::make_unique<TypedBooster<Code, Loss>>(codes, std::move(columns), std::move(missing), one, target,
                                                          kept);
    };
    const BoostRows rows = target.rows();
    if (loss == "logit") return of(LogitLoss(rows));
    if (loss == "softmax") return of(SoftmaxLoss(rows, target.n_classes));
    if (loss == "shared softmax") return of(SharedSoftmaxLoss(rows, target.n_classes));
    if (loss == "squared") return of(SquaredLoss(rows));
    if (loss == "rate") return of(RateLoss(rows));
    throw std::invalid_argument("loss must be 'logit', 'softmax', 'shared softmax', 'squared' or 'rate'");
}

std::unique_ptr<Booster> booster(nb::handle codes, Input<std::int32_t> n_codes, Input<bool> has_missing,
                                 Input<double> y, std::optional<Input<double>> weight,
                                 std::optional<Input<double>> exposure, int n_classes, const std::string& loss,
                                 std::optional<Input<double>> points) {
    for (const auto& each : {weight, exposure})
        if (each && each->size() != y.size())
            throw std::invalid_argument("weight and exposure must have one entry a row");
    if (loss == "logit" || loss == "softmax" || loss == "shared softmax")
        for (const double label : to_span(y))
            if (!(label >= 0.0 && label < n_classes)) throw std::invalid_argument("y must be below n_classes");
    const TargetArrays target{y, weight, exposure, n_classes};
    Input<std::uint8_t> narrow;
    Input<std::uint16_t> wide;
    if (nb::try_cast(codes, narrow, false)) return make(narrow, n_codes, has_missing, target, points, loss);
    if (nb::try_cast(codes, wide, false)) return make(wide, n_codes, has_missing, target, points, loss);
    throw std::invalid_argument("codes must be uint8 or uint16");
}

void add_trees(nb::dict& out, Trees trees) {
    out["n_nodes"] = to_numpy(std::move(trees.n_nodes));
    out["feature"] = to_numpy(std::move(trees.feature));
    out["first_child"] = to_numpy(std::move(trees.first_child));
    out["n_children"] = to_numpy(std::move(trees.n_children));
    out["threshold"] = to_numpy(std::move(trees.threshold));
    out["missing_child"] = to_numpy(std::move(trees.missing_child));
    const std::size_t n_nodes = trees.gain.size();
    out["value"] = to_numpy(std::move(trees.value), {n_nodes, trees.n_values});
    out["gain"] = to_numpy(std::move(trees.gain));
    out["mass"] = to_numpy(std::move(trees.mass));
}

nb::dict run(const Booster& self, Input<std::uint8_t> role, Input<std::int32_t> columns, std::uint64_t seed,
             double learning_rate, double tau, double split_prior, int max_steps, int patience, int max_leaf_nodes,
             int max_depth, std::int64_t min_samples_leaf, double subsample, double max_features,
             std::int64_t max_rows) {
    if (static_cast<std::int64_t>(role.size()) != self.n_rows())
        throw std::invalid_argument("role must have one entry a row");
    for (const std::uint8_t each : to_span(role))
        if (each > static_cast<std::uint8_t>(Role::left_out)) throw std::invalid_argument("role must be 0, 1 or 2");
    check_columns(to_span(columns), self.n_columns());
    const BoostRule rule{learning_rate, tau,
                         split_prior,   max_steps,
                         patience,      max_leaf_nodes,
                         max_depth,     min_samples_leaf,
                         subsample,     max_features,
                         max_rows,      {columns.data(), columns.data() + columns.size()}};
    Chain chain = without_gil(true, [&] { return self.run(role.data(), rule, seed); });
    nb::dict out;
    out["n_steps"] = chain.n_steps;
    out["n_steps_of_aside"] = chain.n_steps_of_aside;
    add_trees(out, std::move(chain.trees));
    nb::dict lined;
    add_trees(lined, std::move(chain.lined));
    lined["columns"] = to_numpy(std::move(chain.line_columns));
    lined["gain_of_line"] = to_numpy(std::move(chain.gain_of_line));
    out["lined"] = lined;
    out["losses"] = to_numpy(std::move(chain.losses));
    const std::size_t n_outputs = chain.base.size(), n_aside = chain.aside.size() / n_outputs;
    out["aside"] = to_numpy(std::move(chain.aside), {n_aside, n_outputs});
    out["base"] = to_numpy(std::move(chain.base));
    return out;
}

// Trees as Python holds them, checked: nothing that is read here may lead out of the arrays.
std::unique_ptr<AdditiveTrees> additive_trees(Input<std::int32_t> n_nodes, Input<std::int32_t> feature,
                                              Input<std::int32_t> first_child, Input<std::int32_t> threshold,
                                              Input<std::int32_t> missing_child, Input<double> value, int n_outputs,
                                              Input<std::uint16_t> known) {
    std::int64_t total = 0;
    for (const std::int32_t n : to_span(n_nodes)) {
        if (n < 1) throw std::invalid_argument("n_nodes must be positive");
        total += n;
    }
    const auto n_all = static_cast<std::size_t>(total);
    if (value.ndim() != 2) throw std::invalid_argument("value must be a table");
    for (const std::size_t size :
         {feature.size(), first_child.size(), threshold.size(), missing_child.size(), value.shape(0)})
        if (size != n_all) throw std::invalid_argument("arrays must have one entry a node");
    const auto n_values = static_cast<int>(value.shape(1));
    if (n_outputs < 1 || (n_values != 1 && n_values != n_outputs))
        throw std::invalid_argument("a node must have one value, or one for each output");
    if (n_nodes.size() * value.shape(1) % static_cast<std::size_t>(n_outputs) != 0)
        throw std::invalid_argument("there must be as many trees for each output");
    SmallTrees trees;
    std::size_t first = 0;
    for (const std::int32_t n : to_span(n_nodes)) {
        for (std::int32_t s = 0; s < n; ++s) {
            const std::size_t at = first + static_cast<std::size_t>(s);
            const std::int32_t child = first_child.data()[at], column = feature.data()[at], cut = threshold.data()[at];
            const std::int32_t missing = missing_child.data()[at];
            if (column < 0) continue;
            if (static_cast<std::size_t>(column) >= known.size() || child <= s || child + 1 >= n || cut < 0 ||
                cut > 65534 || missing < -1 || missing > 1)
                throw std::invalid_argument("node " + std::to_string(s) + " of a tree is not a split");
        }
        trees.add(feature.data() + first, first_child.data() + first, threshold.data() + first,
                  missing_child.data() + first, n);
        first += static_cast<std::size_t>(n);
    }
    return std::make_unique<AdditiveTrees>(
        std::move(trees), std::vector<double>(value.data(), value.data() + value.size()), n_values, n_outputs,
        std::vector<std::uint16_t>(known.data(), known.data() + known.size()));
}

// (n_rows, n_outputs), or None for a table that cannot be read in place.
std::optional<Output<double>> scores(const AdditiveTrees& self, nb::handle X, int n_jobs) {
    CodeBuffer buffer;
    if (!buffer.open(X, {self.n_features(), true})) return std::nullopt;
    const auto n_rows = static_cast<std::size_t>(buffer.n_rows()),
               n_outputs = static_cast<std::size_t>(self.n_outputs());
    std::vector<double> out(n_rows * n_outputs, 0.0);
    without_gil(true, [&] {
        if (buffer.is_narrow())
            self.scores<std::uint8_t>(buffer.table(), n_jobs, out.data());
        else
            self.scores<std::uint16_t>(buffer.table(), n_jobs, out.data());
    });
    return to_numpy(std::move(out), {n_rows, n_outputs});
}

// Weight of the rows in each node of all trees, or None for a table that cannot be read in place.
std::optional<Output<double>> count(const AdditiveTrees& self, nb::handle X, std::optional<Input<double>> weight,
                                    int n_jobs) {
    CodeBuffer buffer;
    if (!buffer.open(X, {self.n_features(), true})) return std::nullopt;
    if (weight && static_cast<std::int64_t>(weight->size()) != buffer.n_rows())
        throw std::invalid_argument("weight must have one entry a row");
    std::vector<double> out(self.n_nodes(), 0.0);
    const double* const of_row = weight ? weight->data() : nullptr;
    without_gil(true, [&] {
        if (buffer.is_narrow())
            self.count<std::uint8_t>(buffer.table(), of_row, n_jobs, out.data());
        else
            self.count<std::uint16_t>(buffer.table(), of_row, n_jobs, out.data());
    });
    return to_numpy(std::move(out));
}

}  // namespace

void bind_boost(nb::module_& module) {
    nb::class_<Booster>(module, "Booster")
        .def("run", &run, nb::kw_only(), "role"_a, "columns"_a, "seed"_a, "learning_rate"_a, "tau"_a, "split_prior"_a,
             "max_steps"_a, "patience"_a, "max_leaf_nodes"_a, "max_depth"_a, "min_samples_leaf"_a, "subsample"_a,
             "max_features"_a, "max_rows"_a)
        .def("stop", [](Booster& self) { self.is_stopped = true; });
    nb::class_<AdditiveTrees>(module, "AdditiveTrees")
        .def("scores", &scores, "X"_a.none(), "n_jobs"_a)
        .def("count", &count, "X"_a.none(), "weight"_a.none(), "n_jobs"_a);
    module.def("additive_trees", &additive_trees, nb::kw_only(), "n_nodes"_a, "feature"_a, "first_child"_a,
               "threshold"_a, "missing_child"_a, "value"_a, "n_outputs"_a, "known"_a);
    module.def("booster", &booster, nb::kw_only(), "codes"_a, "n_codes"_a, "has_missing"_a, "y"_a, "weight"_a.none(),
               "exposure"_a.none(), "n_classes"_a, "loss"_a, "points"_a = nb::none());
}

}  // namespace everytree::bind
