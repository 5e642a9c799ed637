// One meta-tree and one family: statistics in, evidence and split probabilities out.
//
// The arrays belong to NumPy; a kernel borrows them and adds only scratch memory that is not kept between calls.
#pragma once
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "core/families.hpp"
#include "core/parallel.hpp"
#include "core/route.hpp"
#include "core/rows.hpp"
#include "core/sweep.hpp"
#include "numerics/compiler.hpp"

namespace everytree {

// Prepared prior hyperparameters: one row of n_prior numbers, or one for every node.
struct LeafPrior {
    const double* data;
    std::ptrdiff_t stride;
    const double* operator[](std::int64_t node) const { return data + node * stride; }
};

struct PosteriorArrays {
    TreeView tree;
    const CodeChecks* checks;
    SplitPrior split_prior;
    LeafPrior leaf_prior;
    double* statistics;
    EvidenceView evidence;
};

template <class Family>
class PosteriorKernel {
  public:
    PosteriorKernel(const Family& family, const PosteriorArrays& arrays)
        : family_(family), arrays_(arrays), size_(family.layout.size()), touched_(arrays.tree.n_nodes) {
        if constexpr (requires { family_.tabulate(nullptr); })
            if (arrays.leaf_prior.stride == 0) family_.tabulate(arrays.leaf_prior.data);
        workers_.emplace_back(family_.n_extra);
    }

    const Family& family() const { return family_; }
    const PosteriorArrays& arrays() const { return arrays_; }
    TouchedNodes& touched() { return touched_; }
    double* statistics(std::int64_t node) const { return arrays_.statistics + node * size_; }

    template <class Code>
    const CodeCheck<Code>& check() const {
        return arrays_.checks->of<Code>();
    }

    // Corollary 1 for any number of rows. Returns how many rows had weight. Any exception leaves all arrays
    // unchanged: terminals are restored from `replaced_`, and nothing else has been written by then.
    template <class Code>
    std::int64_t update(const CodeReader<Code>& table, const RowColumns& columns, int n_jobs) {
        const std::int64_t n_chunks = (table.n_rows() + chunk_rows - 1) / chunk_rows;
        // Rows are added in order, threads take turns. Where a tree has few nodes for the rows of a turn, these are
        // summed up before; of a long table a turn has several chunks, for changing turns takes time too.
        const std::int64_t longest_turn = std::max<std::int64_t>(n_chunks / n_long_turns, 1);
        const bool sums_first = n_chunks > 1 && min_rows_a_node * arrays_.tree.n_nodes <= longest_turn * chunk_rows;
        const std::int64_t chunks_a_turn = sums_first ? longest_turn : 1;
        const std::int64_t n_turns = (n_chunks + chunks_a_turn - 1) / chunks_a_turn;
        const std::int64_t n_workers = std::clamp<std::int64_t>(n_jobs, 1, std::max<std::int64_t>(n_turns, 1));
        while (static_cast<std::int64_t>(workers_.size()) < n_workers) workers_.emplace_back(family_.n_extra);
        std::int64_t n_weighted = 0;
        const auto locate = [&](std::int64_t turn, int worker) {
            Worker& mine = workers_[worker];
            if (sums_first) clear_sums(mine);
            const std::int64_t first = turn * chunks_a_turn, last = std::min(first + chunks_a_turn, n_chunks);
            for (std::int64_t chunk = first; chunk < last; ++chunk) {
                mine.n_found = find_rows(table, columns, chunk, mine);
                if (sums_first) sum_up(mine);
            }
        };
        const auto accumulate = [&](std::int64_t, int worker) {
            const Worker& mine = workers_[worker];
            n_weighted += sums_first ? add_sums(mine) : add_rows(mine.rows.view(), mine.at.data(), mine.n_found);
        };
        try {
            begin_rows(table.n_rows());
            in_ordered_chunks(n_turns, n_jobs, locate, accumulate);
            end_rows();
        } catch (...) {
            roll_back();
            throw;
        }
        sweep_touched();
        return n_weighted;
    }

    // The steps of an update, for callers that supply the rows themselves: begin_rows, then add_rows or add_row
    // any number of times, then end_rows and sweep_touched; or roll_back at any time before that.

    void begin_rows(std::int64_t n_rows) {
        many_rows_ = n_rows >= 8 * arrays_.tree.n_nodes;
        if (many_rows_) replaced_.assign(arrays_.statistics, statistics(arrays_.tree.n_nodes));
    }
    std::int64_t add_rows(const RowView rows, const std::int32_t* at, std::int64_t n) {
        return many_rows_ ? add_rows_as<true>(rows, at, n) : add_rows_as<false>(rows, at, n);
    }
    void add_row(const Row& row, std::int32_t terminal) {
        if (!many_rows_ && !touched_.holds(terminal)) save(terminal);
        family_.add(statistics(terminal), row);
    }
    void add_statistics(const double* fresh, std::int32_t terminal) {
        if (!many_rows_ && !touched_.holds(terminal)) save(terminal);
        family_.layout.add(statistics(terminal), fresh);
    }
    void end_rows() {
        if (many_rows_) touch_changed();
        touched_.close_upward(arrays_.tree);
    }
    void roll_back() {
        if (many_rows_) {
            std::copy(replaced_.begin(), replaced_.end(), arrays_.statistics);
        } else {
            const std::size_t n_saved = replaced_.size() / size_;
            for (std::size_t i = 0; i < n_saved; ++i)
                std::memcpy(statistics(saved_[i]), replaced_.data() + i * size_, sizeof(double) * size_);
        }
        replaced_.clear();
        saved_.clear();
        touched_.clear();
    }

    // Adds statistics of another posterior over the same tree, node by node.
    void merge(const double* other) {
        if (has_none(statistics(0))) {
            for (std::int64_t node = 0; node < arrays_.tree.n_nodes; ++node)
                if (arrays_.tree.n_children[node] == 0) std::copy_n(other + node * size_, size_, statistics(node));
            return sweep_all();
        }
        begin_rows(0);
        for (std::int64_t node = 0; node < arrays_.tree.n_nodes; ++node) {
            const double* from = other + node * size_;
            if (arrays_.tree.n_children[node] != 0) continue;
            if (has_none(from)) continue;
            add_statistics(from, static_cast<std::int32_t>(node));
        }
        end_rows();
        sweep_touched();
    }

    // All nodes with rows, from the statistics of the terminals, where no evidence is known yet.
    void sweep_all() {
        for (std::int64_t node = arrays_.tree.n_nodes; node-- > 0;) {  // children before their parents
            gather_from_children(static_cast<std::int32_t>(node));
            if (has_none(statistics(node))) continue;
            arrays_.evidence.leaf[node] = leaf_evidence(node);
            sweep_node(arrays_.tree, arrays_.split_prior, node, arrays_.evidence);
        }
    }

    // log p(y of a row | all other rows), for rows that are in the posterior: along the row's path every node's
    // evidence with and without the row. Nothing is written but `out`.
    template <class Code>
    void leave_one_out(const CodeReader<Code>& table, const RowColumns& columns, int n_jobs, double* out) const {
        const std::int64_t n_chunks = (table.n_rows() + chunk_rows - 1) / chunk_rows;
        std::vector<Worker> workers(static_cast<std::size_t>(std::max(n_jobs, 1)), Worker(family_.n_extra));
        const auto work = [&](std::int64_t chunk, int worker) {
            Worker& mine = workers[worker];
            const std::int64_t begin = chunk * chunk_rows, n = find_rows(table, columns, chunk, mine);
            std::vector<double> scratch(3 * size_);
            for (std::int64_t i = 0; i < n; ++i)
                out[begin + i] = log_prob_given_others(mine.rows.view()[i], mine.at[i], begin + i, scratch.data());
        };
        in_chunks(n_chunks, n_jobs, work);
    }

    // Evidence and split probability of the touched nodes from their new statistics; `leaf_evidence(node)` is
    // the evidence of one node, which update_all may take from another tree.
    template <class LeafEvidence>
    void sweep_touched(LeafEvidence leaf_evidence) {
        for (const std::int32_t node : touched_.nodes()) {
            gather_from_children(node);
            arrays_.evidence.leaf[node] = leaf_evidence(node);
            sweep_node(arrays_.tree, arrays_.split_prior, node, arrays_.evidence);
        }
        replaced_.clear();
        saved_.clear();
        touched_.clear();
    }
    void sweep_touched() {
        sweep_touched([this](std::int32_t node) { return leaf_evidence(node); });
    }
    double leaf_evidence(std::int64_t node) const {
        return family_.log_evidence(statistics(node), arrays_.leaf_prior[node]);
    }

  private:
    struct Worker {
        RowChunk rows;
        std::vector<std::int32_t> at;
        std::int64_t n_found = 0;  // rows whose terminals are known
        std::vector<std::uint8_t> codes8;
        std::vector<std::uint16_t> codes16;
        std::vector<double> sums;     // statistics of every node
        std::int64_t n_weighted = 0;  // rows in them
        explicit Worker(int n_extra) : rows(n_extra) {}
        template <class Code>
        std::vector<Code>& buffer() {
            if constexpr (sizeof(Code) == 1)
                return codes8;
            else
                return codes16;
        }
    };

    // Reads and checks one chunk of rows and finds their terminals. Returns how many rows it has.
    template <class Code>
    std::int64_t find_rows(const CodeReader<Code>& table, const RowColumns& columns, std::int64_t chunk,
                           Worker& mine) const {
        const std::int64_t begin = chunk * chunk_rows, n = std::min(chunk_rows, table.n_rows() - begin);
        const Codes<Code> codes = table.rows(begin, n, mine.template buffer<Code>());
        check<Code>()(codes, begin, n);
        mine.rows.read(family_, columns, begin, n);
        mine.at.assign(static_cast<std::size_t>(n), 0);
        route(arrays_.tree, codes, begin, n, mine.at.data());
        return n;
    }

    // Few rows: each terminal's statistics are saved when it is first touched. Many rows: all of them were
    // saved beforehand, and changes are found afterwards, which saves a test per row.
    template <bool ManyRows>
    std::int64_t add_rows_as(const RowView rows, const std::int32_t* at, std::int64_t n) {
        return add_rows_to(arrays_.statistics, rows, at, n, [this](std::int32_t terminal) {
            if constexpr (!ManyRows)
                if (!touched_.holds(terminal)) save(terminal);
        });
    }
    template <class Before>
    std::int64_t add_rows_to(double* const all, const RowView rows, const std::int32_t* at, std::int64_t n,
                             Before before) const {
        std::int64_t n_weighted = 0;
        const std::size_t size = size_;
        for (std::int64_t i = 0; i < n; ++i) {
            const Row row = rows[i];
            if (!(row.weight > 0.0)) continue;  // counts as absent
            before(at[i]);
            family_.add(all + at[i] * size, row);
            ++n_weighted;
        }
        return n_weighted;
    }

    // Rows of a turn for each node from which on they are summed up first.
    static constexpr std::int64_t min_rows_a_node = 8;
    // Turns of a long table: enough for many threads.
    static constexpr std::int64_t n_long_turns = 48;

    void clear_sums(Worker& mine) const {
        mine.sums.assign(static_cast<std::size_t>(arrays_.tree.n_nodes) * size_, 0.0);
        mine.n_weighted = 0;
    }
    void sum_up(Worker& mine) const {
        mine.n_weighted +=
            add_rows_to(mine.sums.data(), mine.rows.view(), mine.at.data(), mine.n_found, [](std::int32_t) {});
    }
    std::int64_t add_sums(const Worker& mine) {
        for (std::int64_t node = 0; node < arrays_.tree.n_nodes; ++node)
            if (arrays_.tree.n_children[node] == 0)
                family_.layout.add(statistics(node), mine.sums.data() + static_cast<std::size_t>(node) * size_);
        return mine.n_weighted;
    }

    // Kept out of the loop above: it happens once per terminal.
    EVERYTREE_NOINLINE void save(std::int32_t terminal) {
        const double* stat = statistics(terminal);
        saved_.push_back(terminal);
        replaced_.insert(replaced_.end(), stat, stat + size_);
        touched_.touch(terminal);
    }

    void touch_changed() {
        for (std::int64_t node = 0; node < arrays_.tree.n_nodes; ++node)
            if (arrays_.tree.n_children[node] == 0 && !equals_saved(node))
                touched_.touch(static_cast<std::int32_t>(node));
    }
    bool equals_saved(std::int64_t node) const {
        return std::memcmp(statistics(node), replaced_.data() + node * size_, sizeof(double) * size_) == 0;
    }

    double log_prob_given_others(const Row& row, std::int32_t terminal, std::int64_t place, double* scratch) const {
        double *weighted = scratch, *once = weighted + size_, *stat = once + size_;
        family_.layout.clear(weighted);
        family_.layout.clear(once);
        family_.add(weighted, row);
        family_.add(once, {row.y, 1.0, row.extra});
        double with = 0.0, without = 0.0;  // of the child that the row is in
        for (std::int32_t s = terminal, child = -1; s >= 0; child = s, s = arrays_.tree.parent[s]) {
            std::memcpy(stat, statistics(s), sizeof(double) * size_);
            if (!family_.layout.subtract(stat, weighted))
                throw std::invalid_argument("row " + std::to_string(place) +
                                            " is not in this posterior: there is less in " + "node " +
                                            std::to_string(s) + " than the row would take away");
            const double leaf_without = family_.log_evidence(stat, arrays_.leaf_prior[s]);
            family_.layout.add(stat, once);
            const double leaf_with = family_.log_evidence(stat, arrays_.leaf_prior[s]);
            if (child < 0) {
                with = leaf_with;
                without = leaf_without;
                continue;
            }
            double siblings = 0.0;
            for (std::int32_t c = 0; c < arrays_.tree.n_children[s]; ++c) {
                const std::int32_t other = arrays_.tree.first_child[s] + c;
                if (other != child) siblings += arrays_.evidence.subtree[other];
            }
            const double stop = arrays_.split_prior.log_stop[s], split = arrays_.split_prior.log_split[s] + siblings;
            with = weigh(stop + leaf_with, split + with).subtree_log_evidence;
            without = weigh(stop + leaf_without, split + without).subtree_log_evidence;
        }
        return with - without;
    }

    bool has_none(const double* stat) const {
        return std::all_of(stat, stat + size_, [](double v) { return v == 0.0; });
    }

    // An inner node holds exactly the rows of its children.
    void gather_from_children(std::int32_t node) {
        const std::int32_t n_children = arrays_.tree.n_children[node];
        if (n_children == 0) return;
        double* stat = statistics(node);
        const double* child = statistics(arrays_.tree.first_child[node]);
        std::memcpy(stat, child, sizeof(double) * size_);
        for (std::int32_t c = 1; c < n_children; ++c) family_.layout.add(stat, child += size_);
    }

    Family family_;
    PosteriorArrays arrays_;
    std::size_t size_;
    TouchedNodes touched_;
    std::vector<Worker> workers_;
    bool many_rows_ = false;
    std::vector<std::int32_t> saved_;  // the touched terminals, in the order of touching
    std::vector<double> replaced_;     // old statistics: of all nodes, or of the saved terminals
};

}  // namespace everytree
