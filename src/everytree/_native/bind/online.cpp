// An online forest. Python holds a lock around each call, so that other threads may run where the GIL is released.
#include <optional>

#include "bind/common.hpp"
#include "bind/modules.hpp"
#include "bind/records.hpp"
#include "online/kernel.hpp"

namespace everytree {
namespace {

struct OnlineState {
    State<std::uint8_t> nodes;  // OnlineNode records as bytes
    State<double> boxes;
    State<std::uint8_t> some_missing;
    State<double> statistics, ranges;
    Input<std::uint8_t> kinds;  // shared with copies, perhaps of a file: read only
    State<std::int32_t> roots;
    State<std::int64_t> counts;
};

class OnlineHandle {
  public:
    virtual ~OnlineHandle() = default;
    virtual void attach(OnlineState state) = 0;
    virtual void use_family(int size, Input<double> leaf_prior) = 0;
    virtual std::int64_t learn(Input<double> rows, Input<double> y, std::int64_t begin) = 0;
    virtual nb::object predict(Input<double> rows) = 0;
    virtual nb::object shares(Input<double> rows) = 0;
    virtual void refresh() = 0;
    virtual void settle() = 0;
};

template <class Family>
Family family_of(int size) {
    if constexpr (std::is_constructible_v<Family, int>)
        return Family(size);
    else
        return Family();
}

template <class Family>
class TypedOnline final : public OnlineHandle {
  public:
    TypedOnline(const Family& family, Input<double> leaf_prior, const OnlineOptions& options)
        : leaf_prior_(leaf_prior), kernel_(family, leaf_prior_.data(), options) {}

    void attach(OnlineState state) override {
        state_.emplace(std::move(state));
        OnlineState& own = *state_;
        if (own.statistics.ndim() != 2 || own.statistics.shape(1) < static_cast<std::size_t>(n_statistics()))
            throw std::invalid_argument("no room for the statistics of the family");
        kernel_.attach({reinterpret_cast<OnlineNode*>(own.nodes.data()), own.boxes.data(), own.some_missing.data(),
                        own.statistics.data(), own.ranges.data(), own.kinds.data(), own.roots.data(), own.counts.data(),
                        static_cast<std::int64_t>(own.nodes.size() / sizeof(OnlineNode)),
                        static_cast<std::int64_t>(own.statistics.shape(1)), n_features(),
                        static_cast<std::int64_t>(own.roots.size() / 2)});
    }

    void use_family(int size, Input<double> leaf_prior) override {
        const Family family = family_of<Family>(size);
        if (!state_ || state_->statistics.shape(1) < static_cast<std::size_t>(family.layout.size()) ||
            leaf_prior.size() != static_cast<std::size_t>(family.n_prior))
            throw std::invalid_argument("no room for the statistics of the family");
        kernel_.use_family(family, leaf_prior.data());
        leaf_prior_ = leaf_prior;
    }

    // Rows from `begin` on, for as long as there is room. Returns the first row that was not learned.
    std::int64_t learn(Input<double> rows, Input<double> y, std::int64_t begin) override {
        const std::int64_t n_rows = check(rows);
        if (static_cast<std::int64_t>(y.size()) != n_rows || begin < 0) throw std::invalid_argument("one target a row");
        for (std::int64_t i = begin; i < n_rows; ++i)
            if (!kernel_.family().supports(target(y, i)))
                throw std::invalid_argument("a target the leaves do not know");
        return without_gil(n_rows - begin >= rows_worth_releasing, [&] {
            for (std::int64_t i = begin; i < n_rows; ++i)
                if (!kernel_.learn(rows.data() + i * n_features(), target(y, i))) return i;
            return n_rows;
        });
    }

    // (n_rows, n_expected) averages over all trees and their prunings.
    nb::object predict(Input<double> rows) override {
        const std::int64_t n_rows = check(rows);
        const Family& family = kernel_.family();
        const auto n_out = static_cast<std::size_t>(family.n_expected());
        std::vector<double> parameters(static_cast<std::size_t>(family.n_parameters)), one(n_out);
        std::vector<double> values(static_cast<std::size_t>(n_rows) * n_out, 0.0);
        kernel_.settle();
        without_gil(n_rows >= rows_worth_releasing, [&] {
            for (std::int64_t i = 0; i < n_rows; ++i) {
                double* mine = values.data() + static_cast<std::size_t>(i) * n_out;
                each_share(rows.data() + i * n_features(), [&](const OnlineShare& share) {
                    const double weight = share.weight / static_cast<double>(kernel_.n_trees());
                    family.posterior(kernel_.statistics_now(share.node), kernel_.leaf_prior(), parameters.data());
                    family.expected(parameters.data(), one.data());
                    for (std::size_t c = 0; c < n_out; ++c) mine[c] += weight * one[c];
                });
            }
        });
        return nb::cast(to_numpy(std::move(values), {static_cast<std::size_t>(n_rows), n_out}));
    }

    // The same as a mixture: where the shares of each row start, their statistics, log weights and nodes.
    nb::object shares(Input<double> rows) override {
        const std::int64_t n_rows = check(rows);
        std::vector<std::int64_t> start{0};
        std::vector<double> statistics, log_weights;
        std::vector<std::int32_t> nodes;
        kernel_.settle();
        const double log_trees = std::log(static_cast<double>(kernel_.n_trees()));
        for (std::int64_t i = 0; i < n_rows; ++i) {
            each_share(rows.data() + i * n_features(), [&](const OnlineShare& share) {
                const double* mine = kernel_.statistics_now(share.node);
                statistics.insert(statistics.end(), mine, mine + kernel_.family().layout.size());
                log_weights.push_back(std::log(share.weight) - log_trees);
                nodes.push_back(share.node);
            });
            start.push_back(static_cast<std::int64_t>(nodes.size()));
        }
        return nb::make_tuple(to_numpy(std::move(start)), to_numpy(std::move(statistics)),
                              to_numpy(std::move(log_weights)), to_numpy(std::move(nodes)));
    }

    void refresh() override { kernel_.refresh(); }
    void settle() override { kernel_.settle(); }

  private:
    static Row target(const Input<double>& y, std::int64_t i) { return {y.data()[i], 1.0, nullptr}; }
    int n_statistics() const { return kernel_.family().layout.size(); }
    std::int64_t n_features() const { return static_cast<std::int64_t>(state_->kinds.size()); }
    std::int64_t check(const Input<double>& rows) const {
        if (!state_ || rows.ndim() != 2 || static_cast<std::int64_t>(rows.shape(1)) != n_features())
            throw std::invalid_argument("rows must have one column for each feature");
        return static_cast<std::int64_t>(rows.shape(0));
    }
    template <class Use>
    void each_share(const double* row, Use use) {
        for (std::int64_t tree = 0; tree < kernel_.n_trees(); ++tree) {
            shares_.clear();
            kernel_.shares(row, tree, shares_);
            for (const OnlineShare& share : shares_)
                if (share.weight > 0.0) use(share);
        }
    }

    Input<double> leaf_prior_;
    std::optional<OnlineState> state_;
    OnlineKernel<Family> kernel_;
    std::vector<OnlineShare> shares_;
};

std::unique_ptr<OnlineHandle> make_online(const std::string& name, int size, Input<double> leaf_prior,
                                          std::uint64_t seed, double split_prior, double half_life,
                                          std::int64_t max_nodes) {
    const OnlineOptions options{seed, split_prior, half_life, max_nodes};
    if (name == "categorical")
        return std::make_unique<TypedOnline<Categorical>>(family_of<Categorical>(size), leaf_prior, options);
    if (name == "normal") return std::make_unique<TypedOnline<Normal>>(family_of<Normal>(size), leaf_prior, options);
    throw std::invalid_argument("no online kernel for a family named " + name);
}

void attach(OnlineHandle& self, State<std::uint8_t> nodes, State<double> boxes, State<std::uint8_t> some_missing,
            State<double> statistics, State<double> ranges, Input<std::uint8_t> kinds, State<std::int32_t> roots,
            State<std::int64_t> counts) {
    self.attach({nodes, boxes, some_missing, statistics, ranges, kinds, roots, counts});
}

}  // namespace

void bind_online(nb::module_& module) {
    nb::class_<OnlineHandle>(module, "Online")
        .def("attach", &attach, nb::kw_only(), "nodes"_a, "boxes"_a, "some_missing"_a, "statistics"_a, "ranges"_a,
             "kinds"_a, "roots"_a, "counts"_a)
        .def("use_family", &OnlineHandle::use_family, "size"_a, "leaf_prior"_a)
        .def("settle", &OnlineHandle::settle)
        .def("learn", &OnlineHandle::learn, "rows"_a, "y"_a, "begin"_a)
        .def("predict", &OnlineHandle::predict, "rows"_a)
        .def("shares", &OnlineHandle::shares, "rows"_a)
        .def("refresh", &OnlineHandle::refresh);
    module.def("make_online", &make_online, nb::kw_only(), "name"_a, "size"_a, "leaf_prior"_a, "seed"_a,
               "split_prior"_a, "half_life"_a, "max_nodes"_a);
    module.attr("ONLINE_NODE") = record_dtype<OnlineNode>({
        EVERYTREE_FIELD(OnlineNode, parent),
        EVERYTREE_FIELD(OnlineNode, left),
        EVERYTREE_FIELD(OnlineNode, right),
        EVERYTREE_FIELD(OnlineNode, feature),
        EVERYTREE_FIELD(OnlineNode, missing_right),
        EVERYTREE_FIELD(OnlineNode, tree),
        EVERYTREE_FIELD(OnlineNode, time),
        EVERYTREE_FIELD(OnlineNode, threshold),
        EVERYTREE_FIELD(OnlineNode, log_split),
        EVERYTREE_FIELD(OnlineNode, log_stop),
        EVERYTREE_FIELD(OnlineNode, leaf),
        EVERYTREE_FIELD(OnlineNode, subtree),
        EVERYTREE_FIELD(OnlineNode, stamp),
    });
}

}  // namespace everytree
