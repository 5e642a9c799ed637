// Comparison of priors on rows left out.
#include "held_out/held_out.hpp"

#include <mutex>

#include "bind/buffers.hpp"
#include "bind/modules.hpp"
#include "bind/tree.hpp"
#include "core/parallel.hpp"
#include "core/with_family.hpp"
#include "held_out/pooled.hpp"

namespace everytree::bind {

using namespace held_out;
namespace {

// The start of each row's nodes, their log weights and posterior parameters, and what each row's mixture says of it.
using Components = std::tuple<Output<std::int64_t>, Output<double>, Output<double>, Output<double>>;

SplitPriors split_priors_of(std::int64_t n_nodes, const Input<double>& log_split, const Input<double>& log_stop) {
    if (log_split.ndim() != 2 || log_split.size() != log_stop.size() ||
        (log_split.shape(1) != 1 && static_cast<std::int64_t>(log_split.shape(1)) != n_nodes))
        throw std::invalid_argument("split priors must be one for all nodes or one for each");
    return {log_split.data(), log_stop.data(), static_cast<std::int64_t>(log_split.shape(0)),
            static_cast<std::ptrdiff_t>(log_split.shape(1))};
}

// One tree and the rows it predicts, of any family; all that does not depend on priors is computed once.
class HeldOutTree {
  public:
    virtual ~HeldOutTree() = default;
    virtual std::int64_t n_nodes() const = 0;
    virtual std::size_t n_prior() const = 0;   // numbers of one prior of the leaves
    virtual std::size_t n_values() const = 0;  // numbers that are predicted for a row
    virtual std::size_t n_scored() const = 0;
    virtual bool writes_logs() const = 0;
    // For each prior of the leaves and each of the splits: (n leaf priors, n split priors, n_scored, n_values).
    virtual void predict(std::span<const double> priors, const SplitPriors& splits, double* out) const = 0;
    virtual void components(const double* prior, const SplitPriors& splits, std::vector<std::int64_t>& start,
                            std::vector<double>& log_weights, std::vector<double>& parameters,
                            std::vector<double>& values) const = 0;
};

// The rows of a tree as Python has them, kept alive.
struct HeldOutArrays {
    nb::object tree;
    Input<double> statistics;
    Input<std::int32_t> ends;
    Input<std::uint8_t> counted, scored;
    Input<std::int64_t> group_start;
};

template <class Family>
class HeldOutTreeOf : public HeldOutTree {
  public:
    HeldOutTreeOf(const Family& family, const HeldOutArrays& arrays, const RowColumns& columns)
        : family_(family), arrays_(arrays), tree_(nb::cast<const Tree&>(arrays.tree).view), rows_(family.n_extra) {
        const auto n_rows = static_cast<std::int64_t>(arrays_.ends.size());
        check(n_rows);
        rows_.read(family_, columns, 0, n_rows);
        held_ = {rows_.view(),
                 arrays_.ends.data(),
                 n_rows,
                 arrays_.counted.data(),
                 arrays_.scored.data(),
                 arrays_.group_start.data(),
                 static_cast<std::int64_t>(arrays_.group_start.size()) - 1};
        paths_.emplace(tree_, held_, Kernel::n_classes(family_));
    }
    std::int64_t n_nodes() const override { return tree_.n_nodes; }
    std::size_t n_prior() const override { return static_cast<std::size_t>(family_.n_prior); }
    std::size_t n_values() const override { return static_cast<std::size_t>(Kernel::n_values(family_)); }
    std::size_t n_scored() const override { return paths_->first_like.size(); }
    bool writes_logs() const override { return !Kernel::writes_classes; }

    void predict(std::span<const double> priors, const SplitPriors& splits, double* out) const override {
        const std::unique_lock alone(using_kept_, std::try_to_lock);
        if (alone && !kept_ && is_small()) kept_.emplace(family_, tree_, arrays_.statistics.data());
        if (alone && kept_) {
            predict_by(*kept_, priors, splits, out);
        } else {
            Kernel kernel(family_, tree_, arrays_.statistics.data());
            predict_by(kernel, priors, splits, out);
        }
    }
    void components(const double* prior, const SplitPriors& splits, std::vector<std::int64_t>& start,
                    std::vector<double>& log_weights, std::vector<double>& parameters,
                    std::vector<double>& values) const override {
        const HeldOutPaths every(tree_, held_, 0);  // of twins too
        Kernel kernel(family_, tree_, arrays_.statistics.data());
        kernel.use(prior);
        kernel.components(held_, every, splits, start, log_weights, parameters, values);
    }

  private:
    using Kernel = HeldOut<Family>;

    void predict_by(Kernel& kernel, std::span<const double> priors, const SplitPriors& splits, double* out) const {
        const std::size_t of_prior = static_cast<std::size_t>(splits.n) * n_scored() * n_values();
        for (std::size_t p = 0; p < priors.size() / n_prior(); ++p) {
            const double* const prior = priors.data() + p * n_prior();
            double* const to = out + p * of_prior;
            if (kernel.predict_without_splits(prior, held_, *paths_, splits, to)) continue;
            kernel.use(prior);
            kernel.predict(held_, *paths_, splits, to);
        }
    }
    // Whether what does not depend on priors is kept from one call to the next: some megabytes.
    bool is_small() const {
        return tree_.n_nodes <= 1 << 18 && paths_->touched.size() * family_.layout.size() <= 1 << 17;
    }

    void check(std::int64_t n_rows) const {
        const auto n = static_cast<std::size_t>(n_rows);
        if (static_cast<std::int64_t>(arrays_.statistics.size()) != tree_.n_nodes * family_.layout.size() ||
            arrays_.counted.size() != n || arrays_.scored.size() != n)
            throw std::invalid_argument("arrays of the wrong size");
        for (const std::int32_t end : to_span(arrays_.ends))
            if (end < 0 || end >= tree_.n_nodes) throw std::invalid_argument("ends: no such node");
        const auto start = to_span(arrays_.group_start);
        if (start.empty() || start.front() != 0 || start.back() != n_rows ||
            !std::is_sorted(start.begin(), start.end()))
            throw std::invalid_argument("group_start must rise from 0 to the number of rows");
    }

    Family family_;
    HeldOutArrays arrays_;
    TreeView tree_;
    RowChunk rows_;
    HeldOutRows held_{};
    std::optional<HeldOutPaths> paths_;
    mutable std::optional<Kernel> kept_;
    mutable std::mutex using_kept_;
};

// None if the columns cannot be read in place.
std::optional<std::unique_ptr<HeldOutTree>> make_held_out(const std::string& name, int size, nb::object tree,
                                                          Input<double> statistics, Input<std::int32_t> ends,
                                                          Input<std::uint8_t> counted, nb::handle y, nb::handle weight,
                                                          nb::handle extra, double constant, Input<std::uint8_t> scored,
                                                          Input<std::int64_t> group_start) {
    return with_family(name, size, [&](const auto& family) -> std::optional<std::unique_ptr<HeldOutTree>> {
        RowBuffers buffers;
        if (!buffers.open(y, weight, extra, family.n_extra, constant, static_cast<std::int64_t>(ends.size())))
            return std::nullopt;
        return std::make_unique<HeldOutTreeOf<std::decay_t<decltype(family)>>>(
            family, HeldOutArrays{tree, statistics, ends, counted, scored, group_start}, buffers.columns);
    });
}

// The mixtures behind the predictions, and the predictions, for one prior.
Components components(const HeldOutTree& tree, Input<double> prior, Input<double> log_split, Input<double> log_stop) {
    const SplitPriors splits = split_priors_of(tree.n_nodes(), log_split, log_stop);
    if (prior.size() != tree.n_prior() || splits.n != 1) throw std::invalid_argument("one prior at a time");
    std::vector<std::int64_t> start;
    std::vector<double> log_weights, parameters, values;
    without_gil(true, [&] { tree.components(prior.data(), splits, start, log_weights, parameters, values); });
    return Components(to_numpy(std::move(start)), to_numpy(std::move(log_weights)), to_numpy(std::move(parameters)),
                      to_numpy(std::move(values)));
}

// Many trees, and the priors to try in them, checked.
class HeldOutTrees {
  public:
    HeldOutTrees(const std::vector<const HeldOutTree*>& trees, Input<double> priors,
                 const std::vector<Input<double>>& log_split, const std::vector<Input<double>>& log_stop)
        : trees_(trees), priors_(to_span(priors)) {
        if (log_split.size() != trees.size() || log_stop.size() != trees.size())
            throw std::invalid_argument("split priors must be there for each tree");
        for (std::size_t t = 0; t < trees.size(); ++t) {
            if (trees[t] == nullptr) throw std::invalid_argument("trees: None is no tree");
            if (priors.size() % trees[t]->n_prior() != 0) throw std::invalid_argument("priors of the wrong size");
            splits_.push_back(split_priors_of(trees[t]->n_nodes(), log_split[t], log_stop[t]));
        }
    }
    std::size_t n() const { return trees_.size(); }
    const HeldOutTree& operator[](std::size_t t) const { return *trees_[t]; }
    std::size_t n_leaf_priors(std::size_t t) const { return priors_.size() / trees_[t]->n_prior(); }
    std::size_t n_split_priors(std::size_t t) const { return static_cast<std::size_t>(splits_[t].n); }
    std::size_t n_answers(std::size_t t) const {
        return n_leaf_priors(t) * n_split_priors(t) * trees_[t]->n_scored() * trees_[t]->n_values();
    }
    void predict(std::size_t t, double* out) const { trees_[t]->predict(priors_, splits_[t], out); }

  private:
    std::vector<const HeldOutTree*> trees_;
    std::span<const double> priors_;
    std::vector<SplitPriors> splits_;
};

// Predictions of each tree for its scored rows, each without the row's group.
std::vector<Output<double>> predict_held_out(const std::vector<const HeldOutTree*>& trees, Input<double> priors,
                                             const std::vector<Input<double>>& log_split,
                                             const std::vector<Input<double>>& log_stop, int n_jobs) {
    const HeldOutTrees kernels(trees, priors, log_split, log_stop);
    std::vector<std::vector<double>> answers(kernels.n());
    without_gil(true, [&] {
        in_chunks(static_cast<std::int64_t>(kernels.n()), n_jobs, [&](std::int64_t chunk, int) {
            const auto t = static_cast<std::size_t>(chunk);
            answers[t].resize(kernels.n_answers(t));
            kernels.predict(t, answers[t].data());
        });
    });
    std::vector<Output<double>> found;
    for (std::size_t t = 0; t < kernels.n(); ++t)
        found.push_back(to_numpy(std::move(answers[t]), {kernels.n_leaf_priors(t), kernels.n_split_priors(t),
                                                         kernels[t].n_scored(), kernels[t].n_values()}));
    return found;
}

// Adds the predictions of trees to `pooled`, (n leaf priors, n split priors, n rows, n_values), in the order of the
// trees: probabilities are added up, and so are densities, whose logs these are. `rows` has the places of each tree's
// scored rows.
void pool_held_out(State<double> pooled, const std::vector<const HeldOutTree*>& trees,
                   const std::vector<Input<std::int64_t>>& rows, Input<double> priors,
                   const std::vector<Input<double>>& log_split, const std::vector<Input<double>>& log_stop,
                   int n_jobs) {
    const HeldOutTrees kernels(trees, priors, log_split, log_stop);
    if (pooled.ndim() != 4 || rows.size() != kernels.n()) throw std::invalid_argument("arrays of the wrong size");
    const std::size_t n_rows = pooled.shape(2);
    for (std::size_t t = 0; t < kernels.n(); ++t) {
        if (kernels.n_leaf_priors(t) != pooled.shape(0) || kernels.n_split_priors(t) != pooled.shape(1) ||
            kernels[t].n_values() != pooled.shape(3) || kernels[t].n_scored() != rows[t].size())
            throw std::invalid_argument("arrays of the wrong size");
        for (const std::int64_t row : to_span(rows[t]))
            if (row < 0 || row >= static_cast<std::int64_t>(n_rows)) throw std::invalid_argument("rows: no such row");
    }
    const std::size_t n_priors = pooled.shape(0) * pooled.shape(1), n_values = pooled.shape(3);
    without_gil(true, [&] {
        std::vector<std::vector<double>> answers(static_cast<std::size_t>(std::max(n_jobs, 1)));
        in_ordered_chunks(
            static_cast<std::int64_t>(kernels.n()), n_jobs,
            [&](std::int64_t chunk, int worker) {
                const auto t = static_cast<std::size_t>(chunk);
                auto& mine = answers[static_cast<std::size_t>(worker)];
                mine.resize(kernels.n_answers(t));
                kernels.predict(t, mine.data());
            },
            [&](std::int64_t chunk, int worker) {
                const auto t = static_cast<std::size_t>(chunk);
                add_answers(answers[static_cast<std::size_t>(worker)].data(), to_span(rows[t]), n_priors, n_rows,
                            n_values, kernels[t].writes_logs(), pooled.data());
            });
    });
}

}  // namespace

void bind_held_out(nb::module_& module) {
    nb::class_<HeldOutTree>(module, "HeldOutTree")
        .def("components", &components, nb::kw_only(), "prior"_a, "log_split"_a, "log_stop"_a);
    module.def("make_held_out", &make_held_out, nb::kw_only(), "name"_a, "size"_a, "tree"_a, "statistics"_a, "ends"_a,
               "counted"_a, "y"_a, "weight"_a.none(), "extra"_a.none(), "constant"_a, "scored"_a, "group_start"_a);
    module.def("predict_held_out", &predict_held_out, nb::kw_only(), "trees"_a, "priors"_a, "log_split"_a, "log_stop"_a,
               "n_jobs"_a);
    module.def("pool_held_out", &pool_held_out, nb::kw_only(), "pooled"_a, "trees"_a, "rows"_a, "priors"_a,
               "log_split"_a, "log_stop"_a, "n_jobs"_a);
}

}  // namespace everytree::bind
