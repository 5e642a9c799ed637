// One update of many meta-trees: rows of a region are counted once and its evidence is computed once, for
// all trees in which it occurs (the remark after Theorem 1 in the paper).
#pragma once
#include <cstring>
#include <vector>

#include "core/posterior.hpp"
#include "core/regions.hpp"

namespace everytree {

struct SharedReport {
    std::int64_t n_weighted = 0, nodes_touched = 0, nodes_evaluated = 0;
};

template <class Family, class Code>
class SharedUpdate {
  public:
    SharedUpdate(const SharedPlan& plan, const std::vector<PosteriorKernel<Family>*>& kernels)
        : plan_(plan),
          kernels_(kernels),
          family_(kernels.front()->family()),
          size_(static_cast<std::size_t>(family_.layout.size())),
          touched_(plan.n_shared),
          fresh_(static_cast<std::size_t>(plan.n_shared) * size_, 0.0),
          first_evaluated_(static_cast<std::size_t>(plan.n_shared), Member{-1, -1}) {}

    SharedReport run(const CodeReader<Code>& table, const RowColumns& columns, int n_jobs) {
        SharedReport report;
        try {
            for (auto* kernel : kernels_) kernel->begin_rows(table.n_rows());
            report.n_weighted = count(table, columns, n_jobs);
            distribute();
        } catch (...) {
            for (auto* kernel : kernels_) kernel->roll_back();
            throw;
        }
        for (std::size_t t = 0; t < kernels_.size(); ++t) sweep(static_cast<std::int32_t>(t), report);
        return report;
    }

  private:
    struct Worker {
        RowChunk rows;
        std::vector<std::vector<std::int32_t>> at;
        std::vector<Code> codes;
    };

    // New rows: into the tree itself if no other tree has the terminal, else into the region's new
    // statistics.
    std::int64_t count(const CodeReader<Code>& table, const RowColumns& columns, int n_jobs) {
        // The nodes of a chunk's rows in all trees should stay in the cache together.
        const std::int64_t size =
            std::clamp<std::int64_t>(65536 / static_cast<std::int64_t>(kernels_.size()), 256, chunk_rows);
        const std::int64_t n_chunks = (table.n_rows() + size - 1) / size;
        std::vector<Worker> workers(
            static_cast<std::size_t>(std::max(n_jobs, 1)),
            Worker{RowChunk(family_.n_extra), {kernels_.size(), std::vector<std::int32_t>()}, {}});
        const auto checking = kernels_with_own_limits();
        std::int64_t n_weighted = 0;
        const auto size_of = [&](std::int64_t chunk) { return std::min(size, table.n_rows() - chunk * size); };
        const auto locate = [&](std::int64_t chunk, int worker) {
            const std::int64_t begin = chunk * size, n = size_of(chunk);
            Worker& mine = workers[worker];
            const Codes<Code> codes = table.rows(begin, n, mine.codes);
            for (const auto* kernel : checking) kernel->template check<Code>()(codes, begin, n);
            mine.rows.read(family_, columns, begin, n);
            for (std::size_t t = 0; t < kernels_.size(); ++t)
                if (plan_.counts[t]) locate_in(t, mine, codes, begin, n);
        };
        const auto accumulate = [&](std::int64_t chunk, int worker) {
            const std::int64_t n = size_of(chunk);
            const Worker& mine = workers[worker];
            const RowView rows = mine.rows.view();
            for (std::size_t t = 0; t < kernels_.size(); ++t) {
                if (plan_.counts_alone[t])
                    kernels_[t]->add_rows(rows, mine.at[t].data(), n);
                else if (plan_.counts[t])
                    add_rows(t, rows, mine.at[t].data(), n);
            }
            for (std::int64_t i = 0; i < n; ++i) n_weighted += rows.weight[i] != 0.0;
        };
        in_ordered_chunks(n_chunks, n_jobs, locate, accumulate);
        return n_weighted;
    }

    void locate_in(std::size_t t, Worker& mine, const Codes<Code>& codes, std::int64_t begin, std::int64_t n) const {
        auto& at = mine.at[t];
        at.assign(static_cast<std::size_t>(n), 0);
        if (plan_.guide[t] >= 0) {
            const std::int32_t *guide = mine.at[plan_.guide[t]].data(), *start = plan_.start[t].data();
            for (std::int64_t i = 0; i < n; ++i) at[i] = start[guide[i]];
        }
        route(kernels_[t]->arrays().tree.below(plan_.levels_known[t]), codes, begin, n, at.data());
    }

    // Trees that allow the same codes are checked once.
    std::vector<const PosteriorKernel<Family>*> kernels_with_own_limits() const {
        std::vector<const PosteriorKernel<Family>*> chosen;
        const auto same = [](const CodeLimits& a, const CodeLimits& b) {
            return a.n_features == b.n_features && std::equal(a.limit, a.limit + a.n_features, b.limit) &&
                   std::equal(a.shift, a.shift + a.n_features, b.shift);
        };
        for (const auto* kernel : kernels_)
            if (std::none_of(chosen.begin(), chosen.end(), [&](const auto* one) {
                    return same(one->arrays().checks->limits(), kernel->arrays().checks->limits());
                }))
                chosen.push_back(kernel);
        return chosen;
    }

    void add_rows(std::size_t t, const RowView rows, const std::int32_t* at, std::int64_t n) {
        const std::int32_t *shared = plan_.shared[t].data(), *owner = plan_.owner.data();
        for (std::int64_t i = 0; i < n; ++i) {
            const Row row = rows[i];
            const std::int32_t r = shared[at[i]];
            if (!(row.weight > 0.0)) continue;
            if (r < 0) {
                kernels_[t]->add_row(row, at[i]);
            } else if (owner[r] == static_cast<std::int32_t>(t)) {
                touched_.touch(r);
                family_.add(fresh_.data() + r * size_, row);
            }
        }
    }

    // Adds what was counted once to every tree that has the region.
    void distribute() {
        for (const std::int32_t r : touched_.nodes())
            for (std::size_t i = plan_.first_terminal[r]; i < plan_.first_terminal[r + 1]; ++i)
                kernels_[plan_.terminals[i].tree]->add_statistics(fresh_.data() + r * size_, plan_.terminals[i].node);
        for (auto* kernel : kernels_) kernel->end_rows();
    }

    // Evidence depends only on statistics and prior: if both are the same to the bit in the tree that has
    // the region first, its evidence is used for this tree too.
    void sweep(std::int32_t t, SharedReport& report) {
        auto& kernel = *kernels_[t];
        const std::int32_t* shared = plan_.shared[t].data();
        report.nodes_touched += static_cast<std::int64_t>(kernel.touched().nodes().size());
        kernel.sweep_touched([&](std::int32_t node) {
            if (shared[node] >= 0) {
                Member& first = first_evaluated_[shared[node]];
                if (first.tree < 0)
                    first = {t, node};
                else if (same_prior_and_rows(*kernels_[first.tree], first.node, kernel, node))
                    return kernels_[first.tree]->arrays().evidence.leaf[first.node];
            }
            ++report.nodes_evaluated;
            return kernel.leaf_evidence(node);
        });
    }

    bool same_prior_and_rows(const PosteriorKernel<Family>& one, std::int32_t node,
                             const PosteriorKernel<Family>& other, std::int32_t other_node) const {
        const auto same = [](const double* a, const double* b, int n) {
            return a == b || std::memcmp(a, b, sizeof(double) * static_cast<std::size_t>(n)) == 0;
        };
        return same(one.statistics(node), other.statistics(other_node), family_.layout.size()) &&
               same(one.arrays().leaf_prior[node], other.arrays().leaf_prior[other_node], one.family().n_prior);
    }

    const SharedPlan& plan_;
    const std::vector<PosteriorKernel<Family>*>& kernels_;
    const Family& family_;
    std::size_t size_;
    TouchedNodes touched_;       // shared regions with new rows
    std::vector<double> fresh_;  // statistics of these rows
    std::vector<Member> first_evaluated_;
};

}  // namespace everytree
