// An online forest. Python holds a lock around each call, so that other threads may run where the GIL is released.
#include <optional>

#include "bind/common.hpp"
#include "bind/modules.hpp"
#include "bind/records.hpp"
#include "core/families.hpp"
#include "online/classes.hpp"
#include "online/evidence.hpp"
#include "online/gains.hpp"
#include "online/kernel.hpp"

namespace everytree::bind {

using namespace online;
namespace {

struct OnlineState {
    State<std::uint8_t> nodes;  // OnlineNode records as bytes
    State<double> boxes;
    State<std::uint8_t> some_missing;
    State<double> statistics, ranges;
    Input<std::uint8_t> kinds;  // shared with copies, perhaps of a file: read-only
    State<std::int32_t> roots;
    State<std::int64_t> counts;
};

class OnlineHandle {
  public:
    virtual ~OnlineHandle() = default;
    virtual void attach(OnlineState state) = 0;
    virtual void use_prior(int size, Input<double> prior) = 0;
    virtual std::int64_t learn(Input<double> rows, Input<double> y, std::int64_t begin) = 0;
    virtual nb::object predict(Input<double> rows) = 0;
    virtual nb::object shares(Input<double> rows) = 0;
    virtual void refresh() = 0;
    virtual void write_evidence() = 0;
    virtual nb::object log_evidence() = 0;
    virtual nb::object class_lists() = 0;
    virtual void set_class_lists(Input<std::int64_t> start, Input<std::int32_t> number, Input<double> weight) = 0;
};

// Leaves of a family; `prior` holds the prior in the form of its kernels.
template <class Family>
struct FamilyLeaves {
    using Leaves = DenseLeaves<Family>;
    using Evidence = NodeEvidence<Leaves>;

    static Family family_of(int size) {
        if constexpr (std::is_constructible_v<Family, int>)
            return Family(size);
        else
            return Family();
    }
    static Leaves make(int size, const Input<double>& prior) { return {checked(size, prior), prior.data()}; }
    static void use(Leaves& leaves, int size, const Input<double>& prior) {
        leaves.use(checked(size, prior), prior.data());
    }
    static std::size_t width(int size) { return static_cast<std::size_t>(family_of(size).layout.size()); }

  private:
    static Family checked(int size, const Input<double>& prior) {
        const Family family = family_of(size);
        if (prior.size() != static_cast<std::size_t>(family.n_prior))
            throw std::invalid_argument("a prior of another family");
        return family;
    }
};

// Leaves that list their classes; `prior` is the concentration.
template <class HowEvidenceIsKept>
struct ListedLeaves {
    using Leaves = ClassLists;
    using Evidence = HowEvidenceIsKept;

    static Leaves make(int size, const Input<double>& prior) {
        if (size < 1 || prior.size() != 1) throw std::invalid_argument("a prior of another family");
        return {size, prior.data()[0]};
    }
    static void use(Leaves& leaves, int size, const Input<double>& prior) {
        if (size < leaves.n_classes() || prior.size() != 1 || prior.data()[0] != leaves.concentration())
            throw std::invalid_argument("a prior of other classes");
        leaves.use(size);
    }
    static std::size_t width(int) { return 0; }
};

template <class Kind>
class TypedOnline final : public OnlineHandle {
  public:
    TypedOnline(int size, Input<double> prior, const OnlineOptions& options)
        : size_(size), prior_(prior), kernel_(Kind::make(size, prior_), options) {}

    void attach(OnlineState state) override {
        check_room(state, size_);
        state_.emplace(std::move(state));
        OnlineState& own = *state_;
        kernel_.attach({reinterpret_cast<OnlineNode*>(own.nodes.data()), own.boxes.data(), own.some_missing.data(),
                        own.statistics.data(), own.ranges.data(), own.kinds.data(), own.roots.data(), own.counts.data(),
                        static_cast<std::int64_t>(own.nodes.size() / sizeof(OnlineNode)),
                        static_cast<std::int64_t>(own.statistics.shape(1)), n_features(),
                        static_cast<std::int64_t>(own.roots.size() / 2)});
    }

    void use_prior(int size, Input<double> prior) override {
        if (!state_) throw std::invalid_argument("no arrays yet");
        check_room(*state_, size);
        Kind::use(kernel_.leaves(), size, prior);
        size_ = size;
        prior_ = prior;
        kernel_.prior_changed();
    }

    // Learns rows from `begin` on, as long as there is room. Returns the first row that was not learned.
    std::int64_t learn(Input<double> rows, Input<double> y, std::int64_t begin) override {
        const std::int64_t n_rows = check(rows);
        if (static_cast<std::int64_t>(y.size()) != n_rows || begin < 0) throw std::invalid_argument("one target a row");
        for (std::int64_t i = begin; i < n_rows; ++i)
            if (!kernel_.leaves().supports(target(y, i)))
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
        const auto n_out = static_cast<std::size_t>(kernel_.leaves().n_expected());
        std::vector<double> values(static_cast<std::size_t>(n_rows) * n_out, 0.0);
        kernel_.evidence().settle();
        without_gil(n_rows >= rows_worth_releasing, [&] {
            for (std::int64_t i = 0; i < n_rows; ++i) {
                kernel_.shares(rows.data() + i * n_features(), shares_);
                kernel_.leaves().average(shares_, values.data() + static_cast<std::size_t>(i) * n_out);
            }
        });
        return nb::cast(to_numpy(std::move(values), {static_cast<std::size_t>(n_rows), n_out}));
    }

    // Like predict, as a mixture: the start of each row's shares, their statistics, log weights and nodes.
    nb::object shares(Input<double> rows) override {
        const std::int64_t n_rows = check(rows);
        std::vector<std::int64_t> start{0};
        std::vector<double> statistics, log_weights;
        std::vector<std::int32_t> nodes;
        kernel_.evidence().settle();
        for (std::int64_t i = 0; i < n_rows; ++i) {
            kernel_.shares(rows.data() + i * n_features(), shares_);
            for (const OnlineShare& share : shares_) {
                kernel_.leaves().append(share, statistics);
                log_weights.push_back(std::log(share.weight));
                nodes.push_back(share.node);
            }
            start.push_back(static_cast<std::int64_t>(nodes.size()));
        }
        return nb::make_tuple(to_numpy(std::move(start)), to_numpy(std::move(statistics)),
                              to_numpy(std::move(log_weights)), to_numpy(std::move(nodes)));
    }

    void refresh() override { kernel_.refresh(); }
    void write_evidence() override {
        kernel_.evidence().settle();
        kernel_.evidence().write_to_nodes();
    }
    // Log evidence of each tree, averaged over its prunings; 0 before any row.
    nb::object log_evidence() override {
        std::vector<double> of_trees;
        kernel_.evidence().settle();
        for (std::int64_t tree = 0; tree < kernel_.n_trees(); ++tree) {
            const std::int32_t root = kernel_.root(tree);
            of_trees.push_back(root < 0 ? 0.0 : kernel_.evidence().log_evidence(root));
        }
        return nb::cast(to_numpy(std::move(of_trees)));
    }

    // The start of each node's classes, the classes, and their weights.
    nb::object class_lists() override {
        if constexpr (has_lists) {
            PackedClasses all = kernel_.leaves().packed(kernel_.n_slots());
            return nb::make_tuple(to_numpy(std::move(all.start)), to_numpy(std::move(all.number)),
                                  to_numpy(std::move(all.weight)));
        }
        return nb::none();
    }
    void set_class_lists(Input<std::int64_t> start, Input<std::int32_t> number, Input<double> weight) override {
        if constexpr (has_lists) {
            if (!state_ || static_cast<std::int64_t>(start.size()) != kernel_.n_slots() + 1 ||
                number.size() != weight.size())
                throw std::invalid_argument("lists of classes must be those of the nodes");
            kernel_.leaves().unpack(start.data(), kernel_.n_slots(), number.data(), weight.data(),
                                    static_cast<std::int64_t>(number.size()));
            kernel_.evidence().statistics_replaced();
        } else {
            throw std::invalid_argument("no lists of classes in these leaves");
        }
    }

  private:
    static Row target(const Input<double>& y, std::int64_t i) { return {y.data()[i], 1.0, nullptr}; }
    static constexpr bool has_lists = std::is_same_v<typename Kind::Leaves, ClassLists>;
    static void check_room(const OnlineState& state, int size) {
        if (state.statistics.ndim() != 2 || state.statistics.shape(1) < Kind::width(size))
            throw std::invalid_argument("no room for the statistics of the family");
    }
    std::int64_t n_features() const { return static_cast<std::int64_t>(state_->kinds.size()); }
    std::int64_t check(const Input<double>& rows) const {
        if (!state_ || rows.ndim() != 2 || static_cast<std::int64_t>(rows.shape(1)) != n_features())
            throw std::invalid_argument("rows must have one column for each feature");
        return static_cast<std::int64_t>(rows.shape(0));
    }

    int size_;
    Input<double> prior_;
    std::optional<OnlineState> state_;
    OnlineKernel<typename Kind::Leaves, typename Kind::Evidence> kernel_;
    std::vector<OnlineShare> shares_;
};

std::unique_ptr<OnlineHandle> make_online(const std::string& name, int size, Input<double> prior, std::uint64_t seed,
                                          double split_prior, double half_life, std::int64_t max_nodes) {
    const OnlineOptions options{seed, split_prior, half_life, max_nodes};
    if (name == "categorical") return std::make_unique<TypedOnline<FamilyLeaves<Categorical>>>(size, prior, options);
    if (name == "normal") return std::make_unique<TypedOnline<FamilyLeaves<Normal>>>(size, prior, options);
    if (name == "class lists" && std::isfinite(half_life))  // a node and its children are not decayed to the same row
        return std::make_unique<TypedOnline<ListedLeaves<NodeEvidence<ClassLists>>>>(size, prior, options);
    if (name == "class lists") return std::make_unique<TypedOnline<ListedLeaves<SplitGains>>>(size, prior, options);
    throw std::invalid_argument("no online kernel for leaves named " + name);
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
        .def("use_prior", &OnlineHandle::use_prior, "size"_a, "prior"_a)
        .def("write_evidence", &OnlineHandle::write_evidence)
        .def("log_evidence", &OnlineHandle::log_evidence)
        .def("learn", &OnlineHandle::learn, "rows"_a, "y"_a, "begin"_a)
        .def("predict", &OnlineHandle::predict, "rows"_a)
        .def("shares", &OnlineHandle::shares, "rows"_a)
        .def("refresh", &OnlineHandle::refresh)
        .def("class_lists", &OnlineHandle::class_lists)
        .def("set_class_lists", &OnlineHandle::set_class_lists, "start"_a, "number"_a, "weight"_a);
    module.def("make_online", &make_online, nb::kw_only(), "name"_a, "size"_a, "prior"_a, "seed"_a, "split_prior"_a,
               "half_life"_a, "max_nodes"_a);
    module.attr("MANY_CLASSES") = many_classes;
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

}  // namespace everytree::bind
