// Survival curves in a leaf: times with a known baseline, whose hazard is multiplied by unknown factors.
//
// Times come as positions: cell k of K holds the positions from k to k + 1, and the baseline hazard accumulates to
// length[k] over it, evenly. What a set of neighbouring cells multiplies the baseline by is theta ~ Gamma(shape, rate =
// shape), with D events and an accumulated baseline E:
//   G = shape^shape / Gamma(shape) * Gamma(shape + D) / (shape + E)^(shape + D).
// Whether all cells have one factor is unknown too. The cells are halved, and the halves again, as in a meta-tree:
//   L(cells) = (1 - g) G(cells) + g L(first half) L(second half),
// g the prior probability that the halves differ: 0 is proportional hazards, 1 a factor for each cell.
//
// Statistics: the weight of the events in each cell; for each cell, the share of it that rows were under observation,
// times their weight and their relative hazard; and the sum over events of weight times log relative hazard.
#pragma once
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "core/families.hpp"
#include "core/sweep.hpp"

namespace everytree {

struct Survival {
    static constexpr bool is_discrete = false;
    static constexpr int n_extra = 3;  // censored, entry, log of the relative hazard
    static constexpr int most_cells = 64;
    static constexpr double largest_log_hazard = 60.0;
    int n_cells, n_intervals;
    Layout layout;
    int n_hyper, n_prior, n_parameters;

    explicit Survival(int cells)
        : n_cells(checked(cells)),
          n_intervals(2 * cells - 1),
          layout{2 * cells + 1, 0, 2 * cells},
          n_hyper(2 + cells),
          n_prior(3 + 2 * cells),
          n_parameters(3 * n_intervals + cells) {}

    bool supports(const Row& row) const {
        const double entry = row.extra[1];
        return (row.y >= 0.0) & (row.y <= largest_magnitude) & (entry >= 0.0) & (entry <= row.y) &
               ((row.extra[0] == 0.0) | (row.extra[0] == 1.0)) & (std::fabs(row.extra[2]) <= largest_log_hazard);
    }
    Complaint complain(const Row& row) const {
        if (!(row.y >= 0.0 && row.y <= largest_magnitude)) return {"y", row.y, "from 0 to 1e60"};
        if (!(row.extra[0] == 0.0 || row.extra[0] == 1.0))
            return {"censored", row.extra[0], "0 (event seen) or 1 (right-censored)"};
        if (!(row.extra[1] >= 0.0 && row.extra[1] <= row.y)) return {"entry", row.extra[1], "from 0 to y"};
        return {"log_hazard", row.extra[2], "from -60 to 60"};
    }
    void add(double* stat, const Row& row) const {
        const double entry = row.extra[1];
        const double exposed = row.extra[2] == 0.0 ? row.weight : row.weight * std::exp(row.extra[2]);
        const int last = cell_of(row.y);
        for (int k = std::min(static_cast<int>(std::fmin(entry, n_cells - 1.0)), last); k <= last; ++k) {
            const double from = std::fmax(entry, k), to = k < last ? k + 1.0 : row.y;
            stat[n_cells + k] += exposed * std::fmax(to - from, 0.0);
        }
        if (row.extra[0] != 0.0) return;
        stat[last] += row.weight;
        stat[2 * n_cells] += row.weight * row.extra[2];
    }

    // hyper: shape, g, length of each cell. prior: shape, log(1 - g), log(g), the lengths and their logs.
    void prepare(const double* hyper, double* prior) const {
        prior[0] = hyper[0];
        prior[1] = std::log1p(-hyper[1]);
        prior[2] = std::log(hyper[1]);
        for (int k = 0; k < n_cells; ++k) {
            prior[3 + k] = hyper[2 + k];
            prior[3 + n_cells + k] = std::log(hyper[2 + k]);
        }
    }
    double log_evidence(const double* stat, const double* prior) const {
        Intervals of;
        sum_up(stat, prior, of);
        double log_density = stat[2 * n_cells];
        for (int k = 0; k < n_cells; ++k)
            if (stat[k] != 0.0) log_density += stat[k] * prior[3 + n_cells + k];
        return of.log_evidence[0] + log_density;
    }
    // parameters: of each interval, in the order of a heap, the shape and the rate of its factor and the probability
    // that it is not halved, given that it is there; then the lengths of the cells.
    void posterior(const double* stat, const double* prior, double* parameters) const {
        Intervals of;
        sum_up(stat, prior, of);
        for (int i = 0; i < n_intervals; ++i) {
            parameters[3 * i] = prior[0] + of.events[i];
            parameters[3 * i + 1] = prior[0] + of.exposed[i];
            parameters[3 * i + 2] = of.whole[i];
        }
        std::copy(prior + 3, prior + 3 + n_cells, parameters + 3 * n_intervals);
    }
    // The cell of an event: a position between two cells ends the first of them.
    int cell_of(double y) const {
        return static_cast<int>(std::clamp(std::ceil(y) - 1.0, 0.0, static_cast<double>(n_cells - 1)));
    }

  private:
    static int checked(int cells) {
        if (cells < 1 || cells > most_cells || (cells & (cells - 1)) != 0)
            throw std::invalid_argument("the number of cells must be 1, 2, 4, ... or 64");
        return cells;
    }

    // Intervals of cells as a heap: 0 holds all of them, i has the halves 2 i + 1 and 2 i + 2, the last are the cells.
    struct Intervals {
        double events[2 * most_cells], exposed[2 * most_cells], log_evidence[2 * most_cells], whole[2 * most_cells];
    };
    void sum_up(const double* stat, const double* prior, Intervals& of) const {
        for (int i = n_intervals - 1; i >= 0; --i) {
            const int first = 2 * i + 1, cell = i - (n_cells - 1);
            const bool is_cell = cell >= 0;
            of.events[i] = is_cell ? stat[cell] : of.events[first] + of.events[first + 1];
            of.exposed[i] =
                is_cell ? stat[n_cells + cell] * prior[3 + cell] : of.exposed[first] + of.exposed[first + 1];
            if (of.events[i] == 0.0 && of.exposed[i] == 0.0) {  // no rows: as the prior, to the last digit
                of.log_evidence[i] = 0.0;
                of.whole[i] = is_cell ? 1.0 : std::exp(prior[1]);
                continue;
            }
            const double alone = numerics::log_gamma_ratio(prior[0], prior[0], of.events[i], of.exposed[i]);
            if (is_cell) {
                of.log_evidence[i] = alone;
                of.whole[i] = 1.0;
                continue;
            }
            const double halves = of.log_evidence[first] + of.log_evidence[first + 1];
            const Fate fate = weigh(prior[1] + alone, prior[2] + halves);
            of.log_evidence[i] = fate.subtree_log_evidence;
            of.whole[i] = 1.0 - fate.split_prob;
        }
    }
};

}  // namespace everytree
