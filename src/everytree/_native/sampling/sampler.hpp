// Several chains on the same points, each with random numbers of its own.
#pragma once
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/parallel.hpp"
#include "sampling/chain.hpp"

namespace everytree::sampling {

template <class Family>
class Sampler {
  public:
    Sampler(Points<Family> points, SamplerOptions options, const std::vector<double>& powers,
            const std::vector<std::uint64_t>& seeds)
        : points_(std::make_unique<Points<Family>>(std::move(points))),
          options_(std::make_unique<SamplerOptions>(std::move(options))) {
        for (const std::uint64_t seed : seeds)
            chains_.push_back(std::make_unique<Chain<Family>>(*points_, *options_, powers, seed));
        powers_ = powers;
    }

    std::size_t n_chains() const { return chains_.size(); }
    Chain<Family>& chain(std::size_t i) { return *chains_[i]; }
    const Points<Family>& points() const { return *points_; }

    // Sums of the first levels are forgotten: they belong to the powers before.
    void set_powers(const std::vector<double>& powers) {
        set_top(nullptr);
        powers_ = powers;
        for (auto& chain : chains_) chain->set_powers(powers);
    }
    // Sums the first levels, within limits.
    void sum_top(const TopLimits& limits, int n_jobs, exact::Watch& watch) {
        set_top(nullptr);
        set_top(std::make_unique<TopSums<Family>>(*points_, *options_, powers_, limits, n_jobs, watch));
    }

    // What the sums over the first levels lack to be as deep as asked.
    Lack top_lack() const { return top_ ? top_->lack() : Lack::nothing; }
    // Depth of the sums over the first levels, 0 without any.
    int top_depth() const { return top_ ? top_->depth() : 0; }
    // Depth of the sums of a block at the root.
    int horizon() const { return std::max(top_depth(), own_horizon()); }
    void begin(bool from_worst, int n_jobs) {
        in_chunks(static_cast<std::int64_t>(chains_.size()), n_jobs,
                  [&](std::int64_t i, int) { chain(static_cast<std::size_t>(i)).begin(from_worst); });
    }
    std::vector<Record> run(const Schedule& schedule, int n_jobs) {
        std::vector<Record> records(chains_.size());
        in_chunks(static_cast<std::int64_t>(chains_.size()), n_jobs, [&](std::int64_t i, int) {
            chain(static_cast<std::size_t>(i)).run(schedule, records[static_cast<std::size_t>(i)]);
        });
        return records;
    }

  private:
    // Depth of the sums that a chain computes by itself at the root.
    int own_horizon() const {
        Region region;
        region.start(*points_);
        std::vector<Point> all(static_cast<std::size_t>(points_->n_points()));
        for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<Point>(i);
        Candidates candidates;
        candidates.list(*points_, region, all.data(), all.data() + all.size(), options_->only_nontrivial);
        return options_->horizon(1.0, static_cast<double>(all.size()), points_->n_columns(), candidates.n(), 0);
    }
    void set_top(std::unique_ptr<TopSums<Family>> top) {
        top_ = std::move(top);
        for (auto& chain : chains_) chain->set_top(top_.get());
    }

    std::unique_ptr<Points<Family>> points_;  // chains refer to them
    std::unique_ptr<SamplerOptions> options_;
    std::vector<double> powers_;
    std::unique_ptr<TopSums<Family>> top_;
    std::vector<std::unique_ptr<Chain<Family>>> chains_;
};

}  // namespace everytree::sampling
