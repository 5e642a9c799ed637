// Statistics of the rows of many batches in every tree of a forest, and nothing else: evidence waits until all rows are
// there. A row that stops above a terminal, for want of a branch for its answer, is left out of that tree.
#pragma once
#include <vector>

#include "core/forest.hpp"
#include "core/rows.hpp"

namespace everytree {

// The statistics of one tree, (n_nodes, layout.size()), those of terminals filled.
struct TreeCounts {
    double* statistics;
    std::int64_t* n_rows;
};

template <class Family, class Code>
class ForestCount {
  public:
    ForestCount(const ForestShape& forest, const Family& family, std::vector<TreeCounts> trees)
        : forest_(forest),
          family_(family),
          size_(static_cast<std::size_t>(family.layout.size())),
          trees_(std::move(trees)) {}

    // All rows are checked before the first one is added: one that is refused has changed nothing.
    void run(const CodeTable& table, const RowColumns& columns, int n_jobs) {
        const CodeReader<Code> codes(table, forest_.limits());
        check(codes, columns, n_jobs);
        add(codes, columns, n_jobs);
    }

  private:
    static constexpr std::int32_t nowhere = -1;
    struct Worker {
        RowChunk rows;
        std::vector<std::vector<std::int32_t>> at;
        std::vector<Code> codes;
        std::vector<std::int64_t> unusual;
    };

    void check(const CodeReader<Code>& table, const RowColumns& columns, int n_jobs) const {
        std::vector<RowChunk> chunks(static_cast<std::size_t>(std::max(n_jobs, 1)), RowChunk(family_.n_extra));
        std::vector<std::vector<Code>> codes(chunks.size());
        const auto look = [&](std::int64_t chunk, int worker) {
            const std::int64_t begin = chunk * chunk_rows, n = std::min(chunk_rows, table.n_rows() - begin);
            table.rows(begin, n, codes[worker]);
            chunks[worker].read(family_, columns, begin, n);
        };
        in_chunks((table.n_rows() + chunk_rows - 1) / chunk_rows, n_jobs, look);
    }

    void add(const CodeReader<Code>& table, const RowColumns& columns, int n_jobs) {
        // The places of a chunk's rows in all trees should stay in the cache together.
        const auto n_trees = static_cast<std::int64_t>(trees_.size());
        const std::int64_t size = std::clamp<std::int64_t>(65536 / n_trees, 256, chunk_rows);
        const auto size_of = [&](std::int64_t chunk) { return std::min(size, table.n_rows() - chunk * size); };
        std::vector<Worker> workers(
            static_cast<std::size_t>(std::max(n_jobs, 1)),
            Worker{RowChunk(family_.n_extra), {trees_.size(), std::vector<std::int32_t>()}, {}, {}});
        const auto locate = [&](std::int64_t chunk, int worker) {
            const std::int64_t begin = chunk * size, n = size_of(chunk);
            Worker& mine = workers[worker];
            const Codes<Code> codes = table.rows(begin, n, mine.codes);
            mine.rows.read(family_, columns, begin, n);
            forest_.find_unusual(codes, begin, n, mine.unusual);
            for (std::size_t t = 0; t < trees_.size(); ++t) locate_in(t, mine, codes, begin, n);
        };
        const auto accumulate = [&](std::int64_t chunk, int worker) {
            const Worker& mine = workers[worker];
            for (std::size_t t = 0; t < trees_.size(); ++t)
                add_rows(trees_[t], mine.rows.view(), mine.at[t].data(), size_of(chunk));
        };
        in_ordered_chunks((table.n_rows() + size - 1) / size, n_jobs, locate, accumulate);
    }

    void locate_in(std::size_t t, Worker& mine, const Codes<Code>& codes, std::int64_t begin, std::int64_t n) const {
        mine.at[t].resize(static_cast<std::size_t>(n));
        std::int32_t* at = mine.at[t].data();
        forest_.ends(t, codes, begin, n, mine.unusual, at);
        for (const std::int64_t i : mine.unusual)
            if (!forest_.is_terminal(t, at[i])) at[i] = nowhere;
    }

    void add_rows(const TreeCounts& tree, const RowView rows, const std::int32_t* at, std::int64_t n) const {
        const std::size_t size = size_;
        double* const all = tree.statistics;
        std::int64_t n_added = 0;
        for (std::int64_t i = 0; i < n; ++i) {
            const Row row = rows[i];
            if (!(row.weight > 0.0) || at[i] == nowhere) continue;
            family_.add(all + static_cast<std::size_t>(at[i]) * size, row);
            ++n_added;
        }
        *tree.n_rows += n_added;
    }

    const ForestShape& forest_;
    const Family& family_;
    std::size_t size_;
    std::vector<TreeCounts> trees_;
};

}  // namespace everytree
