// Shapley values of rows for weighted sums of trees.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/codes.hpp"
#include "core/parallel.hpp"
#include "explain/tree_game.hpp"

namespace everytree::explain {

class TreeSum {
  public:
    // The arrays of the trees are borrowed. player[k]: what column k counts for; known[k]: its codes 0 .. known[k] - 1
    // are known.
    TreeSum(std::vector<GameArrays> trees, std::vector<std::int32_t> player, std::vector<std::uint16_t> known,
            int n_players, int n_outputs)
        : trees_(std::move(trees)),
          player_(std::move(player)),
          known_(std::move(known)),
          limit_(known_.size(), 65535),
          shift_(known_.size(), 1),
          n_players_(n_players),
          n_outputs_(n_outputs) {}
    std::int64_t n_columns() const { return static_cast<std::int64_t>(known_.size()); }
    std::size_t n_players() const { return static_cast<std::size_t>(n_players_); }
    std::size_t n_outputs() const { return static_cast<std::size_t>(n_outputs_); }

    std::vector<double> base() const {
        std::vector<double> out(n_outputs(), 0.0);
        for (const GameArrays& tree : trees_) add_base(tree, out.data() + tree.first_output);
        return out;
    }

    // out[row, player, output], which is zero at first. A row is added up by one worker, tree after tree: a tree is
    // read once by each worker, for all of its rows.
    template <class Code>
    void explain(const CodeTable& table, int n_jobs, double* out) const {
        const std::int64_t together = std::max<std::int64_t>((table.n_rows + n_jobs - 1) / std::max(n_jobs, 1), 1);
        const CodeReader<Code> reader(table, {limit_.data(), shift_.data(), static_cast<int>(known_.size())});
        in_chunks((table.n_rows + together - 1) / together, n_jobs, [&](std::int64_t chunk, int) {
            const std::int64_t begin = chunk * together, n = std::min(together, table.n_rows - begin);
            std::vector<Code> own;
            GameScratch scratch;
            TreeGame game;
            const Codes<Code> codes = reader.rows(begin, n, own);
            for (const GameArrays& tree : trees_) {
                game.read(tree, player_.data(), n_players_);
                for (std::int64_t i = begin; i < begin + n; ++i) {
                    double* const to = out + static_cast<std::size_t>(i) * n_players() * n_outputs();
                    game.add(codes.row(i), known_.data(), scratch, n_outputs(), to + tree.first_output);
                }
            }
        });
    }

  private:
    std::vector<GameArrays> trees_;
    std::vector<std::int32_t> player_;
    std::vector<std::uint16_t> known_, limit_, shift_;
    int n_players_, n_outputs_;
};

}  // namespace everytree::explain
