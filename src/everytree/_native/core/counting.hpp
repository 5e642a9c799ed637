// Rows counted in every tree of a forest: into statistics alone, from which evidence is computed later, or into
// posteriors, whose evidence is updated at once. A row that stops above a terminal, because there is no branch for its
// code, is left out of that tree.
#pragma once
#include <vector>

#include "core/forest.hpp"
#include "core/posterior.hpp"
#include "core/rows.hpp"

namespace everytree {

// The statistics of one tree, (n_nodes, layout.size()), those of terminals filled.
struct TreeCounts {
    double* statistics;
    std::int64_t* n_rows;
};

// The terminal of a row that a tree cannot place.
inline constexpr std::int32_t nowhere = -1;

// Into statistics alone.
template <class Family>
class IntoStatistics {
  public:
    IntoStatistics(const Family& family, std::vector<TreeCounts> trees)
        : family_(family), size_(static_cast<std::size_t>(family.layout.size())), trees_(std::move(trees)) {}

    void begin(std::int64_t) {}
    void add_rows(std::size_t t, const RowView rows, const std::int32_t* at, std::int64_t n) const {
        const std::size_t size = size_;
        double* const all = trees_[t].statistics;
        std::int64_t n_added = 0;
        for (std::int64_t i = 0; i < n; ++i) {
            const Row row = rows[i];
            if (!(row.weight > 0.0) || at[i] == nowhere) continue;
            family_.add(all + static_cast<std::size_t>(at[i]) * size, row);
            ++n_added;
        }
        *trees_[t].n_rows += n_added;
    }
    void end() {}
    void roll_back() {}

  private:
    const Family& family_;
    std::size_t size_;
    std::vector<TreeCounts> trees_;
};

// Into posteriors: only the nodes that rows touch are updated.
template <class Family>
class IntoPosteriors {
  public:
    explicit IntoPosteriors(std::vector<PosteriorKernel<Family>*> kernels)
        : kernels_(std::move(kernels)), n_rows_(kernels_.size(), 0) {}

    void begin(std::int64_t n_rows) {
        for (auto* kernel : kernels_) kernel->begin_rows(n_rows);
    }
    void add_rows(std::size_t t, const RowView rows, const std::int32_t* at, std::int64_t n) {
        for (std::int64_t i = 0; i < n; ++i) {
            const Row row = rows[i];
            if (!(row.weight > 0.0) || at[i] == nowhere) continue;
            kernels_[t]->add_row(row, at[i]);
            ++n_rows_[t];
        }
    }
    void end() {
        for (auto* kernel : kernels_) kernel->end_rows();
        for (auto* kernel : kernels_) kernel->sweep_touched();
    }
    void roll_back() {
        for (auto* kernel : kernels_) kernel->roll_back();
    }
    // Number of rows with weight that each tree has placed.
    const std::vector<std::int64_t>& n_rows() const { return n_rows_; }

  private:
    std::vector<PosteriorKernel<Family>*> kernels_;
    std::vector<std::int64_t> n_rows_;
};

template <class Family, class Code, class Into>
class ForestCount {
  public:
    ForestCount(const ForestShape& forest, const Family& family, Into& into)
        : forest_(forest), family_(family), into_(into) {}

    // All rows are checked before the first one is added, so that a refused row changes nothing.
    void run(const CodeTable& table, const RowColumns& columns, int n_jobs) {
        const CodeReader<Code> codes(table, forest_.limits());
        check(codes, columns, n_jobs);
        try {
            into_.begin(table.n_rows);
            add(codes, columns, n_jobs);
        } catch (...) {
            into_.roll_back();
            throw;
        }
        into_.end();
    }

  private:
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
        // The nodes of a chunk's rows in all trees should stay in the cache together.
        const auto n_trees = static_cast<std::int64_t>(forest_.n_trees());
        const std::int64_t size = std::clamp<std::int64_t>(65536 / n_trees, 256, chunk_rows);
        const auto size_of = [&](std::int64_t chunk) { return std::min(size, table.n_rows() - chunk * size); };
        std::vector<Worker> workers(
            static_cast<std::size_t>(std::max(n_jobs, 1)),
            Worker{RowChunk(family_.n_extra), {forest_.n_trees(), std::vector<std::int32_t>()}, {}, {}});
        const auto locate = [&](std::int64_t chunk, int worker) {
            const std::int64_t begin = chunk * size, n = size_of(chunk);
            Worker& mine = workers[worker];
            const Codes<Code> codes = table.rows(begin, n, mine.codes);
            mine.rows.read(family_, columns, begin, n);
            forest_.find_unusual(codes, begin, n, mine.unusual);
            for (std::size_t t = 0; t < forest_.n_trees(); ++t) locate_in(t, mine, codes, begin, n);
        };
        const auto accumulate = [&](std::int64_t chunk, int worker) {
            const Worker& mine = workers[worker];
            for (std::size_t t = 0; t < forest_.n_trees(); ++t)
                into_.add_rows(t, mine.rows.view(), mine.at[t].data(), size_of(chunk));
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

    const ForestShape& forest_;
    const Family& family_;
    Into& into_;
};

// The statistics of inner nodes from those of their children.
inline void sum_up(const TreeView& tree, const Layout& layout, double* statistics) {
    const auto size = static_cast<std::size_t>(layout.size());
    for (std::int64_t s = tree.n_nodes - 1; s >= 0; --s) {
        if (tree.n_children[s] == 0) continue;
        double* own = statistics + static_cast<std::size_t>(s) * size;
        layout.clear(own);
        for (std::int32_t c = 0; c < tree.n_children[s]; ++c)
            layout.add(own, statistics + static_cast<std::size_t>(tree.first_child[s] + c) * size);
    }
}

// Statistics of all nodes of one tree, from rows whose terminals are known, in the order of the rows.
template <class Family>
std::vector<double> count_placed(const Family& family, const TreeView& tree, const std::int32_t* ends,
                                 const RowColumns& columns, std::int64_t n_rows) {
    std::vector<double> statistics(static_cast<std::size_t>(tree.n_nodes * family.layout.size()), 0.0);
    std::int64_t n_counted = 0;
    const IntoStatistics<Family> into(family, {{statistics.data(), &n_counted}});
    RowChunk rows(family.n_extra);
    for (std::int64_t begin = 0; begin < n_rows; begin += chunk_rows) {
        const std::int64_t n = std::min(chunk_rows, n_rows - begin);
        rows.read(family, columns, begin, n);
        into.add_rows(0, rows.view(), ends + begin, n);
    }
    sum_up(tree, family.layout, statistics.data());
    return statistics;
}

}  // namespace everytree
