// Samplers of structures: one C++ type per family behind one Python type.
#include <memory>
#include <mutex>

#include "bind/common.hpp"
#include "bind/guard.hpp"
#include "bind/modules.hpp"
#include "core/with_family.hpp"
#include "sampling/sampler.hpp"

namespace everytree::bind {

using namespace exact;
using namespace sampling;
namespace {

class SamplerHandle {
  public:
    virtual ~SamplerHandle() = default;
    virtual int horizon() const = 0;
    virtual int top_depth() const = 0;
    virtual std::string top_lack() const = 0;
    virtual void begin(bool from_worst, int n_jobs) = 0;
    virtual void set_powers(const std::vector<double>& powers) = 0;
    virtual void sum_top(double steps, double bytes, int depth, int n_jobs) = 0;
    virtual nb::list run(std::int64_t n_draws, std::int64_t thin, int n_single, int n_blocks, int n_jobs) = 0;
    virtual nb::dict counts() const = 0;
    virtual void forget_counts() = 0;
    virtual nb::list best() const = 0;
    virtual nb::list state() const = 0;
    virtual void restore(int chain, std::uint64_t random, std::int64_t n_draws, Input<std::int64_t> sizes,
                         Input<std::int32_t> columns, Input<std::int32_t> codes) = 0;
};

nb::dict kept_arrays(const std::vector<Snapshot>& kept) {
    std::vector<std::int64_t> sizes;
    Snapshot all;
    const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
    for (const Snapshot& one : kept) {
        sizes.push_back(static_cast<std::int64_t>(one.size()));
        append(all.feature, one.feature);
        append(all.code, one.code);
        append(all.first_child, one.first_child);
        append(all.n_children, one.n_children);
        append(all.split_prior, one.split_prior);
        append(all.split_prob, one.split_prob);
    }
    nb::dict out;
    out["sizes"] = to_numpy(std::move(sizes));
    out["feature"] = to_numpy(std::move(all.feature));
    out["code"] = to_numpy(std::move(all.code));
    out["first_child"] = to_numpy(std::move(all.first_child));
    out["n_children"] = to_numpy(std::move(all.n_children));
    out["split_prior"] = to_numpy(std::move(all.split_prior));
    out["split_prob"] = to_numpy(std::move(all.split_prob));
    return out;
}

nb::dict record_arrays(Record&& record, std::size_t n_columns, std::size_t n_powers) {
    const std::size_t n_draws = record.log_evidence.size();
    nb::dict out = kept_arrays(record.kept);
    out["log_evidence"] = to_numpy(std::move(record.log_evidence));
    out["n_leaves"] = to_numpy(std::move(record.n_leaves));
    out["used"] = to_numpy(std::move(record.used), {n_draws, n_columns});
    out["root_column"] = to_numpy(std::move(record.root_column));
    out["root_code"] = to_numpy(std::move(record.root_code));
    out["own"] = to_numpy(std::move(record.own), {n_draws, n_powers});
    out["hotter"] = to_numpy(std::move(record.hotter), {n_draws, n_powers});
    out["colder"] = to_numpy(std::move(record.colder), {n_draws, n_powers});
    return out;
}

template <class Family>
class TypedSampler final : public SamplerHandle {
  public:
    TypedSampler(Points<Family> points, SamplerOptions options, const std::vector<double>& powers,
                 const std::vector<std::uint64_t>& seeds)
        : sampler_(std::move(points), std::move(options), powers, seeds), n_powers_(powers.size()) {}

    int horizon() const override {
        std::lock_guard alone(guard_.writing);
        return sampler_.horizon();
    }
    int top_depth() const override {
        std::lock_guard alone(guard_.writing);
        return sampler_.top_depth();
    }
    std::string top_lack() const override {
        std::lock_guard alone(guard_.writing);
        const Lack lack = sampler_.top_lack();
        return lack == Lack::time ? "time" : lack == Lack::memory ? "memory" : "";
    }
    void begin(bool from_worst, int n_jobs) override {
        std::lock_guard alone(guard_.writing);
        nb::gil_scoped_release released;
        sampler_.begin(from_worst, n_jobs);
    }
    void set_powers(const std::vector<double>& powers) override {
        std::lock_guard alone(guard_.writing);
        if (powers.size() != n_powers_) throw std::invalid_argument("as many powers as there are");
        sampler_.set_powers(powers);
    }
    void sum_top(double steps, double bytes, int depth, int n_jobs) override {
        std::lock_guard alone(guard_.writing);
        Watch watch(check_signals);
        without_gil(true, [&] { sampler_.sum_top({steps, bytes, depth}, n_jobs, watch); });
    }
    nb::list run(std::int64_t n_draws, std::int64_t thin, int n_single, int n_blocks, int n_jobs) override {
        std::lock_guard alone(guard_.writing);
        std::vector<Record> records =
            without_gil(true, [&] { return sampler_.run({n_draws, thin, n_single, n_blocks}, n_jobs); });
        nb::list out;
        for (Record& record : records)
            out.append(
                record_arrays(std::move(record), static_cast<std::size_t>(sampler_.points().n_columns()), n_powers_));
        return out;
    }
    nb::dict counts() const override {
        std::lock_guard alone(guard_.writing);
        std::vector<std::int64_t> proposed, accepted;
        std::vector<double> exchanged, tried;
        const std::size_t n = sampler_.n_chains();
        for (std::size_t i = 0; i < n; ++i) {
            const Chain<Family>& chain = sampler_.chain(i);
            for (const MoveCounts& one : chain.counts()) {
                proposed.insert(proposed.end(), one.proposed.begin(), one.proposed.end());
                accepted.insert(accepted.end(), one.accepted.begin(), one.accepted.end());
            }
            exchanged.insert(exchanged.end(), chain.n_exchanged().begin(), chain.n_exchanged().end());
            tried.insert(tried.end(), chain.n_tried().begin(), chain.n_tried().end());
        }
        nb::dict out;
        out["proposed"] = to_numpy(std::move(proposed), {n, n_powers_, n_moves});
        out["accepted"] = to_numpy(std::move(accepted), {n, n_powers_, n_moves});
        out["exchanged"] = to_numpy(std::move(exchanged), {n, n_powers_});
        out["tried"] = to_numpy(std::move(tried), {n, n_powers_});
        return out;
    }
    void forget_counts() override {
        std::lock_guard alone(guard_.writing);
        for (std::size_t i = 0; i < sampler_.n_chains(); ++i) sampler_.chain(i).forget_counts();
    }
    nb::list best() const override {
        std::lock_guard alone(guard_.writing);
        nb::list all;
        for (std::size_t i = 0; i < sampler_.n_chains(); ++i) {
            BestTree best = sampler_.chain(i).best();
            nb::dict out;
            out["log_joint"] = best.log_joint;
            out["feature"] = to_numpy(std::move(best.feature));
            out["code"] = to_numpy(std::move(best.code));
            out["first_child"] = to_numpy(std::move(best.first_child));
            out["n_children"] = to_numpy(std::move(best.n_children));
            all.append(std::move(out));
        }
        return all;
    }
    nb::list state() const override {
        std::lock_guard alone(guard_.writing);
        nb::list all;
        for (std::size_t i = 0; i < sampler_.n_chains(); ++i) {
            Chain<Family>& chain = sampler_.chain(i);
            std::vector<std::int64_t> sizes;
            std::vector<std::int32_t> columns, codes;
            for (std::size_t r = 0; r < n_powers_; ++r) {
                const std::vector<Split> splits = chain.structure(r);
                sizes.push_back(static_cast<std::int64_t>(splits.size()));
                for (const Split& split : splits) {
                    columns.push_back(split.column);
                    codes.push_back(split.code);
                }
            }
            nb::dict out;
            out["random"] = chain.random().state();
            out["n_draws"] = chain.n_draws();
            out["sizes"] = to_numpy(std::move(sizes));
            out["columns"] = to_numpy(std::move(columns));
            out["codes"] = to_numpy(std::move(codes));
            all.append(std::move(out));
        }
        return all;
    }
    void restore(int chain, std::uint64_t random, std::int64_t n_draws, Input<std::int64_t> sizes,
                 Input<std::int32_t> columns, Input<std::int32_t> codes) override {
        std::lock_guard alone(guard_.writing);
        if (chain < 0 || static_cast<std::size_t>(chain) >= sampler_.n_chains() || sizes.size() != n_powers_ ||
            columns.size() != codes.size() || n_draws < 0)
            throw std::invalid_argument("arrays of the wrong size");
        Chain<Family>& own = sampler_.chain(static_cast<std::size_t>(chain));
        std::size_t at = 0;
        for (std::size_t r = 0; r < n_powers_; ++r) {
            std::vector<Split> splits;
            for (std::int64_t i = 0; i < sizes.data()[r]; ++i, ++at) {
                if (at >= columns.size()) throw std::invalid_argument("fewer splits than their sizes say");
                splits.push_back({columns.data()[at], codes.data()[at]});
            }
            if (!own.begin(r, splits)) throw std::invalid_argument("the splits are not those of a structure");
        }
        if (at != columns.size()) throw std::invalid_argument("more splits than their sizes say");
        own.random() = ChainRandom(random);
        own.set_n_draws(n_draws);
    }

  private:
    mutable Sampler<Family> sampler_;
    mutable Guard guard_;
    std::size_t n_powers_;
};

std::unique_ptr<SamplerHandle> make_sampler(const std::string& name, int size, Input<double> prior,
                                            Input<std::uint16_t> codes, const std::vector<int>& n_codes,
                                            const std::vector<int>& kinds, Input<double> statistics,
                                            const std::vector<double>& log_split, const std::vector<double>& log_stop,
                                            int summed_depth, bool only_nontrivial, int block_depth,
                                            double max_block_cost, const std::vector<double>& powers,
                                            const std::vector<std::uint64_t>& seeds) {
    if (codes.ndim() != 2 || codes.shape(1) != n_codes.size() || kinds.size() != n_codes.size() ||
        log_split.size() != log_stop.size() || powers.empty() || seeds.empty() || block_depth < 1 || summed_depth < 0)
        throw std::invalid_argument("arrays of the wrong size");
    const auto n_points = static_cast<std::int64_t>(codes.shape(0));
    if (n_points > 2147483647) throw std::invalid_argument("too many rows");
    const std::vector<ColumnKind> kind_of = kinds_of(kinds, n_codes);
    check_codes(codes.data(), n_points, n_codes);
    SamplerOptions options{static_cast<int>(log_split.size()),
                           summed_depth,
                           only_nontrivial,
                           log_split,
                           log_stop,
                           block_depth,
                           max_block_cost};
    return with_family(name, size, [&](const auto& family) -> std::unique_ptr<SamplerHandle> {
        using Family = std::decay_t<decltype(family)>;
        if (static_cast<int>(prior.size()) != family.n_prior ||
            statistics.size() != static_cast<std::size_t>(n_points) * static_cast<std::size_t>(family.layout.size()))
            throw std::invalid_argument("statistics of the wrong size");
        return std::make_unique<TypedSampler<Family>>(
            Points<Family>(family, prior.data(), codes.data(), n_points, n_codes, kind_of,
                           {statistics.data(), statistics.data() + statistics.size()}),
            std::move(options), powers, seeds);
    });
}

}  // namespace

void bind_sampling(nb::module_& module) {
    nb::class_<SamplerHandle>(module, "Sampler")
        .def("horizon", &SamplerHandle::horizon)
        .def("top_depth", &SamplerHandle::top_depth)
        .def("top_lack", &SamplerHandle::top_lack)
        .def("begin", &SamplerHandle::begin, "from_worst"_a, "n_jobs"_a)
        .def("set_powers", &SamplerHandle::set_powers, "powers"_a)
        .def("sum_top", &SamplerHandle::sum_top, "steps"_a, "bytes"_a, "depth"_a, "n_jobs"_a)
        .def("run", &SamplerHandle::run, nb::kw_only(), "n_draws"_a, "thin"_a, "n_single"_a, "n_blocks"_a, "n_jobs"_a)
        .def("counts", &SamplerHandle::counts)
        .def("forget_counts", &SamplerHandle::forget_counts)
        .def("best", &SamplerHandle::best)
        .def("state", &SamplerHandle::state)
        .def("restore", &SamplerHandle::restore, nb::kw_only(), "chain"_a, "random"_a, "n_draws"_a, "sizes"_a,
             "columns"_a, "codes"_a);
    module.def("make_sampler", &make_sampler, nb::kw_only(), "name"_a, "size"_a, "prior"_a, "codes"_a, "n_codes"_a,
               "kinds"_a, "statistics"_a, "log_split"_a, "log_stop"_a, "summed_depth"_a, "only_nontrivial"_a,
               "block_depth"_a, "max_block_cost"_a, "powers"_a, "seeds"_a);
}

}  // namespace everytree::bind
