// Results of an exact sum, computed from the root down: the probability of each region, and sums over the whole joint
// posterior of trees and splits.
#pragma once
#include <array>

#include "exact/kernel.hpp"

namespace everytree::exact {

inline double weighted_log(double log_p) {
    return log_p == -std::numeric_limits<double>::infinity() ? 0.0 : std::exp(log_p) * log_p;
}

// The distribution of posterior mass: sums and counts of shares of about the same size, by their binary exponent.
struct Spread {
    static constexpr int n_sizes = 1100;
    std::array<double, n_sizes> sum{};
    std::array<std::int64_t, n_sizes> count{};

    void add(double share) {
        if (!(share > 0.0)) return;
        int exponent = 0;
        std::frexp(share, &exponent);
        const int size = std::min(std::max(1 - exponent, 0), n_sizes - 1);
        sum[size] += share;
        ++count[size];
    }
    void add(const Spread& other) {
        for (int i = 0; i < n_sizes; ++i) {
            sum[i] += other.sum[i];
            count[i] += other.count[i];
        }
    }
    // The largest threshold below which shares add up to at most `mass`; a larger one if more than `most` are above.
    double threshold(double mass, std::int64_t most) const {
        double left_out = 0.0;
        int size = n_sizes - 1;
        for (; size > 0 && left_out + sum[size] <= mass; --size) left_out += sum[size];
        std::int64_t n_above = 0;
        for (int i = 0; i <= size; ++i) {
            n_above += count[i];
            if (n_above > most) return std::ldexp(1.0, 1 - i);
        }
        return size == n_sizes - 1 ? 0.0 : std::ldexp(1.0, -size);
    }
    // The total below such a threshold.
    double below(double threshold) const {
        double all = 0.0;
        for (int i = n_sizes - 1; i >= 0 && std::ldexp(1.0, -i) < threshold; --i) all += sum[i];
        return all;
    }
};

// Sums over the whole joint posterior.
struct ExactSummary {
    std::vector<double> root_feature, expected_splits;  // by column
    double expected_leaves = 0.0, entropy = 0.0;
    Spread ending;                          // of the places where rows end: regions that are leaves, splits into leaves
    Spread ending_unknown;                  // of the columns that are split on: rows end there if their code is unknown
    std::vector<std::vector<double>> mass;  // probability that a region is in the tree, level by level
};

// The contribution of some regions of a level to the sums, and the mass they pass on.
struct SummaryPart {
    RegionView view;
    ExactSummary sums;
    std::vector<std::pair<std::int32_t, double>> passed_on;

    void clear(std::size_t n_columns) {
        sums = ExactSummary{};
        sums.root_feature.assign(n_columns, 0.0);
        sums.expected_splits.assign(n_columns, 0.0);
        passed_on.clear();
    }
};

template <class Family>
void summarise_region(const ExactKernel<Family>& kernel, int depth, std::size_t region, double mass, bool counts_unseen,
                      SummaryPart& part) {
    const Level& level = kernel.levels()[depth];
    const bool is_last = !kernel.is_expanded(depth, region);
    ExactSummary& sums = part.sums;
    const RegionFate here = kernel.fate(depth, region, part.view);
    const double stop = mass * std::exp(here.log_stop);
    sums.expected_leaves += stop;
    sums.entropy -= mass * weighted_log(here.log_stop);
    sums.ending.add(stop);
    if (here.log_split.empty()) return;
    std::size_t i = 0, at = is_last ? 0 : level.first_child[region];
    const auto split_on = [&](int k) {  // the next candidate
        const double log_share = here.log_split[i++], share = mass * std::exp(log_share);
        if (share > 0.0) sums.entropy -= share * log_share;
        sums.expected_splits[k] += share;
        if (depth == 0) sums.root_feature[k] += share;
        (is_last ? sums.ending : sums.ending_unknown).add(share);
        return share;
    };
    if (is_last) {
        kernel.reader().each_candidate_size(part.view, [&](int k, std::size_t n_children) {
            sums.expected_leaves += static_cast<double>(n_children) * split_on(k);
        });
        return;
    }
    kernel.reader().each_candidate(part.view, [&](int k, int, const std::vector<CodeSet>& sets, const double*) {
        const double share = split_on(k);
        for (std::size_t c = 0; c < sets.size(); ++c) {
            const std::int32_t child = level.children[at++];
            if (child >= 0) {
                part.passed_on.emplace_back(child, share);
                continue;
            }
            sums.ending.add(share);
            if (!counts_unseen) continue;
            const Unseen below = kernel.reader().unseen(part.view, k, sets[c], depth + 1);
            sums.expected_leaves += share * below.leaves;
            sums.entropy += share * below.entropy;
        }
    });
}

// Without `counts_unseen`, expected leaves and entropy lack what lies below regions without rows: there are sums over
// all trees of the prior, which may take far longer than all else, and predictions do not need them.
template <class Family>
ExactSummary summarise(const ExactKernel<Family>& kernel, bool counts_unseen, const Watch& watch) {
    ExactSummary out;
    out.root_feature.assign(kernel.reader().n_columns(), 0.0);
    out.expected_splits.assign(kernel.reader().n_columns(), 0.0);
    out.mass.assign(1, {1.0});
    std::vector<SummaryPart> parts = kernel.template parts<SummaryPart>(watch);
    const int n_levels = static_cast<int>(kernel.levels().size());
    std::size_t n_regions = 0;
    for (const Level& level : kernel.levels()) n_regions += level.size();
    const double negligible = kernel.options().negligible / static_cast<double>(n_regions);
    for (int depth = 0; depth < n_levels; ++depth) {
        out.mass.emplace_back(depth + 1 < n_levels ? kernel.levels()[depth + 1].size() : 0, 0.0);
        const std::vector<double>& mass = out.mass[depth];
        std::vector<double>& below = out.mass[depth + 1];
        const auto work = [&](std::size_t first, std::size_t last, SummaryPart& part) {
            part.clear(kernel.reader().n_columns());
            for (std::size_t region = first; region < last; ++region)
                if (mass[region] > negligible)
                    summarise_region(kernel, depth, region, mass[region], counts_unseen, part);
        };
        const auto finish = [&](std::size_t, const SummaryPart& part, int) {
            for (std::size_t k = 0; k < kernel.reader().n_columns(); ++k) {
                out.root_feature[k] += part.sums.root_feature[k];
                out.expected_splits[k] += part.sums.expected_splits[k];
            }
            out.expected_leaves += part.sums.expected_leaves;
            out.entropy += part.sums.entropy;
            out.ending.add(part.sums.ending);
            out.ending_unknown.add(part.sums.ending_unknown);
            for (const auto& [child, share] : part.passed_on) below[child] += share;
        };
        over_regions(kernel.levels()[depth].size(), kernel.together(256), parts, work, finish);
    }
    out.mass.pop_back();
    return out;
}

// Probability that each column is used in some region that holds rows: 1 minus that of no use, swept upward.
// Regions whose probability is below `negligible` are treated as leaves.
template <class Family>
std::vector<double> feature_use(const ExactKernel<Family>& kernel, const std::vector<std::vector<double>>& mass,
                                double negligible, const Watch& watch) {
    constexpr std::size_t most_at_once = std::size_t{1} << 25;  // numbers of one level
    const std::size_t n_columns = kernel.reader().n_columns();
    std::size_t largest = 1;
    for (const Level& level : kernel.levels()) largest = std::max(largest, level.size());
    const std::size_t width = std::min(std::max<std::size_t>(most_at_once / largest, 1), n_columns);
    std::vector<double> used(n_columns);
    std::vector<RegionView> views = kernel.template parts<RegionView>(watch);
    for (std::size_t from = 0; from < n_columns; from += width) {
        const std::size_t n = std::min(width, n_columns - from);
        std::vector<double> unused, below;
        for (int depth = static_cast<int>(kernel.levels().size()) - 1; depth >= 0; --depth) {
            const Level& level = kernel.levels()[depth];
            unused.assign(level.size() * n, 1.0);
            const auto one = [&](std::size_t region, RegionView& view) {
                const RegionFate here = kernel.fate(depth, region, view);
                if (here.log_split.empty()) return;
                double* own = unused.data() + region * n;
                std::fill(own, own + n, std::exp(here.log_stop));
                const bool is_last = !kernel.is_expanded(depth, region);
                std::size_t i = 0, at = is_last ? 0 : level.first_child[region];
                std::vector<double> term(n);
                kernel.reader().each_candidate(view, [&](int k, int, const std::vector<CodeSet>& sets, const double*) {
                    std::fill(term.begin(), term.end(), std::exp(here.log_split[i++]));
                    for (std::size_t c = 0; !is_last && c < sets.size(); ++c) {
                        const std::int32_t child = level.children[at++];
                        for (std::size_t j = 0; child >= 0 && j < n; ++j) term[j] *= below[child * n + j];
                    }
                    if (k >= static_cast<int>(from) && k < static_cast<int>(from + n)) term[k - from] = 0.0;
                    for (std::size_t j = 0; j < n; ++j) own[j] += term[j];
                });
            };
            over_regions(
                level.size(), kernel.together(256), views,
                [&](std::size_t first, std::size_t last, RegionView& view) {
                    for (std::size_t region = first; region < last; ++region)
                        if (mass[depth][region] > negligible) one(region, view);
                },
                [](std::size_t, const RegionView&, int) {});
            below.swap(unused);
        }
        for (std::size_t j = 0; j < n; ++j) used[from + j] = std::clamp(1.0 - below[j], 0.0, 1.0);
    }
    return used;
}

}  // namespace everytree::exact
