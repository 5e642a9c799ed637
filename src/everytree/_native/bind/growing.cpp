// A posterior without a depth limit.
#include "core/growing.hpp"

#include "bind/buffers.hpp"
#include "bind/common.hpp"
#include "bind/modules.hpp"
#include "bind/records.hpp"
#include "core/with_family.hpp"

namespace everytree::bind {
namespace {

// The start of each row's shares, their nodes and log weights.
using RowShares = std::tuple<Output<std::int64_t>, Output<std::int32_t>, Output<double>>;

struct GrowingState {
    State<std::uint8_t> nodes;  // GrowingNode records as bytes
    nb::object points;          // uint8 or uint16, as the kernel's type says
    State<double> log_odds, statistics, leaf, subtree, split_prob;
    State<std::int64_t> counts;  // nodes, points, root
};

class GrowingHandle {
  public:
    virtual ~GrowingHandle() = default;
    virtual void attach(GrowingState state) = 0;
    virtual bool check(nb::handle X, nb::handle y, nb::handle weight, nb::handle extra) = 0;
    virtual std::int64_t insert(nb::handle X, nb::handle y, nb::handle weight, nb::handle extra, std::int64_t begin,
                                std::int64_t n) = 0;
    virtual void insert_points(nb::object points, Input<double> statistics) = 0;
    virtual std::optional<RowShares> shares(nb::handle X) = 0;
};

template <class Family, class Code>
class TypedGrowing final : public GrowingHandle {
  public:
    TypedGrowing(const Family& family, Input<double> leaf_prior, Input<std::int32_t> features, Input<double> log_split,
                 Input<std::uint16_t> limit, std::uint64_t seed, double extra_constant)
        : leaf_prior_(leaf_prior),
          limit_(limit),
          shift_(limit.size(), 0),
          width_{static_cast<std::int64_t>(limit.size()), true},
          check_({limit.data(), shift_.data(), static_cast<int>(limit.size())}),
          kernel_(family, leaf_prior.data(), {features.data(), features.data() + features.size()},
                  static_cast<int>(limit.size()), {log_split.data(), log_split.data() + log_split.size()}, seed),
          n_extra_(family.n_extra),
          extra_constant_(extra_constant) {}

    void attach(GrowingState state) override {
        state_.emplace(std::move(state));
        points_ = nb::cast<State<Code>>(state_->points);
        const std::int64_t* counts = state_->counts.data();
        kernel_.attach({reinterpret_cast<GrowingNode*>(state_->nodes.data()),
                        points_.data(),
                        state_->log_odds.data(),
                        state_->statistics.data(),
                        {state_->leaf.data(), state_->subtree.data(), state_->split_prob.data()},
                        counts[0],
                        counts[1],
                        static_cast<std::int32_t>(counts[2])});
    }
    bool check(nb::handle X, nb::handle y, nb::handle weight, nb::handle extra) override {
        CodeBuffer codes;
        RowBuffers rows;
        if (!open(codes, rows, X, y, weight, extra)) return false;
        without_gil(codes.n_rows() > rows_worth_releasing, [&] { kernel_.check(reader(codes), rows.columns, check_); });
        return true;
    }
    std::int64_t insert(nb::handle X, nb::handle y, nb::handle weight, nb::handle extra, std::int64_t begin,
                        std::int64_t n) override {
        CodeBuffer codes;
        RowBuffers rows;
        open(codes, rows, X, y, weight, extra);
        const std::int64_t n_weighted = without_gil(n > rows_worth_releasing, [&] {
            const std::int64_t done = kernel_.insert(reader(codes), rows.columns, begin, n);
            kernel_.sweep();
            return done;
        });
        save_counts();
        return n_weighted;
    }
    void insert_points(nb::object points, Input<double> statistics) override {
        const auto other = nb::cast<Input<Code>>(points);
        const auto n = static_cast<std::int64_t>(other.shape(0));
        kernel_.insert_points(other.data(), statistics.data(), n);
        kernel_.sweep();
        save_counts();
    }
    std::optional<RowShares> shares(nb::handle X) override {
        CodeBuffer buffer;
        if (!buffer.open(X, width_)) return std::nullopt;
        const std::int64_t n_rows = buffer.n_rows();
        std::vector<Code> converted;
        const Codes<Code> codes = reader(buffer).rows(0, n_rows, converted);
        check_(codes, 0, n_rows);
        std::vector<std::int64_t> start{0};
        std::vector<std::int32_t> nodes;
        std::vector<double> log_weights;
        std::vector<Share> mine;
        for (std::int64_t i = 0; i < n_rows; ++i) {
            mine.clear();
            const std::vector<Code> row(codes.row(i), codes.row(i) + limit_.size());  // no other thread writes to it
            kernel_.shares(row.data(), mine);
            for (const Share& share : mine) {
                nodes.push_back(share.node);
                log_weights.push_back(share.log_weight);
            }
            start.push_back(static_cast<std::int64_t>(nodes.size()));
        }
        return std::tuple(to_numpy(std::move(start)), to_numpy(std::move(nodes)), to_numpy(std::move(log_weights)));
    }

  private:
    bool open(CodeBuffer& codes, RowBuffers& rows, nb::handle X, nb::handle y, nb::handle weight, nb::handle extra) {
        return codes.open(X, width_) && rows.open(y, weight, extra, n_extra_, extra_constant_, codes.n_rows());
    }
    CodeReader<Code> reader(const CodeBuffer& codes) const {
        return {codes.table(), {limit_.data(), shift_.data(), static_cast<int>(limit_.size())}};
    }
    void save_counts() {
        std::int64_t* counts = state_->counts.data();
        counts[0] = kernel_.arrays().n_nodes;
        counts[1] = kernel_.arrays().n_points;
        counts[2] = kernel_.arrays().root;
    }

    std::optional<GrowingState> state_;
    State<Code> points_;
    Input<double> leaf_prior_;
    Input<std::uint16_t> limit_;
    std::vector<std::uint16_t> shift_;
    Width width_;
    CodeCheck<Code> check_;
    GrowingKernel<Family, Code> kernel_;
    int n_extra_;
    double extra_constant_;
};

std::unique_ptr<GrowingHandle> make_growing(const std::string& name, int size, bool wide, Input<double> leaf_prior,
                                            Input<std::int32_t> features, Input<double> log_split,
                                            Input<std::uint16_t> limit, std::uint64_t seed, double extra_constant) {
    return with_family(name, size, [&](const auto& family) -> std::unique_ptr<GrowingHandle> {
        using Family = std::decay_t<decltype(family)>;
        if (wide)
            return std::make_unique<TypedGrowing<Family, std::uint16_t>>(family, leaf_prior, features, log_split, limit,
                                                                         seed, extra_constant);
        return std::make_unique<TypedGrowing<Family, std::uint8_t>>(family, leaf_prior, features, log_split, limit,
                                                                    seed, extra_constant);
    });
}

// The feature that is split on after the given codes, or -1 if all are used.
std::int32_t feature_after(Input<std::int32_t> features, std::uint64_t seed, Input<std::int32_t> answers) {
    Path path(seed, {features.data(), features.data() + features.size()});
    for (std::size_t i = 0; i < answers.size() && !path.asked_all(); ++i) path.answer(answers.data()[i]);
    return path.asked_all() ? -1 : path.feature();
}

void attach(GrowingHandle& self, State<std::uint8_t> nodes, nb::object points, State<double> log_odds,
            State<double> statistics, State<double> leaf, State<double> subtree, State<double> split_prob,
            State<std::int64_t> counts) {
    self.attach({nodes, points, log_odds, statistics, leaf, subtree, split_prob, counts});
}

}  // namespace

void bind_growing(nb::module_& module) {
    nb::class_<GrowingHandle>(module, "Growing")
        .def("attach", &attach, nb::kw_only(), "nodes"_a, "points"_a, "log_odds"_a, "statistics"_a, "leaf"_a,
             "subtree"_a, "split_prob"_a, "counts"_a)
        .def("check", &GrowingHandle::check, "X"_a.none(), "y"_a.none(), "weight"_a.none(), "extra"_a.none())
        .def("insert", &GrowingHandle::insert, "X"_a.none(), "y"_a.none(), "weight"_a.none(), "extra"_a.none(),
             nb::kw_only(), "begin"_a, "n"_a)
        .def("insert_points", &GrowingHandle::insert_points, "points"_a, "statistics"_a)
        .def("shares", &GrowingHandle::shares, "X"_a.none());
    module.def("make_growing", &make_growing, nb::kw_only(), "name"_a, "size"_a, "wide"_a, "leaf_prior"_a, "features"_a,
               "log_split"_a, "limit"_a, "seed"_a, "extra_constant"_a);
    module.def("feature_after", &feature_after, "features"_a, "seed"_a, "answers"_a);
    module.attr("GROWING_NODE") = record_dtype<GrowingNode>({
        EVERYTREE_FIELD(GrowingNode, parent),
        EVERYTREE_FIELD(GrowingNode, first_child),
        EVERYTREE_FIELD(GrowingNode, next_sibling),
        EVERYTREE_FIELD(GrowingNode, entry),
        EVERYTREE_FIELD(GrowingNode, branch),
        EVERYTREE_FIELD(GrowingNode, point),
        EVERYTREE_FIELD(GrowingNode, answer),
    });
}

}  // namespace everytree::bind
