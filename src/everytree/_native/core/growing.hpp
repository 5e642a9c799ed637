// Corollary 2: a meta-tree without a depth limit, of which only the nodes where rows separate are stored.
//
// The virtual tree splits, at every node, on one of the features not used above it, chosen by a hash of the path.
// A run of virtual nodes in which all rows seen have the same codes holds the same rows throughout, so with
// one prior for all nodes it acts as a single node that is split with the product of their probabilities:
//   (1 - g1) leaf + g1 ((1 - g2) leaf + g2 q) = (1 - g1 g2) leaf + g1 g2 q.
// A stored node represents such a run, from depth `entry` to depth `branch`, where its rows separate. A point is
// a stored node whose rows are all equal: its run goes on to the last feature without a branch.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/posterior.hpp"
#include "core/scramble.hpp"

namespace everytree {

struct GrowingNode {
    std::int32_t parent, first_child, next_sibling;  // -1: none; siblings in increasing order of their code
    std::int32_t entry, branch;                      // depths of the first and the last virtual node of the run
    std::int32_t point;                              // a row that passed through here
    std::int32_t answer;                             // the code of the parent's feature that leads here
};
static_assert(sizeof(GrowingNode) == 28);  // no padding: copies of records in NumPy copy nothing but fields

template <class Code>
struct GrowingArrays {
    GrowingNode* nodes;
    Code* points;      // (capacity, n_features)
    double* log_odds;  // (capacity, 2): log of the run's split prior, and of one minus it
    double* statistics;
    EvidenceView evidence;
    std::int64_t n_nodes, n_points;
    std::int32_t root;
};

// The features on one path: a function of the seed and the codes alone, so that shards grow the same tree.
class Path {
  public:
    Path(std::uint64_t seed, const std::vector<std::int32_t>& features) : state_(scramble(seed)), left_(features) {
        choose();
    }
    std::int32_t feature() const { return left_[at_]; }
    void answer(std::int32_t code) {
        state_ = scramble(state_ ^
                          scramble((static_cast<std::uint64_t>(feature()) << 32) | static_cast<std::uint32_t>(code)));
        left_[at_] = left_.back();
        left_.pop_back();
        choose();
    }
    bool asked_all() const { return left_.empty(); }

  private:
    void choose() { at_ = left_.empty() ? 0 : static_cast<std::size_t>(((state_ >> 32) * left_.size()) >> 32); }

    std::uint64_t state_;
    std::vector<std::int32_t> left_;
    std::size_t at_ = 0;
};

// A row's predictive as shares of stored nodes; node -1 is the prior.
struct Share {
    std::int32_t node;
    double log_weight;
};

template <class Family, class Code>
class GrowingKernel {
  public:
    GrowingKernel(const Family& family, const double* leaf_prior, std::vector<std::int32_t> features, int n_features,
                  std::vector<double> log_split_of_depth, std::uint64_t seed)
        : family_(family),
          leaf_prior_(leaf_prior),
          features_(std::move(features)),
          n_features_(n_features),
          log_split_of_depth_(std::move(log_split_of_depth)),
          seed_(seed),
          size_(family.layout.size()),
          rows_(family.n_extra),
          touched_(0) {
        if constexpr (requires { family_.tabulate(nullptr); }) family_.tabulate(leaf_prior);
    }

    // The arrays may have moved since the last call. The caller ensures room for two more nodes and one more point
    // per row.
    void attach(const GrowingArrays<Code>& arrays) {
        arrays_ = arrays;
        touched_.grow(arrays.n_nodes);
    }
    const GrowingArrays<Code>& arrays() const { return arrays_; }

    void check(const CodeReader<Code>& table, const RowColumns& columns, const CodeCheck<Code>& check_codes) {
        for (std::int64_t begin = 0; begin < table.n_rows(); begin += chunk_rows) {
            const std::int64_t n = std::min(chunk_rows, table.n_rows() - begin);
            check_codes(table.rows(begin, n, buffer_), begin, n);
            rows_.read(family_, columns, begin, n);
        }
    }

    // Adds rows begin .. begin + n, already checked. Returns how many had weight.
    std::int64_t insert(const CodeReader<Code>& table, const RowColumns& columns, std::int64_t begin, std::int64_t n) {
        const Codes<Code> codes = table.rows(begin, n, buffer_);
        rows_.read(family_, columns, begin, n);
        const RowView rows = rows_.view();
        std::int64_t n_weighted = 0;
        for (std::int64_t i = 0; i < n; ++i) {
            const Row row = rows[i];
            if (!(row.weight > 0.0)) continue;
            own_row_.assign(codes.row(begin + i), codes.row(begin + i) + n_features_);  // no other thread writes to it
            const std::int32_t leaf = find_or_insert(own_row_.data());
            family_.add(statistics(leaf), row);
            touched_.touch(leaf);
            ++n_weighted;
        }
        return n_weighted;
    }

    // Adds points of another posterior with the same features, with their statistics.
    void insert_points(const Code* points, const double* statistics_of, std::int64_t n) {
        for (std::int64_t i = 0; i < n; ++i) {
            const std::int32_t leaf = find_or_insert(points + i * n_features_);
            family_.layout.add(statistics(leaf), statistics_of + i * static_cast<std::int64_t>(size_));
            touched_.touch(leaf);
        }
    }

    void sweep() {
        touched_.close_upward([this](std::int32_t s) { return node(s).parent; },
                              [this](std::int32_t s) { return node(s).branch; });
        for (const std::int32_t s : touched_.nodes()) sweep_one(s);
        touched_.clear();
    }

    // The mixture for one row. At a stored node the row either goes on to a child, or separates from the rows of
    // the node at some depth of its run, or is equal to its point.
    void shares(const Code* row, std::vector<Share>& out) const {
        if (arrays_.n_nodes == 0) {
            out.push_back({-1, 0.0});
            return;
        }
        double reached = 0.0;  // log probability that everything above the present node is split
        Path path(seed_, features_);
        std::int32_t depth = 0, s = arrays_.root;
        for (;;) {
            if (is_point(s) && equals(row, s)) {
                out.push_back({s, reached});
                return;
            }
            const std::int32_t child = follow(row, s, path, depth);
            const LogFates parting = parting_at(s, depth);
            out.push_back({s, reached + parting.stop});
            reached += parting.split;
            if (child < 0) {
                out.push_back({-1, reached});
                return;
            }
            depth += 1;
            path.answer(row[path.feature()]);
            s = child;
        }
    }

  private:
    GrowingNode& node(std::int32_t s) const { return arrays_.nodes[s]; }
    const Code* point_of(std::int32_t s) const { return arrays_.points + std::int64_t{node(s).point} * n_features_; }
    double* statistics(std::int32_t s) const { return arrays_.statistics + s * static_cast<std::int64_t>(size_); }
    double* log_odds(std::int32_t s) const { return arrays_.log_odds + 2 * std::int64_t{s}; }
    std::int32_t last_depth() const { return static_cast<std::int32_t>(features_.size()); }
    bool is_point(std::int32_t s) const { return node(s).branch == last_depth(); }
    bool equals(const Code* row, std::int32_t s) const { return std::equal(row, row + n_features_, point_of(s)); }

    // Walks the run of s along the row's codes. Returns the child that goes on, or -1; then the row separates
    // from the rows of s at `depth`, the position of `path`.
    std::int32_t follow(const Code* row, std::int32_t s, Path& path, std::int32_t& depth) const {
        const Code* same = point_of(s);
        for (; depth < node(s).branch; ++depth) {
            const std::int32_t feature = path.feature();
            if (row[feature] != same[feature]) return -1;
            path.answer(row[feature]);
        }
        const std::int32_t code = row[path.feature()];
        for (std::int32_t child = node(s).first_child; child >= 0; child = node(child).next_sibling)
            if (node(child).answer == code) return child;
        return -1;
    }

    std::int32_t find_or_insert(const Code* row) {
        if (arrays_.n_nodes == 0) return arrays_.root = new_point(row, 0, 0, -1);
        Path path(seed_, features_);
        std::int32_t depth = 0, s = arrays_.root;
        for (;;) {
            if (is_point(s) && equals(row, s)) return s;
            const std::int32_t child = follow(row, s, path, depth);
            if (child >= 0) {
                depth += 1;
                path.answer(row[path.feature()]);
                s = child;
                continue;
            }
            if (depth < node(s).branch) s = split_run(s, depth, point_of(s)[path.feature()]);
            const std::int32_t leaf = new_point(row, depth + 1, row[path.feature()], s);
            link_child(s, leaf);
            return leaf;
        }
    }

    std::int32_t new_node(const GrowingNode& values) {
        const std::int32_t s = static_cast<std::int32_t>(arrays_.n_nodes++);
        touched_.grow(arrays_.n_nodes);
        node(s) = values;
        family_.layout.clear(statistics(s));
        arrays_.evidence.leaf[s] = arrays_.evidence.subtree[s] = arrays_.evidence.split_prob[s] = 0.0;
        set_odds(s);
        return s;
    }
    std::int32_t new_point(const Code* row, std::int32_t entry, std::int32_t answer, std::int32_t parent) {
        const std::int32_t point = static_cast<std::int32_t>(arrays_.n_points++);
        std::copy(row, row + n_features_, arrays_.points + std::int64_t{point} * n_features_);
        return new_node({parent, -1, -1, entry, last_depth(), point, answer});
    }

    // Rows separate inside the run of s: a new node takes its upper part and its position, s keeps the rest below
    // it.
    std::int32_t split_run(std::int32_t s, std::int32_t depth, std::int32_t answer_of_s) {
        const GrowingNode old = node(s);
        const std::int32_t upper = new_node({old.parent, s, old.next_sibling, old.entry, depth, old.point, old.answer});
        if (old.parent < 0) {
            arrays_.root = upper;
        } else {
            std::int32_t* link = &node(old.parent).first_child;
            while (*link != s) link = &node(*link).next_sibling;
            *link = upper;
        }
        node(s).parent = upper;
        node(s).next_sibling = -1;
        node(s).entry = depth + 1;
        node(s).answer = answer_of_s;
        set_odds(s);
        touched_.touch(s);  // its split probability is that of a shorter run now
        return upper;
    }
    void link_child(std::int32_t parent, std::int32_t child) {
        std::int32_t* link = &node(parent).first_child;
        while (*link >= 0 && node(*link).answer < node(child).answer) link = &node(*link).next_sibling;
        node(child).next_sibling = *link;
        *link = child;
    }

    // Log of the product of split priors over depths first .. last, both included.
    double log_run_split(std::int32_t first, std::int32_t last) const {
        double sum = 0.0;
        for (std::int32_t d = first; d <= last; ++d) sum += log_split_of_depth_[d];
        return sum;
    }
    static double log_one_minus(double log_p) {
        return log_p > -0.6931471805599453 ? std::log(-std::expm1(log_p)) : std::log1p(-std::exp(log_p));
    }
    void set_odds(std::int32_t s) {
        const double log_split = is_point(s) ? 0.0 : log_run_split(node(s).entry, node(s).branch);
        log_odds(s)[0] = log_split;
        log_odds(s)[1] = log_one_minus(log_split);
    }

    double children_log_evidence(std::int32_t s) const {
        double sum = 0.0;
        for (std::int32_t child = node(s).first_child; child >= 0; child = node(child).next_sibling)
            sum += arrays_.evidence.subtree[child];
        return sum;
    }
    void sweep_one(std::int32_t s) {
        const EvidenceView& evidence = arrays_.evidence;
        if (!is_point(s)) {
            family_.layout.clear(statistics(s));
            for (std::int32_t child = node(s).first_child; child >= 0; child = node(child).next_sibling)
                family_.layout.add(statistics(s), statistics(child));
        }
        evidence.leaf[s] = evidence.subtree[s] = family_.log_evidence(statistics(s), leaf_prior_);
        if (is_point(s)) return;
        const Fate fate = weigh(log_odds(s)[1] + evidence.leaf[s], log_odds(s)[0] + children_log_evidence(s));
        evidence.subtree[s] = fate.subtree_log_evidence;
        evidence.split_prob[s] = fate.split_prob;
    }

    // Log posterior probability that the run of s ends somewhere from its entry to `depth`, where a row leaves it, and
    // that it goes on: the latter is g_entry ... g_depth times the evidence of the rest, divided by that of the whole.
    // Both in logs and neither as one minus the other, which would lose the smaller one.
    LogFates parting_at(std::int32_t s, std::int32_t depth) const {
        const double upper = log_run_split(node(s).entry, depth);
        if (is_point(s)) return {log_one_minus(upper), upper};
        const double stop = log_one_minus(upper) + arrays_.evidence.leaf[s];
        double beyond = upper + children_log_evidence(s);
        if (depth < node(s).branch) {
            const double lower = log_run_split(depth + 1, node(s).branch);
            beyond = upper + weigh(log_one_minus(lower) + arrays_.evidence.leaf[s], lower + children_log_evidence(s))
                                 .subtree_log_evidence;
        }
        return log_fates(stop, beyond);
    }

    Family family_;
    const double* leaf_prior_;
    std::vector<std::int32_t> features_;
    int n_features_;
    std::vector<double> log_split_of_depth_;
    std::uint64_t seed_;
    std::size_t size_;
    GrowingArrays<Code> arrays_{};
    RowChunk rows_;
    std::vector<Code> buffer_, own_row_;
    TouchedNodes touched_;
};

}  // namespace everytree
