// A posterior over one meta-tree: one C++ type per family behind one Python type.
#include "core/posterior.hpp"

#include <atomic>
#include <mutex>

#include "bind/buffers.hpp"
#include "bind/forest.hpp"
#include "bind/guard.hpp"
#include "bind/modules.hpp"
#include "bind/tree.hpp"
#include "core/shared.hpp"
#include "core/taking_away.hpp"
#include "core/with_family.hpp"

namespace everytree::bind {
namespace {

class PosteriorHandle {
  public:
    virtual ~PosteriorHandle() = default;
    // False if the arguments cannot be read in place.
    virtual bool update(nb::handle X, nb::handle y, nb::handle weight, nb::handle extra, int n_jobs) = 0;
    virtual void merge(Input<double> other) = 0;
    virtual std::int64_t lacking(Input<double> other) = 0;
    virtual void take_away(Input<double> other) = 0;
    virtual void sweep_all() = 0;
    virtual std::optional<Output<double>> leave_one_out(nb::handle X, nb::handle y, nb::handle weight, nb::handle extra,
                                                        int n_jobs) = 0;
    virtual std::optional<std::pair<std::int64_t, std::int64_t>> update_shared(const SharedPlan& plan,
                                                                               const std::vector<PosteriorHandle*>& all,
                                                                               nb::handle X, nb::handle y,
                                                                               nb::handle weight, nb::handle extra,
                                                                               int n_jobs) = 0;
    // All posteriors of a forest at once, each with the rows its tree can place.
    virtual bool update_forest(const ForestHandle& forest, const std::vector<PosteriorHandle*>& all, nb::handle X,
                               nb::handle y, nb::handle weight, nb::handle extra, int n_jobs) = 0;
    Guard guard;
    // Of the arrays: changes before anything is written to them. Atomic: it is read without the guard.
    std::atomic<std::int64_t> version{0};
};

struct PosteriorState {
    nb::object tree_object;  // keeps the arrays behind the views alive
    const Tree* tree;
    Input<double> log_split, log_stop, leaf_prior;
    State<double> statistics, leaf, subtree, split_prob;
    State<std::int64_t> n_rows;
    double extra_constant;

    PosteriorArrays arrays(std::size_t n_prior) const {
        const std::ptrdiff_t split_stride = log_split.size() == 1 ? 0 : 1;
        const std::ptrdiff_t prior_stride = leaf_prior.size() == n_prior ? 0 : static_cast<std::ptrdiff_t>(n_prior);
        return {tree->view,
                &tree->checks,
                {{log_split.data(), split_stride}, {log_stop.data(), split_stride}},
                {leaf_prior.data(), prior_stride},
                statistics.data(),
                {leaf.data(), subtree.data(), split_prob.data()}};
    }
};

template <class Family>
class TypedPosterior final : public PosteriorHandle {
  public:
    TypedPosterior(const Family& family, PosteriorState state)
        : state_(std::move(state)), kernel_(family, state_.arrays(family.n_prior)) {}

    bool update(nb::handle X, nb::handle y, nb::handle weight, nb::handle extra, int n_jobs) override {
        CodeBuffer codes;
        RowBuffers rows;
        if (!open(codes, rows, X, y, weight, extra)) return false;
        std::lock_guard alone(guard.writing);
        ++version;
        *state_.n_rows.data() += without_gil(codes.n_rows() > rows_worth_releasing, [&] {
            return codes.is_narrow() ? kernel_.update(reader<std::uint8_t>(codes), rows.columns, n_jobs)
                                     : kernel_.update(reader<std::uint16_t>(codes), rows.columns, n_jobs);
        });
        return true;
    }

    void merge(Input<double> other) override {
        std::lock_guard alone(guard.writing);
        ++version;
        nb::gil_scoped_release released;
        kernel_.merge(other.data());
    }

    std::int64_t lacking(Input<double> other) override {
        std::lock_guard alone(guard);
        nb::gil_scoped_release released;
        return everytree::lacking(kernel_, other.data());
    }

    void take_away(Input<double> other) override {
        std::lock_guard alone(guard.writing);
        ++version;
        nb::gil_scoped_release released;
        everytree::take_away(kernel_, other.data());
    }

    void sweep_all() override {
        std::lock_guard alone(guard.writing);
        ++version;
        nb::gil_scoped_release released;
        kernel_.sweep_all();
    }

    std::optional<Output<double>> leave_one_out(nb::handle X, nb::handle y, nb::handle weight, nb::handle extra,
                                                int n_jobs) override {
        CodeBuffer codes;
        RowBuffers rows;
        if (!open(codes, rows, X, y, weight, extra)) return std::nullopt;
        std::vector<double> out(static_cast<std::size_t>(codes.n_rows()));
        {
            std::lock_guard alone(guard);
            without_gil(codes.n_rows() > rows_worth_releasing, [&] {
                if (codes.is_narrow())
                    kernel_.leave_one_out(reader<std::uint8_t>(codes), rows.columns, n_jobs, out.data());
                else
                    kernel_.leave_one_out(reader<std::uint16_t>(codes), rows.columns, n_jobs, out.data());
            });
        }
        return to_numpy(std::move(out));
    }

    std::optional<std::pair<std::int64_t, std::int64_t>> update_shared(const SharedPlan& plan,
                                                                       const std::vector<PosteriorHandle*>& all,
                                                                       nb::handle X, nb::handle y, nb::handle weight,
                                                                       nb::handle extra, int n_jobs) override {
        CodeBuffer codes;
        RowBuffers rows;
        if (!open(codes, rows, X, y, weight, extra)) return std::nullopt;
        std::vector<PosteriorKernel<Family>*> kernels;
        MergedLimits limits;
        for (PosteriorHandle* handle : all) {  // the caller holds the guards of all of them, for writing
            auto* typed = dynamic_cast<TypedPosterior*>(handle);
            if (typed == nullptr) throw std::invalid_argument("update_all: the posteriors must have the same family");
            CodeBuffer same_width;  // each tree checks the width of X itself
            same_width.open(X, typed->state_.tree->width);
            kernels.push_back(&typed->kernel_);
            ++typed->version;
            limits.add(typed->state_.tree->checks.limits());
        }
        const SharedReport report = without_gil(true, [&] {
            return codes.is_narrow()
                       ? run_shared<std::uint8_t>(plan, kernels, codes, limits.view(), rows.columns, n_jobs)
                       : run_shared<std::uint16_t>(plan, kernels, codes, limits.view(), rows.columns, n_jobs);
        });
        for (PosteriorHandle* handle : all)
            *static_cast<TypedPosterior*>(handle)->state_.n_rows.data() += report.n_weighted;
        return std::pair<std::int64_t, std::int64_t>(report.nodes_touched, report.nodes_evaluated);
    }

    bool update_forest(const ForestHandle& forest, const std::vector<PosteriorHandle*>& all, nb::handle X, nb::handle y,
                       nb::handle weight, nb::handle extra, int n_jobs) override {
        CodeBuffer codes;
        RowBuffers rows;
        if (!codes.open(X, {forest.shape().n_features(), true}) ||
            !rows.open(y, weight, extra, kernel_.family().n_extra, state_.extra_constant, codes.n_rows()))
            return false;
        if (all.size() != forest.shape().n_trees()) throw std::invalid_argument("one posterior a tree of the forest");
        std::vector<PosteriorKernel<Family>*> kernels;
        for (PosteriorHandle* handle : all) {  // the caller holds the guards of all of them, for writing
            auto* typed = dynamic_cast<TypedPosterior*>(handle);
            if (typed == nullptr) throw std::invalid_argument("the posteriors of a forest must have the same family");
            kernels.push_back(&typed->kernel_);
            ++typed->version;
        }
        using Into = IntoPosteriors<Family>;
        Into into(std::move(kernels));
        without_gil(true, [&] {
            if (codes.is_narrow())
                ForestCount<Family, std::uint8_t, Into>(forest.shape(), kernel_.family(), into)
                    .run(codes.table(), rows.columns, n_jobs);
            else
                ForestCount<Family, std::uint16_t, Into>(forest.shape(), kernel_.family(), into)
                    .run(codes.table(), rows.columns, n_jobs);
        });
        for (std::size_t t = 0; t < all.size(); ++t)
            *static_cast<TypedPosterior*>(all[t])->state_.n_rows.data() += into.n_rows()[t];
        return true;
    }

  private:
    template <class Code>
    static SharedReport run_shared(const SharedPlan& plan, const std::vector<PosteriorKernel<Family>*>& kernels,
                                   const CodeBuffer& codes, const CodeLimits& limits, const RowColumns& columns,
                                   int n_jobs) {
        return SharedUpdate<Family, Code>(plan, kernels).run(CodeReader<Code>(codes.table(), limits), columns, n_jobs);
    }
    template <class Code>
    CodeReader<Code> reader(const CodeBuffer& codes) const {
        return {codes.table(), kernel_.arrays().checks->limits()};
    }
    bool open(CodeBuffer& codes, RowBuffers& rows, nb::handle X, nb::handle y, nb::handle weight, nb::handle extra) {
        return codes.open(X, state_.tree->width) &&
               rows.open(y, weight, extra, kernel_.family().n_extra, state_.extra_constant, codes.n_rows());
    }
    PosteriorState state_;
    PosteriorKernel<Family> kernel_;
};

std::unique_ptr<PosteriorHandle> make_posterior(const std::string& name, int size, nb::object tree,
                                                Input<double> log_split, Input<double> log_stop,
                                                Input<double> leaf_prior, State<double> statistics, State<double> leaf,
                                                State<double> subtree, State<double> split_prob,
                                                State<std::int64_t> n_rows, double extra_constant) {
    PosteriorState state{tree,          nb::cast<const Tree*>(tree),
                         log_split,     log_stop,
                         leaf_prior,    statistics,
                         leaf,          subtree,
                         split_prob,    n_rows,
                         extra_constant};
    return with_family(name, size, [&](const auto& family) -> std::unique_ptr<PosteriorHandle> {
        using Family = std::decay_t<decltype(family)>;
        return std::make_unique<TypedPosterior<Family>>(family, std::move(state));
    });
}

void make_plan(SharedPlan* self, const std::vector<Tree*>& trees) {
    std::vector<TreeView> views;
    for (const Tree* tree : trees) {
        if (tree == nullptr) throw std::invalid_argument("trees must not be None");
        views.push_back(tree->view);
    }
    new (self) SharedPlan(views);
}

}  // namespace

void bind_posterior(nb::module_& module) {
    nb::class_<SharedPlan>(module, "SharedPlan").def("__init__", &make_plan, "trees"_a);
    nb::class_<PosteriorHandle>(module, "Posterior")
        .def("update", &PosteriorHandle::update, "X"_a.none(), "y"_a.none(), "weight"_a.none(), "extra"_a.none(),
             "n_jobs"_a)
        .def("merge", &PosteriorHandle::merge, "statistics"_a)
        .def("lacking", &PosteriorHandle::lacking, "statistics"_a)
        .def("take_away", &PosteriorHandle::take_away, "statistics"_a)
        .def("sweep_all", &PosteriorHandle::sweep_all)
        .def("leave_one_out", &PosteriorHandle::leave_one_out, "X"_a.none(), "y"_a.none(), "weight"_a.none(),
             "extra"_a.none(), "n_jobs"_a)
        .def_prop_rw(
            "version", [](const PosteriorHandle& self) { return self.version.load(); },
            [](PosteriorHandle& self, std::int64_t version) { self.version = version; })
        .def("__enter__", [](PosteriorHandle& self) { self.guard.lock(); })
        .def("__exit__", [](PosteriorHandle& self, nb::args) { self.guard.unlock(); })
        .def_prop_ro(
            "writing", [](PosteriorHandle& self) -> Guard::Writing& { return self.guard.writing; },
            nb::rv_policy::reference_internal)
        .def("update_shared", &PosteriorHandle::update_shared, nb::kw_only(), "plan"_a, "all"_a, "X"_a.none(),
             "y"_a.none(), "weight"_a.none(), "extra"_a.none(), "n_jobs"_a)
        .def("update_forest", &PosteriorHandle::update_forest, nb::kw_only(), "forest"_a, "all"_a, "X"_a.none(),
             "y"_a.none(), "weight"_a.none(), "extra"_a.none(), "n_jobs"_a);
    module.def("make_posterior", &make_posterior, nb::kw_only(), "name"_a, "size"_a, "tree"_a, "log_split"_a,
               "log_stop"_a, "leaf_prior"_a, "statistics"_a, "leaf"_a, "subtree"_a, "split_prob"_a, "n_rows"_a,
               "extra_constant"_a);
}

}  // namespace everytree::bind
