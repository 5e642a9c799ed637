// A chain: replicas at several powers of the evidence, which exchange their structures.
#pragma once
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "sampling/moves.hpp"
#include "sampling/snapshot.hpp"

namespace everytree::sampling {

// What a chain has recorded, draw by draw.
struct Record {
    std::vector<double> log_evidence;  // of the coldest structure
    std::vector<double> n_leaves;      // expected number of leaves of its prunings
    std::vector<double> used;          // (n_draws, n_columns) probability that a pruning uses each column
    std::vector<std::int32_t> root_column, root_code;
    // (n_draws, n_powers) log q of each replica's structure at its own power, and at the powers before and after it.
    std::vector<double> own, hotter, colder;
    std::vector<Snapshot> kept;
};

struct Schedule {
    std::int64_t n_draws, thin;  // every thin-th draw is kept as a snapshot, none if 0
    int n_single, n_blocks;      // proposals per draw and replica
};

template <class Family>
class Chain {
  public:
    // Powers increase; the last one is that of the target. At power 0 every structure has the same evidence.
    Chain(const Points<Family>& points, const SamplerOptions& options, const std::vector<double>& powers,
          std::uint64_t seed)
        : points_(points), options_(options), random_(seed), powers_(powers) {
        for (std::size_t i = 0; i < powers.size(); ++i) {
            replicas_.push_back(std::make_unique<Replica<Family>>(points, options));
            ahead_.push_back(std::make_unique<Lookahead<Family>>(points, options));
        }
        counts_.resize(powers.size());
        n_exchanged_.assign(powers.size(), 0.0);
        n_tried_ = n_exchanged_;
        set_powers(powers);
    }

    void begin(bool from_worst) {
        Plan plan;
        plan.draw = from_worst ? Draw::worst : Draw::prior;
        for (std::size_t i = 0; i < replicas_.size(); ++i) replicas_[i]->begin(plan, random_, ahead_[i].get(), nullptr);
    }
    // False if the splits are not those of a structure.
    bool begin(std::size_t replica, const std::vector<Split>& splits) {
        Plan plan;
        plan.draw = Draw::listed;
        return replicas_[replica]->begin(plan, random_, ahead_[replica].get(), &splits);
    }
    void set_powers(const std::vector<double>& powers) {
        powers_ = powers;
        for (std::size_t i = 0; i < powers.size(); ++i) {
            replicas_[i]->set_power(powers[i]);
            ahead_[i]->set_power(powers[i]);
        }
    }

    void set_top(const TopSums<Family>* top) {
        for (std::size_t i = 0; i < ahead_.size(); ++i) ahead_[i]->set_top(top, i);
    }

    void run(const Schedule& schedule, Record& record) {
        for (std::int64_t draw = 0; draw < schedule.n_draws; ++draw, ++n_draws_) {
            for (std::size_t i = 0; i < replicas_.size(); ++i) move(i, schedule);
            take_down(schedule, record);
            exchange(record);
        }
    }

    ChainRandom& random() { return random_; }
    std::int64_t n_draws() const { return n_draws_; }
    void set_n_draws(std::int64_t n) { n_draws_ = n; }
    std::vector<Split> structure(std::size_t replica) const { return replicas_[replica]->listed(); }
    const std::vector<MoveCounts>& counts() const { return counts_; }
    const std::vector<double>& n_exchanged() const { return n_exchanged_; }
    const std::vector<double>& n_tried() const { return n_tried_; }
    const BestTree& best() const { return best_; }
    void forget_counts() {
        counts_.assign(counts_.size(), MoveCounts{});
        n_exchanged_.assign(n_exchanged_.size(), 0.0);
        n_tried_.assign(n_tried_.size(), 0.0);
    }

  private:
    static constexpr double negligible = 1e-6;  // probability of nodes that snapshots leave out

    void move(std::size_t i, const Schedule& schedule) {
        if (powers_[i] == 0.0) {  // the prior itself can be drawn from
            replicas_[i]->begin(Plan{}, random_, nullptr, nullptr);
            return;
        }
        Mover<Family> mover(points_, *replicas_[i], *ahead_[i], random_, counts_[i]);
        for (int n = 0; n < schedule.n_single; ++n) mover.single_site();
        for (int n = 0; n < schedule.n_blocks; ++n) n % 2 == 0 ? mover.whole_block() : mover.block();
    }

    void take_down(const Schedule& schedule, Record& record) {
        Replica<Family>& cold = *replicas_.back();
        const StructureNode& root = cold.nodes()[0];
        Snapshot now = Photographer<Family>(points_, options_, negligible).take(cold, random_.aside());
        record.log_evidence.push_back(cold.log_evidence());
        double n_leaves = 0.0;
        for (std::size_t i = 0; i < now.size(); ++i) n_leaves += now.reach[i] * (1.0 - now.split_prob[i]);
        record.n_leaves.push_back(n_leaves);
        const std::size_t first = record.used.size();
        record.used.resize(first + static_cast<std::size_t>(points_.n_columns()), 0.0);
        for (const std::int32_t column : columns_of(now))
            record.used[first + static_cast<std::size_t>(column)] =
                1.0 - unused_prob(now, scratch_, [column](std::int32_t other) { return other == column; });
        record.root_column.push_back(root.split.column);
        record.root_code.push_back(root.split.code);
        BestTreeSearch<Family> search(cold, options_);
        if (search.log_joint() > best_.log_joint) best_ = search.tree();
        if (schedule.thin > 0 && n_draws_ % schedule.thin == 0) record.kept.push_back(std::move(now));
    }

    // Neighbouring powers exchange structures, every second pair at a time: always the same ones, so that structures
    // wander from one end to the other instead of to and fro.
    void exchange(Record& record) {
        const std::size_t n = replicas_.size();
        std::vector<double> hotter(n, 0.0), colder(n, 0.0);
        for (std::size_t i = 0; i < n; ++i) {
            record.own.push_back(replicas_[i]->log_evidence());
            if (i > 0) hotter[i] = replicas_[i]->log_evidence_at(powers_[i - 1]);
            if (i + 1 < n) colder[i] = replicas_[i]->log_evidence_at(powers_[i + 1]);
        }
        const double* own = record.own.data() + record.own.size() - n;
        for (std::size_t i = static_cast<std::size_t>(n_draws_ % 2); i + 1 < n; i += 2) {
            const double log_ratio = colder[i] + hotter[i + 1] - own[i] - own[i + 1];
            n_tried_[i] += 1.0;
            n_exchanged_[i] += std::exp(std::fmin(log_ratio, 0.0));
            if (std::log(random_.uniform()) >= log_ratio) continue;
            std::swap(replicas_[i], replicas_[i + 1]);
            replicas_[i]->set_power(powers_[i]);
            replicas_[i + 1]->set_power(powers_[i + 1]);
        }
        record.hotter.insert(record.hotter.end(), hotter.begin(), hotter.end());
        record.colder.insert(record.colder.end(), colder.begin(), colder.end());
    }

    const Points<Family>& points_;
    const SamplerOptions& options_;
    ChainRandom random_;
    std::vector<double> powers_;
    std::vector<std::unique_ptr<Replica<Family>>> replicas_;  // by power
    std::vector<std::unique_ptr<Lookahead<Family>>> ahead_;   // by power
    std::vector<MoveCounts> counts_;
    std::vector<double> n_exchanged_, n_tried_;  // sums of acceptance probabilities, and attempts, of pairs i, i + 1
    std::vector<double> scratch_;
    BestTree best_;
    std::int64_t n_draws_ = 0;
};

}  // namespace everytree::sampling
