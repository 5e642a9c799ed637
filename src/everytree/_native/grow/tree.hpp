// A tree grown on a sample of the rows.
//
// The rows of the sample stand in one array, those of a node next to each other; a split moves the rows of its left
// child in front of those of its right child and keeps their order otherwise.
#pragma once
#include <algorithm>
#include <cstdint>
#include <queue>
#include <vector>

#include "grow/split_search.hpp"

namespace everytree::grow {

// The arrays of a meta-tree in level order, and the terminal of each row of the sample.
struct GrownTree {
    std::vector<std::int32_t> feature, first_child, n_children, threshold, missing_child, terminal;
};

template <class Code, class Criterion, class Search = SplitSearch<Code, Criterion>>
class TreeGrower {
  public:
    using Table = typename Search::Table;

    TreeGrower(const Table& columns, const Criterion& criterion, const GrowRule& rule)
        : columns_(columns), criterion_(criterion), rule_(rule), search_(columns, criterion, rule) {}

    // From now on, trees split on these columns only.
    void use_columns(std::vector<int> columns) { search_.use_columns(std::move(columns)); }

    // `has_missing` says which columns have a branch for missing values; `sample` are numbers of rows.
    GrownTree grow(std::span<const std::int64_t> sample, const std::uint8_t* has_missing, std::uint64_t seed) {
        rows_.clear();
        rows_.reserve(sample.size());
        for (std::size_t i = 0; i < sample.size(); ++i)
            rows_.push_back({static_cast<std::uint32_t>(sample[i]), criterion_.row(sample[i])});
        nodes_.assign(1, {0, rows_.size(), 0});
        if (rule_.max_leaf_nodes > 0)
            grow_best_first(NodeRandom(seed));
        else
            grow_depth_first(NodeRandom(seed));
        return in_level_order(sample, has_missing);
    }

  private:
    struct Node {
        std::size_t begin, end;
        int depth;
        Split split{};
        std::int32_t left = -1;  // place of the left child; the right one follows it
    };
    struct Open {
        std::int32_t node;
        NodeRandom random;
        double gain = 0.0;
        // The largest gain first; of equal ones, the node that was opened first.
        bool operator<(const Open& other) const { return gain != other.gain ? gain < other.gain : node > other.node; }
    };

    void grow_depth_first(NodeRandom root) {
        std::vector<Open> open{{0, root}};
        while (!open.empty()) {
            Open next = open.back();
            open.pop_back();
            if (!find_split(next)) continue;
            divide(next.node);
            const std::int32_t left = nodes_[place(next.node)].left;
            open.push_back({left + 1, next.random.child(1)});
            open.push_back({left, next.random.child(0)});
        }
    }

    void grow_best_first(NodeRandom root) {
        std::priority_queue<Open> open;
        const auto push = [&](std::int32_t node, NodeRandom random) {
            Open each{node, random};
            if (find_split(each)) open.push(each);
        };
        push(0, root);
        for (std::int64_t n_leaves = 1; !open.empty() && n_leaves < rule_.max_leaf_nodes; ++n_leaves) {
            const Open next = open.top();
            open.pop();
            divide(next.node);
            const std::int32_t left = nodes_[place(next.node)].left;
            push(left, next.random.child(0));
            push(left + 1, next.random.child(1));
        }
    }

    // Returns whether the node can be split.
    bool find_split(Open& open) {
        Node& node = nodes_[place(open.node)];
        const auto rows = rows_of(node);
        const auto n_rows = static_cast<std::int64_t>(rows.size());
        if (n_rows < 2 * rule_.min_samples_leaf || n_rows < 2) return false;
        if (rule_.max_depth > 0 && node.depth >= rule_.max_depth) return false;
        if (!search_.start(rows)) return false;
        NodeRandom random = open.random;
        node.split = search_.find(rows, random);
        if (!node.split.is_found()) return false;
        open.gain = search_.gain(node.split);
        return open.gain > rule_.min_gain;
    }

    void divide(std::int32_t number) {
        const Node node = nodes_[place(number)];
        const Split& split = node.split;
        const auto code_of = columns_.reader(split.feature);
        const auto threshold = static_cast<Code>(split.threshold);
        const bool missing_left = split.missing_left;
        if (aside_.size() < node.end - node.begin) aside_.resize(node.end - node.begin);
        SampledRow<Criterion>* left = rows_.data() + node.begin;
        SampledRow<Criterion>* right = aside_.data();
        for (std::size_t i = node.begin; i < node.end; ++i) {
            const SampledRow<Criterion> row = rows_[i];
            const Code code = code_of(row.row);
            const bool is_left = (code <= threshold) | (missing_left & (code == missing_code<Code>));
            *left = row;
            *right = row;
            left += is_left;
            right += !is_left;
        }
        std::copy(aside_.data(), right, left);
        const auto middle = static_cast<std::size_t>(left - rows_.data());
        nodes_[place(number)].left = static_cast<std::int32_t>(nodes_.size());
        nodes_.push_back({node.begin, middle, node.depth + 1});
        nodes_.push_back({middle, node.end, node.depth + 1});
    }

    GrownTree in_level_order(std::span<const std::int64_t> sample, const std::uint8_t* has_missing) {
        const std::size_t n = nodes_.size();
        GrownTree tree;
        for (auto* each : {&tree.feature, &tree.first_child, &tree.threshold, &tree.missing_child}) each->assign(n, -1);
        tree.n_children.assign(n, 0);
        std::vector<std::int32_t> order{0};
        order.reserve(n);
        terminal_.resize(static_cast<std::size_t>(columns_.n_rows()));
        for (std::size_t i = 0; i < n; ++i) {  // children are appended behind their parents: level by level
            const Node& node = nodes_[place(order[i])];
            if (node.left < 0) {
                for (const auto& each : rows_of(node)) terminal_[each.row] = static_cast<std::int32_t>(i);
                continue;
            }
            tree.feature[i] = node.split.feature;
            tree.threshold[i] = node.split.threshold;
            tree.first_child[i] = static_cast<std::int32_t>(order.size());
            tree.n_children[i] = 2;
            if (has_missing[node.split.feature]) tree.missing_child[i] = node.split.missing_left ? 0 : 1;
            order.push_back(node.left);
            order.push_back(node.left + 1);
        }
        tree.terminal.reserve(sample.size());
        for (const std::int64_t row : sample) tree.terminal.push_back(terminal_[static_cast<std::size_t>(row)]);
        return tree;
    }

    static std::size_t place(std::int32_t number) { return static_cast<std::size_t>(number); }
    std::span<const SampledRow<Criterion>> rows_of(const Node& node) const {
        return {rows_.data() + node.begin, node.end - node.begin};
    }

    const Table& columns_;
    Criterion criterion_;
    GrowRule rule_;
    Search search_;
    std::vector<SampledRow<Criterion>> rows_, aside_;
    std::vector<Node> nodes_;
    std::vector<std::int32_t> terminal_;
};

}  // namespace everytree::grow
