// The sum of the values of many small trees, for each row and output.
//
// Tree t adds to output t % n_outputs. A row with a code that a tree has no branch for stops at the node that splits on
// it: a category that was never seen, a value that was never missing.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "boost/routes.hpp"
#include "core/codes.hpp"
#include "core/forest.hpp"
#include "core/parallel.hpp"
#include "core/route.hpp"

namespace everytree {

class AdditiveTrees {
  public:
    // value[s]: of node s, the nodes of all trees one after another.
    AdditiveTrees(SmallTrees trees, std::vector<double> value, int n_outputs, std::vector<std::uint16_t> known)
        : trees_(std::move(trees)),
          value_(std::move(value)),
          n_outputs_(n_outputs),
          known_(std::move(known)),
          limit_(known_.size(), 65535),
          shift_(known_.size(), 1) {}
    int n_outputs() const { return n_outputs_; }
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
            const double* const value = value_.data() + trees_.first_node(tree);
            double* to =
                out + begin * n_outputs_ + static_cast<std::int64_t>(tree % static_cast<std::size_t>(n_outputs_));
            for (const std::int32_t end : at) {
                *to += value[end];
                to += n_outputs_;
            }
        }
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
    int n_outputs_;
    std::vector<std::uint16_t> known_, limit_, shift_;
};

}  // namespace everytree
