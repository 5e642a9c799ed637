// Shapley values of the columns of a row, for the value of one tree, in time proportional to its nodes.
//
// The value of a set S of columns is that of a walk in which a split on a column of S sends the row to its child, and
// any other split goes on to all children, each with its share of the rows. So a leaf counts its value times a product
// over the columns on its path: o_k for a column in S (1 if the row meets all conditions on k, else 0), and r_k for any
// other (the product of the shares at the splits on k). Since |S|! (n - 1 - |S|)! / n! is the integral of
// t^|S| (1 - t)^(n - 1 - |S|) over (0, 1), the Shapley value of column k is the sum over leaves of
//
//     value * (o_k - r_k) * integral of the product over the other columns j of (o_j t + r_j (1 - t)) dt
//
// and a Gauss-Legendre rule of half as many points as there are columns on a path integrates that polynomial exactly,
// without any subtraction. One walk over the tree keeps the product at all points; on the way back, the sums over the
// leaves below an edge are divided by the factor of its column. The factor changes only at splits on the same column,
// so what an edge adds is the difference of (o - r) / (o t + r (1 - t)) below and above it. If o = 0 that is -1 / (1 -
// t): nothing is ever divided by 0.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/route.hpp"
#include "core/tree.hpp"
#include "explain/quadrature.hpp"
#include "numerics/lanes.hpp"

namespace everytree::explain {

// One tree of a sum. Values: (n_nodes, n_values), of a row that ends in a node; mass: of the rows in each node.
struct GameArrays {
    TreeView tree;
    const double* mass;
    const double* values;
    int n_values;
    int first_output;  // to which the first value is added
    double weight;     // of all values
};

// Nodes without rows divide what comes to them equally: some rule there must be, and this one has no favourites.
inline double share_of(const GameArrays& of, std::int32_t parent, std::int32_t node) {
    const std::int32_t first = of.tree.first_child[parent], n = of.tree.n_children[parent];
    double total = 0.0;
    for (std::int32_t c = 0; c < n; ++c) total += of.mass[first + c];
    return total > 0.0 ? of.mass[node] / total : 1.0 / n;
}

// Adds the value without any column, the mean of the leaves by their shares, to the outputs of a tree.
inline void add_base(const GameArrays& of, double* out) {
    std::vector<double> reached(static_cast<std::size_t>(of.tree.n_nodes), 1.0);
    for (std::int32_t s = 0; s < of.tree.n_nodes; ++s) {
        const std::int32_t first = of.tree.first_child[s], n = of.tree.n_children[s];
        for (std::int32_t c = first; c < first + n; ++c) reached[c] = reached[s] * share_of(of, s, c);
        if (n > 0) continue;
        for (int v = 0; v < of.n_values; ++v)
            out[v] += reached[s] * of.weight * of.values[static_cast<std::int64_t>(s) * of.n_values + v];
    }
}

// Memory of one worker.
struct GameScratch {
    std::vector<double> product, sums;  // (levels, n_points) and (levels, n_values, n_points)
    std::vector<std::int32_t> place, chosen;
    std::vector<std::uint8_t> is_met;
};

// A tree with the tables for its rows. One object reads one tree after another, so that tables stay in the cache.
class TreeGame {
  public:
    // player[k]: what column k counts for; several columns may read one input.
    void read(const GameArrays& of, const std::int32_t* player, int n_players) {
        n_values_ = of.n_values;
        list_places(of, player, n_players);
        choose_rule();
        tabulate();
        copy_values(of);
    }

    // Adds the Shapley values of a row: out[player * stride + value].
    template <class Code>
    void add(const Code* row, const std::uint16_t* known, GameScratch& scratch, std::size_t stride, double* out) const {
        switch (n_points_) {
            case 2:
                return Walk<Code, 2>{*this, row, known, scratch, stride, out}.run();
            case 4:
                return Walk<Code, 4>{*this, row, known, scratch, stride, out}.run();
            case 6:
                return Walk<Code, 6>{*this, row, known, scratch, stride, out}.run();
            case 8:
                return Walk<Code, 8>{*this, row, known, scratch, stride, out}.run();
            case 10:
                return Walk<Code, 10>{*this, row, known, scratch, stride, out}.run();
            case 12:
                return Walk<Code, 12>{*this, row, known, scratch, stride, out}.run();
            default:
                return Walk<Code, 0>{*this, row, known, scratch, stride, out}.run();
        }
    }

  private:
    // A node, in depth-first order.
    struct Place {
        std::int32_t node, depth, after;  // after: the place that follows all those below
        std::int32_t player, above;       // of the edge that leads here; the depth of the last such edge above, or -1
        double share;                     // of the rows of the parent
        double before, rest;              // r of the player without and with this edge
        bool is_terminal;
        RouteNode route;
    };

    // ---- tables ----------------------------------------------------------------------------------------------------

    void list_places(const GameArrays& of, const std::int32_t* player, int n_players) {
        struct Waiting {
            std::int32_t node, depth;
        };
        places_.clear();
        places_.reserve(static_cast<std::size_t>(of.tree.n_nodes));
        last_edge_.assign(static_cast<std::size_t>(n_players), -1);
        depth_ = 0;
        most_players_ = 0;
        std::vector<Waiting> todo{{0, 0}};
        std::vector<std::int32_t> on_path;  // places from the root down to the last one
        std::int32_t n_on_path = 0;         // players of its edges
        const auto leave = [&](std::int32_t depth) {
            for (; static_cast<std::int32_t>(on_path.size()) > depth; on_path.pop_back()) {
                Place& place = places_[on_path.back()];
                place.after = static_cast<std::int32_t>(places_.size());
                if (place.depth == 0) continue;
                last_edge_[place.player] = place.above;
                n_on_path -= place.above < 0;
            }
        };
        while (!todo.empty()) {
            const auto [node, depth] = todo.back();
            todo.pop_back();
            leave(depth);
            places_.push_back(place_of(of, player, on_path, node, depth));
            const Place& place = places_.back();
            on_path.push_back(static_cast<std::int32_t>(places_.size()) - 1);
            depth_ = std::max(depth_, depth);
            if (depth > 0) {
                last_edge_[place.player] = depth;
                n_on_path += place.above < 0;
                most_players_ = std::max(most_players_, n_on_path);
            }
            for (std::int32_t c = of.tree.n_children[node]; c-- > 0;)
                todo.push_back({of.tree.first_child[node] + c, depth + 1});
        }
        leave(0);
    }

    Place place_of(const GameArrays& of, const std::int32_t* player, const std::vector<std::int32_t>& on_path,
                   std::int32_t node, std::int32_t depth) const {
        const bool is_terminal = of.tree.n_children[node] == 0;
        Place place{node, depth, 0, -1, -1, 1.0, 1.0, 1.0, is_terminal, of.tree.route(node)};
        if (depth == 0) return place;
        const Place& parent = places_[on_path.back()];
        place.player = player[parent.route.feature];
        place.share = share_of(of, parent.node, node);
        place.above = last_edge_[place.player];
        if (place.above >= 0) place.before = places_[on_path[place.above]].rest;
        place.rest = place.before * place.share;
        return place;
    }

    // A stop at a node without a branch asks its column too, perhaps for the first time: one player more.
    void choose_rule() {
        const int needed = (most_players_ + 2) / 2;
        n_points_ = (needed + 1) / 2 * 2;
        if (static_cast<int>(rule_.node.size()) != n_points_) rule_ = gauss_legendre(n_points_);
    }

    // For each place, at all points: the ratio of the factors of its player below and above the edge where the row
    // meets its conditions, and where it does not any more; and what the edge adds to the player in both cases.
    void tabulate() {
        const std::size_t needed = places_.size() * 4 * static_cast<std::size_t>(n_points_);
        if (tables_.size() < needed) tables_.resize(needed);
        for (std::size_t i = 1; i < places_.size(); ++i) {
            const double before = places_[i].before, rest = places_[i].rest;
            double* const table = tables_.data() + 4 * static_cast<std::size_t>(n_points_) * i;
            for (int q = 0; q < n_points_; ++q) {
                const double t = rule_.node[q], left = 1.0 - t, factor = t + rest * left,
                             over = 1.0 / (t + before * left);
                const double so_far = (1.0 - before) * over;
                table[q] = factor * over;
                table[n_points_ + q] = rest * left * over;
                table[2 * n_points_ + q] = (1.0 - rest) / factor - so_far;
                table[3 * n_points_ + q] = -1.0 / left - so_far;
            }
        }
    }

    void copy_values(const GameArrays& of) {
        values_.clear();
        for (const Place& place : places_)
            for (int v = 0; v < n_values_; ++v)
                values_.push_back(of.weight * of.values[static_cast<std::int64_t>(place.node) * n_values_ + v]);
    }
    const double* value(const Place& place) const { return values_.data() + (&place - places_.data()) * n_values_; }

    // ---- one row ---------------------------------------------------------------------------------------------------

    // With the number of points known to the compiler, or 0.
    template <class Code, int fixed_points>
    struct Walk {
        const TreeGame& game;
        const Code* row;
        const std::uint16_t* known;
        GameScratch& scratch;
        std::size_t stride;
        double* out;

        int n() const { return fixed_points ? fixed_points : game.n_points_; }
        double* product(std::int32_t depth) const { return scratch.product.data() + depth * n(); }
        double* sums(std::int32_t depth) const { return scratch.sums.data() + depth * n() * game.n_values_; }
        const double* table(const Place& place, int which) const {
            return game.tables_.data() + (4 * (&place - game.places_.data()) + which) * n();
        }
        bool meets(std::int32_t edge) const { return edge < 0 || scratch.is_met[edge]; }
        // In four sums, which do not wait for each other.
        double dot(const double* a, const double* b) const {
            using numerics::load_lanes;
            numerics::Lanes first = numerics::both(0.0), second = first;
            for (int q = 0; q + 2 < n(); q += 4) {
                first += load_lanes(a + q) * load_lanes(b + q);
                second += load_lanes(a + q + 2) * load_lanes(b + q + 2);
            }
            if (n() % 4 == 2) first += load_lanes(a + n() - 2) * load_lanes(b + n() - 2);
            return numerics::sum_of(first + second);
        }

        void run() {
            const auto levels = static_cast<std::size_t>(game.depth_) + 2;  // one more, for stops
            scratch.product.resize(levels * static_cast<std::size_t>(n()));
            scratch.sums.resize(levels * static_cast<std::size_t>(n() * game.n_values_));
            scratch.place.resize(levels);
            scratch.chosen.resize(levels);
            scratch.is_met.resize(levels);
            std::copy(game.rule_.weight.begin(), game.rule_.weight.end(), product(0));
            const auto n_places = static_cast<std::int32_t>(game.places_.size());
            std::int32_t n_open = 0;  // levels with places whose leaves are not all added up yet
            for (std::int32_t i = 0; i < n_places;) {
                const Place& place = game.places_[i];
                while (n_open > place.depth) close(--n_open);
                if (!enter(place)) {
                    i = place.after;
                    continue;
                }
                ++i;
                if (place.is_terminal) {
                    if (place.depth > 0) add_leaf(place);
                    continue;
                }
                open(place);
                n_open = place.depth + 1;
            }
            while (n_open > 0) close(--n_open);
        }

        // The product with the factor of this edge; false where it is 0 at all points.
        bool enter(const Place& place) {
            if (place.depth == 0) return true;
            const bool above = meets(place.above);
            const bool here = above && scratch.chosen[place.depth - 1] == place.node;
            scratch.is_met[place.depth] = here;
            const double* const from = product(place.depth - 1);
            double* const to = product(place.depth);
            if (!here && (above ? place.rest : place.share) == 0.0) return false;
            if (!above) {
                for (int q = 0; q < n(); ++q) to[q] = from[q] * place.share;
            } else {
                const double* const ratio = table(place, here ? 0 : 1);
                for (int q = 0; q < n(); ++q) to[q] = from[q] * ratio[q];
            }
            return true;
        }

        void open(const Place& place) {
            scratch.place[place.depth] = static_cast<std::int32_t>(&place - game.places_.data());
            std::fill_n(sums(place.depth), n() * game.n_values_, 0.0);
            const std::int32_t to = careful_step(place.route, known, place.node, row);
            scratch.chosen[place.depth] = to;
            if (to == place.node) stop(place);
        }

        // A row that stays at a split: a leaf of its own, without rows.
        void stop(const Place& place) {
            const std::int32_t player = game.player_of(place);
            std::int32_t above = place.depth;
            while (above > 0 && game.places_[scratch.place[above]].player != player) --above;
            if (above > 0 && !scratch.is_met[above]) return;
            const double before = above > 0 ? game.places_[scratch.place[above]].rest : 1.0;
            const double* const from = product(place.depth);
            double* const to = product(place.depth + 1);
            double added = 0.0;
            for (int q = 0; q < n(); ++q) {
                const double t = game.rule_.node[q], old = t + before * (1.0 - t);
                to[q] = from[q] * t / old;
                added += to[q] * (1.0 / t - (1.0 - before) / old);
            }
            add_value(game.value(place), player, added, place.depth);
        }

        void add_leaf(const Place& place) {
            add_value(game.value(place), place.player, gain(place, product(place.depth)), place.depth - 1);
        }
        // A leaf below the place of a depth, its product one level further down.
        void add_value(const double* value, std::int32_t player, double added, std::int32_t depth) {
            const double* const from = product(depth + 1);
            double *to = sums(depth), *const of_player = out + static_cast<std::size_t>(player) * stride;
            for (int v = 0; v < game.n_values_; ++v, to += n()) {
                of_player[v] += value[v] * added;
                for (int q = 0; q < n(); ++q) to[q] += value[v] * from[q];
            }
        }

        void close(std::int32_t depth) {
            if (depth == 0) return;
            const Place& place = game.places_[scratch.place[depth]];
            const double* from = sums(depth);
            double *to = sums(depth - 1), *const of_player = out + static_cast<std::size_t>(place.player) * stride;
            for (int v = 0; v < game.n_values_; ++v, from += n(), to += n()) {
                of_player[v] += gain(place, from);
                for (int q = 0; q < n(); ++q) to[q] += from[q];
            }
        }

        // What an edge adds to its player, given the sums over the leaves below.
        double gain(const Place& place, const double* below) const {
            if (!meets(place.above)) return 0.0;
            const double* const slope = table(place, scratch.is_met[place.depth] ? 2 : 3);
            return dot(below, slope);
        }
    };

    std::int32_t player_of(const Place& place) const { return (&place + 1)->player; }  // of its first child

    std::vector<Place> places_;
    std::vector<double> tables_, values_;
    std::vector<std::int32_t>
        last_edge_;  // of each player, the depth of the last edge on the path; -1 where there is none
    Quadrature rule_;
    int n_values_ = 1, n_points_ = 2, most_players_ = 0;
    std::int32_t depth_ = 0;
};

}  // namespace everytree::explain
