// Targets of any shape: shares of the cells of a line, with a Polya tree as prior.
//
// Edges e_0 <= e_1 <= ... cut the line into cells: cell 0 lies below e_0, cell i is (e_(i-1), e_i], the last lies above
// all edges. Two equal edges make a cell of that value alone, an atom. Inside a cell all is known: targets spread
// evenly in cells between two edges, and exponentially in the two without end.
//
// The cells are halved again and again: cells first .. last - 1 into those before and from `middle` on. At each halving
// the share of the left part is Beta distributed, independently, so that the evidence is a product of ratios of beta
// functions, and the expected share of a cell a product of posterior means.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/families.hpp"
#include "numerics/special.hpp"

namespace everytree {

// Statistics: the weight of each cell, and the sum of the logarithms of the densities inside the cells.
struct Histogram {
    static constexpr bool is_discrete = false;
    static constexpr int n_extra = 0;
    int n_cells;
    Layout layout;
    int n_hyper, n_prior, n_parameters;

    // `cells` are the edges and then the sizes of the two exponential tails, as texts; none where only sizes of arrays
    // are asked for.
    Histogram(int size, const std::string& cells)
        : n_cells(size),
          layout{size + 1, 0, size},
          n_hyper(2 * size + 2),
          n_prior(3 * (size - 1)),
          n_parameters(size + 1) {
        if (size < 3) throw std::invalid_argument("a histogram has three cells or more");
        const char* at = cells.c_str();
        for (char* end = nullptr; static_cast<int>(edges_.size()) < size + 1; at = end) {
            edges_.push_back(std::strtod(at, &end));
            if (end == at) break;
        }
        if (cells.empty()) edges_.assign(static_cast<std::size_t>(size) + 1, 0.0);
        if (static_cast<int>(edges_.size()) != size + 1) throw std::invalid_argument("a histogram without its edges");
        tails_[1] = edges_.back();
        edges_.pop_back();
        tails_[0] = edges_.back();
        edges_.pop_back();
        halvings_.reserve(static_cast<std::size_t>(size) - 1);
        halve(0, size, 0);
    }

    bool supports(const Row& row) const { return is_moderate(row.y); }
    Complaint complain(const Row& row) const { return {"y", row.y, "a finite number, at most 1e60 in size"}; }
    void add(double* stat, const Row& row) const {
        const std::size_t cell = cell_of(row.y);
        stat[cell] += row.weight;
        stat[n_cells] += row.weight * log_density(cell, row.y);
    }

    // hyper: the edges and tails again, by which families are compared, the prior share of each cell, and the strength.
    // Of each halving: the parameters of its Beta distribution and their sum, the logarithm of the beta function, and
    // nothing else that depends on data.
    void prepare(const double* hyper, double* prior) const {
        const double* share = hyper + n_cells + 1;
        for (const Halving& one : halvings_) {
            double left = 0.0, right = 0.0;
            for (int k = one.first; k < one.middle; ++k) left += share[k];
            for (int k = one.middle; k < one.last; ++k) right += share[k];
            const double strength = std::ldexp(share[n_cells], one.depth);
            prior[0] = strength * left / (left + right);
            prior[1] = strength * right / (left + right);
            prior[2] = numerics::log_beta(prior, 2);
            prior += 3;
        }
    }
    // parameters: the expected share of each cell, and the variance of the mean, which is what is not known of it.
    void posterior(const double* stat, const double* prior, double* parameters) const {
        thread_local std::vector<double> sums, means, variances;
        const std::size_t n = halvings_.size();
        sum_up(stat, sums);
        std::fill(parameters, parameters + n_cells, 1.0);
        for (std::size_t i = 0; i < n; ++i) {
            const Halving& one = halvings_[i];
            const double a = prior[3 * i] + sums[2 * i], b = prior[3 * i + 1] + sums[2 * i + 1];
            for (int k = one.first; k < one.middle; ++k) parameters[k] *= a / (a + b);
            for (int k = one.middle; k < one.last; ++k) parameters[k] *= b / (a + b);
        }
        means.resize(n);
        variances.resize(n);
        for (std::size_t i = n; i-- > 0;) {  // parts come after the whole
            const Halving& one = halvings_[i];
            const double a = prior[3 * i] + sums[2 * i], b = prior[3 * i + 1] + sums[2 * i + 1], p = a / (a + b);
            const double of_p = p * (1.0 - p) / (a + b + 1.0);
            const auto mean = [&](int part, int cell) { return part < 0 ? mean_of(cell) : means[at(part)]; };
            const auto variance = [&](int part) { return part < 0 ? 0.0 : variances[at(part)]; };
            const double left = mean(one.left, one.first), right = mean(one.right, one.middle);
            means[i] = right + p * (left - right);
            variances[i] = of_p * (left - right) * (left - right) + (p * p + of_p) * variance(one.left) +
                           ((1.0 - p) * (1.0 - p) + of_p) * variance(one.right);
        }
        parameters[n_cells] = variances[0];
    }
    double log_evidence(const double* stat, const double* prior) const {
        thread_local std::vector<double> sums;
        sum_up(stat, sums);
        double total = stat[n_cells];
        for (std::size_t i = 0; i < halvings_.size(); ++i) {
            const double* n = sums.data() + 2 * i;
            if (n[0] + n[1] == 0.0) continue;
            double scratch[2];
            total += is_tabulated(n) ? looked_up(i, n)
                                     : numerics::log_beta_ratio(prior + 3 * i, n, 2, prior[3 * i + 2], scratch);
        }
        return total;
    }

    // The log density of one row given others: of the halves that it lies in, one after another.
    double log_predictive(const double* stat, const double* prior, const Row& row) const {
        const int cell = static_cast<int>(cell_of(row.y));
        double share = 1.0;
        for (int i = 0; i >= 0;) {
            const Halving& one = halvings_[at(i)];
            double n[2] = {0.0, 0.0};
            for (int k = one.first; k < one.last; ++k) n[k >= one.middle] += stat[k];
            const bool is_right = cell >= one.middle;
            const double *alpha = prior + 3 * i, in = alpha[is_right] + n[is_right];
            share *= in / (alpha[0] + alpha[1] + n[0] + n[1]);
            i = is_right ? one.right : one.left;
        }
        return std::log(share) + log_density(at(cell), row.y);
    }

    // Most nodes of a tree hold few rows, and most rows have weight 1.
    void tabulate(const double* prior) {
        table_.resize(halvings_.size() * 3 * n_tabulated);
        double* into = table_.data();
        for (std::size_t i = 0; i < halvings_.size(); ++i)
            for (const double x : {prior[3 * i], prior[3 * i + 1], prior[3 * i] + prior[3 * i + 1]}) {
                for (int k = 0; k < n_tabulated; ++k) *into++ = k == 0 ? 0.0 : numerics::log_rising(x, k);
            }
    }

  private:
    struct Halving {
        int first, middle, last, depth;
        int left, right;  // the halvings of the parts; -1 for a cell
    };
    static constexpr int n_tabulated = 24;
    static std::size_t at(int part) { return static_cast<std::size_t>(part); }

    int halve(int first, int last, int depth) {
        if (last - first == 1) return -1;
        const auto own = halvings_.size();
        const int middle = first + (last - first) / 2;
        halvings_.push_back({first, middle, last, depth, -1, -1});
        const int left = halve(first, middle, depth + 1), right = halve(middle, last, depth + 1);
        halvings_[own].left = left;
        halvings_[own].right = right;
        return static_cast<int>(own);
    }
    // Weights of the left and the right part of each halving.
    void sum_up(const double* stat, std::vector<double>& sums) const {
        sums.resize(2 * halvings_.size());
        for (std::size_t i = halvings_.size(); i-- > 0;) {
            const Halving& one = halvings_[i];
            sums[2 * i] = one.left < 0 ? stat[one.first] : sums[2 * at(one.left)] + sums[2 * at(one.left) + 1];
            sums[2 * i + 1] = one.right < 0 ? stat[one.middle] : sums[2 * at(one.right)] + sums[2 * at(one.right) + 1];
        }
    }
    bool is_tabulated(const double* n) const {
        return !table_.empty() && n[0] + n[1] < n_tabulated && n[0] == std::floor(n[0]) && n[1] == std::floor(n[1]);
    }
    double looked_up(std::size_t i, const double* n) const {
        const double* table = table_.data() + i * 3 * n_tabulated;
        const int left = static_cast<int>(n[0]), right = static_cast<int>(n[1]);
        return table[left] + table[n_tabulated + right] - table[2 * n_tabulated + left + right];
    }

    std::size_t cell_of(double y) const {
        const auto found = std::lower_bound(edges_.begin(), edges_.end(), y);
        const auto cell = static_cast<std::size_t>(found - edges_.begin());
        const bool is_atom = cell + 1 < edges_.size() && edges_[cell] == y && edges_[cell + 1] == y;
        return is_atom ? cell + 1 : cell;
    }
    double log_density(std::size_t cell, double y) const {
        if (cell == 0) return -(edges_.front() - y) / tails_[0] - std::log(tails_[0]);
        if (cell == edges_.size()) return -(y - edges_.back()) / tails_[1] - std::log(tails_[1]);
        const double width = edges_[cell] - edges_[cell - 1];
        return width > 0.0 ? -std::log(width) : 0.0;
    }
    double mean_of(int cell) const {
        const auto k = at(cell);
        if (k == 0) return edges_.front() - tails_[0];
        if (k == edges_.size()) return edges_.back() + tails_[1];
        return edges_[k - 1] + 0.5 * (edges_[k] - edges_[k - 1]);
    }

    std::vector<double> edges_;
    double tails_[2] = {1.0, 1.0};
    std::vector<Halving> halvings_;  // each before its parts
    std::vector<double> table_;
};

}  // namespace everytree
