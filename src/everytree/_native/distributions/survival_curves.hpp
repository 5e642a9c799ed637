// Mean survival curves of mixtures of leaves, at fixed positions: several in each cell, evenly spaced, the last at its
// end.
#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/survival.hpp"

namespace everytree::distributions {

class SurvivalCurves {
  public:
    SurvivalCurves(const Survival& family, int per_cell)
        : family_(family),
          per_cell_(per_cell),
          length_(static_cast<std::size_t>(family.n_intervals)),
          full_(length_.size()) {}

    int n_points() const { return family_.n_cells * per_cell_; }

    // Adds the curve of a leaf with these posterior parameters, for a row of this relative hazard.
    void add(const double* parameters, double hazard, double weight, double* curve) {
        take_intervals(parameters, hazard);
        const double* const length = parameters + 3 * family_.n_intervals;
        for (int k = 0; k < family_.n_cells; ++k)
            for (int j = 1; j <= per_cell_; ++j)
                *curve++ += weight * at(parameters, hazard, k, length[k] * j / per_cell_, j == per_cell_);
    }

  private:
    static double survives(const double* interval, double accumulated) {
        return std::exp(-interval[0] * std::log1p(accumulated / interval[1]));
    }
    // The probability to survive each interval as a whole.
    void take_intervals(const double* parameters, double hazard) {
        const double* const length = parameters + 3 * family_.n_intervals;
        for (int i = family_.n_intervals - 1; i >= 0; --i) {
            const int cell = i - (family_.n_cells - 1);
            const auto s = static_cast<std::size_t>(i), first = 2 * s + 1;
            const double whole = parameters[3 * i + 2];
            length_[s] = cell >= 0 ? length[cell] : length_[first] + length_[first + 1];
            full_[s] = whole > 0.0 ? whole * survives(parameters + 3 * i, hazard * length_[s]) : 0.0;
            if (cell < 0 && whole < 1.0) full_[s] += (1.0 - whole) * full_[first] * full_[first + 1];
        }
    }
    // The probability to survive up to a place in a cell.
    double at(const double* parameters, double hazard, int cell, double into, bool is_end) const {
        int i = cell + family_.n_cells - 1;
        double value = is_end ? full_[static_cast<std::size_t>(i)] : survives(parameters + 3 * i, hazard * into);
        while (i > 0) {
            const bool is_second = i % 2 == 0;
            if (is_second) {
                value *= full_[static_cast<std::size_t>(i - 1)];
                into += length_[static_cast<std::size_t>(i - 1)];
            } else {
                is_end = false;
            }
            i = (i - 1) / 2;
            const double whole = parameters[3 * i + 2];
            if (is_end)
                value = full_[static_cast<std::size_t>(i)];
            else if (whole > 0.0)
                value = whole * survives(parameters + 3 * i, hazard * into) + (1.0 - whole) * value;
        }
        return value;
    }

    Survival family_;
    int per_cell_;
    std::vector<double> length_, full_;  // of each interval
};

}  // namespace everytree::distributions
