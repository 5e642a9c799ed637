// The sum of the values of many small trees, for each row and output.
//
// A tree has a value for each output in every node, or one value, which tree t adds to output t % n_outputs. A row with
// a code that a tree has no branch for stops at the node that splits on it: a category that was never seen, a value
// that was never missing.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "boost/routes.hpp"
#include "core/codes.hpp"
#include "core/forest.hpp"
#include "core/parallel.hpp"
#include "core/route.hpp"
#include "numerics/lanes.hpp"

namespace everytree::boost {

class AdditiveTrees {
  public:
    // value: (n_nodes, n_values), the nodes of all trees one after another.
    AdditiveTrees(SmallTrees trees, std::vector<double> value, int n_values, int n_outputs,
                  std::vector<std::uint16_t> known)
        : trees_(std::move(trees)),
          value_(std::move(value)),
          n_values_(n_values),
          n_outputs_(n_outputs),
          known_(std::move(known)),
          limit_(known_.size(), 65535),
          shift_(known_.size(), 1) {}
    int n_outputs() const { return n_outputs_; }
    std::size_t n_nodes() const { return value_.size() / static_cast<std::size_t>(n_values_); }
    std::int64_t n_features() const { return static_cast<std::int64_t>(known_.size()); }

    // out[row, output], which is zero at first.
    template <class Code>
    void scores(const CodeTable& table, int n_jobs, double* out) const {
        constexpr std::int64_t most = 2048;  // their codes and scores stay in the cache, as each tree does
        const CodeReader<Code> reader(table, {limit_.data(), shift_.data(), static_cast<int>(known_.size())});
        const std::int64_t together = std::min(forest_chunk(table.n_rows, n_jobs), most);
        std::vector<std::vector<Code>> buffers(static_cast<std::size_t>(std::max(n_jobs, 1)));
        in_chunks((table.n_rows + together - 1) / together, n_jobs, [&](std::int64_t chunk, int worker) {
            const std::int64_t begin = chunk * together, n = std::min(together, table.n_rows - begin);
            add_all(reader.rows(begin, n, buffers[static_cast<std::size_t>(worker)]), begin, n, out);
        });
    }

    // Adds the weight of the rows that go through each node of each tree to `out`, one entry a node, all trees one
    // after another; a row that stops at a split, for want of a branch, is not counted. weight: one for each row, or
    // null for 1. Trees are counted side by side and rows in their order.
    template <class Code>
    void count(const CodeTable& table, const double* weight, int n_jobs, double* out) const {
        constexpr std::int64_t together = 2048;
        const CodeReader<Code> reader(table, {limit_.data(), shift_.data(), static_cast<int>(known_.size())});
        std::vector<std::vector<Code>> buffers(static_cast<std::size_t>(std::max(n_jobs, 1)));
        in_chunks(static_cast<std::int64_t>(trees_.size()), n_jobs, [&](std::int64_t tree, int worker) {
            const auto number = static_cast<std::size_t>(tree);
            double* const mass = out + trees_.first_node(number);
            for (std::int64_t begin = 0; begin < table.n_rows; begin += together) {
                const std::int64_t n = std::min(together, table.n_rows - begin);
                const Codes<Code> codes = reader.rows(begin, n, buffers[static_cast<std::size_t>(worker)]);
                for (std::int64_t i = begin; i < begin + n; ++i) {
                    const std::int32_t end = careful_end(number, codes.row(i));
                    const RouteNode& node = trees_.routes(number)[end];
                    if (node.next == end) mass[end] += weight ? weight[i] : 1.0;
                }
            }
            for (std::int32_t s = trees_.view(number, false).n_nodes; s-- > 0;) {
                const RouteNode& node = trees_.routes(number)[s];
                if (node.next != s) mass[s] = mass[node.next] + mass[node.next + 1];
            }
        });
    }

  private:
    template <class Code>
    void add_all(const Codes<Code>& codes, std::int64_t begin, std::int64_t n, double* out) const {
        std::vector<std::int64_t> unusual;
        for (std::int64_t i = 0; i < n; ++i)
            if (is_unusual(codes.row(begin + i))) unusual.push_back(i);
        std::vector<std::int32_t> at(static_cast<std::size_t>(n));
        for (std::size_t tree = 0; tree < trees_.size(); ++tree) {
            std::fill(at.begin(), at.end(), 0);
            route(trees_.view(tree, true), codes, begin, n, at.data());
            for (const std::int64_t i : unusual)
                at[static_cast<std::size_t>(i)] = careful_end(tree, codes.row(begin + i));
            const auto n_values = static_cast<std::size_t>(n_values_), n_outputs = static_cast<std::size_t>(n_outputs_);
            const double* const value = value_.data() + trees_.first_node(tree) * n_values;
            double* to = out + static_cast<std::size_t>(begin) * n_outputs + tree * n_values % n_outputs;
            for (const std::int32_t end : at) {
                add_values(value + static_cast<std::size_t>(end) * n_values, n_values, to);
                to += n_outputs;
            }
        }
    }

    // Two at once: a compiler does not know that values and scores do not overlap.
    static void add_values(const double* value, std::size_t n, double* to) {
        std::size_t k = 0;
        for (; k + 2 <= n; k += 2) {
            const numerics::Lanes sum = numerics::load_lanes(to + k) + numerics::load_lanes(value + k);
            std::memcpy(to + k, &sum, sizeof sum);
        }
        if (k < n) to[k] += value[k];
    }

    template <class Code>
    bool is_unusual(const Code* row) const {
        bool any = false;
        for (std::size_t k = 0; k < known_.size(); ++k) any |= row[k] >= known_[k];
        return any;
    }
    template <class Code>
    std::int32_t careful_end(std::size_t tree, const Code* row) const {
        for (std::int32_t here = 0;;) {
            const std::int32_t to = careful_step(trees_.routes(tree)[here], known_.data(), here, row);
            if (to == here) return here;
            here = to;
        }
    }

    SmallTrees trees_;
    std::vector<double> value_;
    int n_values_, n_outputs_;
    std::vector<std::uint16_t> known_, limit_, shift_;
};

}  // namespace everytree::boost
