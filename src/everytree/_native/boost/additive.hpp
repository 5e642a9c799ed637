// The sum of the values of many small trees, for each row and output.
//
// Tree t adds to output t % n_outputs. A row with a code that a tree has no branch for stops at the node that splits on
// it: a category that was never seen, a value that was never missing.
#pragma once
#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/codes.hpp"
#include "core/forest.hpp"
#include "core/parallel.hpp"

namespace everytree {

// Trees one after another. Of a node without children, `left` is its own number and every code goes there.
struct AdditiveNode {
    std::uint16_t feature, threshold;
    std::int32_t left;
    std::uint8_t missing;  // 0: goes left, 1: right, 2: there is no branch for it
    bool is_terminal;
};

class AdditiveTrees {
  public:
    AdditiveTrees(std::vector<std::int32_t> n_nodes, std::vector<AdditiveNode> nodes, std::vector<double> value,
                  int n_outputs, std::vector<std::uint16_t> known)
        : n_nodes_(std::move(n_nodes)),
          nodes_(std::move(nodes)),
          value_(std::move(value)),
          n_outputs_(n_outputs),
          known_(std::move(known)),
          limit_(known_.size(), 65535),
          shift_(known_.size(), 1) {
        for (std::size_t tree = 0, first = 0; tree < n_nodes_.size(); first += n_nodes_[tree++])
            depth_.push_back(deepest(nodes_.data() + first, n_nodes_[tree]));
    }
    int n_outputs() const { return n_outputs_; }
    std::int64_t n_features() const { return static_cast<std::int64_t>(known_.size()); }

    // out[row, output], which is zero at first.
    template <class Code>
    void scores(const CodeTable& table, int n_jobs, double* out) const {
        const CodeReader<Code> reader(table, {limit_.data(), shift_.data(), static_cast<int>(known_.size())});
        const std::int64_t together = std::min<std::int64_t>(forest_chunk(table.n_rows, n_jobs), 2048);
        std::vector<std::vector<Code>> buffers(static_cast<std::size_t>(std::max(n_jobs, 1)));
        in_chunks((table.n_rows + together - 1) / together, n_jobs, [&](std::int64_t chunk, int worker) {
            const std::int64_t begin = chunk * together, n = std::min(together, table.n_rows - begin);
            const Codes<Code> codes = reader.rows(begin, n, buffers[static_cast<std::size_t>(worker)]);
            std::vector<std::int64_t> usual, unusual;
            for (std::int64_t i = begin; i < begin + n; ++i) (is_unusual(codes.row(i)) ? unusual : usual).push_back(i);
            add_all<false>(codes, usual, out);
            add_all<true>(codes, unusual, out);
        });
    }

  private:
    static constexpr std::size_t in_flight = 8;

    static int deepest(const AdditiveNode* nodes, std::int32_t n_nodes) {
        std::vector<int> level(static_cast<std::size_t>(n_nodes), 0);
        int depth = 0;
        for (std::int32_t s = 0; s < n_nodes; ++s) {
            depth = std::max(depth, level[static_cast<std::size_t>(s)]);
            if (nodes[s].is_terminal) continue;
            const auto left = static_cast<std::size_t>(nodes[s].left);
            level[left] = level[left + 1] = level[static_cast<std::size_t>(s)] + 1;
        }
        return depth;
    }

    template <class Code>
    bool is_unusual(const Code* row) const {
        bool any = false;
        for (std::size_t k = 0; k < known_.size(); ++k) any |= row[k] >= known_[k];
        return any;
    }

    template <bool careful, class Code>
    std::int32_t step(const AdditiveNode* nodes, std::int32_t here, const Code* row) const {
        const AdditiveNode& node = nodes[here];
        const Code code = row[node.feature];
        if constexpr (!careful) return node.left + (code > node.threshold);
        if (node.is_terminal) return here;
        if (code == missing_code<Code>) return node.missing == 2 ? here : node.left + node.missing;
        return code >= known_[node.feature] ? here : node.left + (code > node.threshold);
    }

    // Several rows in flight: each one's steps wait for one another.
    template <bool careful, class Code>
    void add_all(const Codes<Code>& codes, const std::vector<std::int64_t>& rows, double* out) const {
        const auto n_outputs = static_cast<std::size_t>(n_outputs_);
        for (std::size_t tree = 0, first = 0; tree < n_nodes_.size(); first += n_nodes_[tree++]) {
            const AdditiveNode* const nodes = nodes_.data() + first;
            const double* const value = value_.data() + first;
            double* const to = out + tree % n_outputs;
            for (std::size_t begin = 0; begin < rows.size(); begin += in_flight) {
                const std::size_t n = std::min(in_flight, rows.size() - begin);
                std::int32_t at[in_flight] = {};
                const Code* row[in_flight];
                for (std::size_t i = 0; i < in_flight; ++i) row[i] = codes.row(rows[begin + std::min(i, n - 1)]);
                for (int level = 0; level < depth_[tree]; ++level)
                    for (std::size_t i = 0; i < in_flight; ++i) at[i] = step<careful>(nodes, at[i], row[i]);
                for (std::size_t i = 0; i < n; ++i)
                    to[static_cast<std::size_t>(rows[begin + i]) * n_outputs] += value[at[i]];
            }
        }
    }

    std::vector<std::int32_t> n_nodes_;
    std::vector<AdditiveNode> nodes_;
    std::vector<double> value_;
    int n_outputs_;
    std::vector<std::uint16_t> known_, limit_, shift_;
    std::vector<int> depth_;
};

}  // namespace everytree
