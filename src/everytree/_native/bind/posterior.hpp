// A posterior over one meta-tree, one C++ type a family behind one Python type.
#pragma once
#include "bind/families.hpp"
#include "bind/tree.hpp"
#include "core/posterior.hpp"
#include "core/shared.hpp"

namespace everytree {

class PosteriorHandle {
  public:
    virtual ~PosteriorHandle() = default;
    // False where the arguments cannot be read as they are.
    virtual bool update(nb::handle X, nb::handle y, nb::handle weight, nb::handle extra, int n_jobs) = 0;
    virtual void merge(Input<double> other) = 0;
    virtual nb::object leave_one_out(nb::handle X, nb::handle y, nb::handle weight, nb::handle extra, int n_jobs) = 0;
    virtual nb::object update_shared(const SharedPlan& plan, const std::vector<PosteriorHandle*>& all, nb::handle X,
                                     nb::handle y, nb::handle weight, nb::handle extra, int n_jobs) = 0;
    Guard guard;
    std::int64_t version = 0;  // of the arrays: another one after whatever may have written to them
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
                tree->checks.get(),
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

    nb::object leave_one_out(nb::handle X, nb::handle y, nb::handle weight, nb::handle extra, int n_jobs) override {
        CodeBuffer codes;
        RowBuffers rows;
        if (!open(codes, rows, X, y, weight, extra)) return nb::none();
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
        return nb::cast(to_numpy(std::move(out)));
    }

    nb::object update_shared(const SharedPlan& plan, const std::vector<PosteriorHandle*>& all, nb::handle X,
                             nb::handle y, nb::handle weight, nb::handle extra, int n_jobs) override {
        CodeBuffer codes;
        RowBuffers rows;
        if (!open(codes, rows, X, y, weight, extra)) return nb::none();
        std::vector<PosteriorKernel<Family>*> kernels;
        MergedLimits limits;
        for (PosteriorHandle* handle : all) {  // the caller holds the guards of all of them, for writing
            auto* typed = dynamic_cast<TypedPosterior*>(handle);
            if (typed == nullptr) throw std::invalid_argument("update_all: the posteriors must have the same family");
            CodeBuffer same_width;  // each tree has its own say about the width of X
            same_width.open(X, typed->state_.tree->width);
            kernels.push_back(&typed->kernel_);
            ++typed->version;
            limits.add(typed->state_.tree->checks->limits());
        }
        const SharedReport report = without_gil(true, [&] {
            return codes.is_narrow()
                       ? run_shared<std::uint8_t>(plan, kernels, codes, limits.view(), rows.columns, n_jobs)
                       : run_shared<std::uint16_t>(plan, kernels, codes, limits.view(), rows.columns, n_jobs);
        });
        for (PosteriorHandle* handle : all)
            *static_cast<TypedPosterior*>(handle)->state_.n_rows.data() += report.n_weighted;
        return nb::make_tuple(report.nodes_touched, report.nodes_evaluated);
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

inline std::unique_ptr<PosteriorHandle> make_posterior(const std::string& name, int size, nb::object tree,
                                                       Input<double> log_split, Input<double> log_stop,
                                                       Input<double> leaf_prior, State<double> statistics,
                                                       State<double> leaf, State<double> subtree,
                                                       State<double> split_prob, State<std::int64_t> n_rows,
                                                       double extra_constant) {
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

}  // namespace everytree
