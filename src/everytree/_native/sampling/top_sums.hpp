// Sums over all structures of the first levels of the table, at several powers of the evidence at once.
//
// Regions are listed as in an exact sum, each set of conditions once, as many whole levels as the limits allow. Those
// of the last level are leaves or split once more. Chains look the sums up by the conditions of a region: they say
// which splits are worth proposing. Where they reach the maximum depth, they are exact, and structures drawn by them
// are independent draws. They are kept in single precision: the acceptance of a proposal corrects any error.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/sweep.hpp"
#include "exact/kernel.hpp"
#include "sampling/options.hpp"
#include "sampling/points.hpp"

namespace everytree {

// exp(power * log), where all logs are finite and at most 0, to five digits; in a form that compilers turn into vector
// instructions.
inline void raise_to(float power, const float* logs, std::size_t n, float* to) {
    for (std::size_t i = 0; i < n; ++i) {
        const float x = power * logs[i] < -87.0f ? -87.0f : power * logs[i];
        const float scaled = x * 1.44269504f;
        const auto whole = static_cast<std::int32_t>(scaled - 0.5f);
        const float f = (scaled - static_cast<float>(whole)) * 0.693147181f;  // |f| <= log(2) / 2
        const float series = 1.0f + f * (1.0f + f * (0.5f + f * (0.166666667f + f * (0.0416666667f + f * 8.36e-3f))));
        to[i] = std::bit_cast<float>((whole + 127) << 23) * series;
    }
}

struct TopLimits {
    double steps;          // words of rows and terms of sums, about a nanosecond each
    std::int64_t regions;  // kept in memory
    int depth;             // levels of splits
};

template <class Family>
class TopSums {
  public:
    TopSums(const Points<Family>& points, const SamplerOptions& options, const std::vector<double>& powers,
            const TopLimits& limits, int n_jobs, Watch& watch)
        : powers_(powers), n_columns_(points.n_columns()) {
        const int depth = std::min(limits.depth, options.max_depth);
        if (depth < 1 || points.n_points() < 2) return;
        // One region takes this many steps at least: without time for some, not even the table is made.
        const double least = points.n_possible() + static_cast<double>(points.n_points()) / 64.0;
        if (!(limits.steps / least >= 2.0) || !is_precise(points)) return;
        kernel_ = make_kernel(points, options, depth, n_jobs);
        ExactKernel<Family>& kernel = *kernel_;
        const double regions = std::min(limits.steps / steps_each(kernel, points), static_cast<double>(limits.regions));
        if (!(regions >= 2.0)) return;
        Budget budget;
        budget.regions = static_cast<std::int64_t>(regions);
        kernel.list(budget, watch, [](int, std::size_t, std::size_t) {});
        const std::vector<Level>& listed = kernel.levels();
        std::size_t n_whole = 1;
        while (n_whole < listed.size() && listed[n_whole - 1].n_expanded() == listed[n_whole - 1].size()) ++n_whole;
        levels_.resize(n_whole);
        for (std::size_t d = n_whole; d-- > 0;) evaluate(kernel, options, static_cast<int>(d), watch);
        keep_children(kernel.take_levels());
        if (!kernel.counts_bits()) kernel_.reset();  // points are as fast
    }

    // Levels of splits that the sum at the root is over.
    int depth() const { return static_cast<int>(levels_.size()); }
    // Whether the children of regions at this depth are listed.
    bool covers(int depth) const { return depth + 1 < static_cast<int>(levels_.size()); }
    // The children of a region with rows, candidate by candidate: their numbers on the next level, -1 without rows.
    const std::int32_t* children(int depth, const Key& key) const {
        const LevelSums& level = levels_[static_cast<std::size_t>(depth)];
        const std::int32_t number = level.index.find(key);
        if (number < 0) throw std::logic_error("a region with rows was not listed");
        return level.children.data() + level.first_child[static_cast<std::size_t>(number)];
    }
    // Log Q of a listed region at one of the powers.
    double value(int depth, std::int32_t number, std::size_t power) const {
        return levels_[static_cast<std::size_t>(depth)]
            .log_q[static_cast<std::size_t>(number) * powers_.size() + power];
    }

    // Whether counting all rows as bits is less work than going through this many points.
    bool counts_faster(double n_points) const {
        return kernel_ && kernel_->counts_bits() &&
               static_cast<double>(kernel_->n_steps()) < 2.0 * n_points * static_cast<double>(n_columns_);
    }
    // Log evidence of the children of each candidate of a region, as leaves, in view.terms.
    void count_terms(const std::vector<Condition>& conditions, RegionView& view) const {
        kernel_->look_at(conditions.data(), conditions.data() + conditions.size(), view);
        view.terms.clear();
        kernel_->last_terms(view);
    }

  private:
    struct LevelSums {
        std::vector<float> log_q;  // (n_regions, n_powers)
        // Of all levels but the last.
        KeyIndex index{0};
        std::vector<std::size_t> first_child;
        std::vector<std::int32_t> children;
    };
    struct Part {
        RegionView view;
        std::vector<float> below_top, powered;
        std::vector<double> terms;  // (n_powers, n_terms)
    };

    // Rows that count 1 each are counted as bits, if that is less work than adding up the statistics of points.
    static std::unique_ptr<ExactKernel<Family>> make_kernel(const Points<Family>& points, const SamplerOptions& options,
                                                            int depth, int n_jobs) {
        std::vector<std::int64_t> place, class_start;
        std::vector<std::uint16_t> codes;
        std::vector<double> of_place;
        std::int64_t n_places = points.n_points();
        std::vector<Point> point_of;  // the point of each row
        if constexpr (requires(const Family& family) { family.tabulated(0); })
            n_places = list_by_class(points, point_of, place, class_start);
        if (class_start.empty()) {
            n_places = points.n_points();
            for (Point p = 0; p < n_places; ++p) {
                point_of.push_back(p);
                place.push_back(p);
            }
            of_place.assign(static_cast<std::size_t>((n_places + 63) / 64 * 64) * points.size(), 0.0);
            for (Point p = 0; p < n_places; ++p)
                std::copy_n(points.statistic(p), points.size(),
                            of_place.begin() + p * static_cast<std::ptrdiff_t>(points.size()));
        }
        for (const Point p : point_of)
            for (int k = 0; k < points.n_columns(); ++k) codes.push_back(points.codes(k)[p]);
        const auto n_rows = static_cast<std::int64_t>(place.size());
        std::vector<int> n_codes;
        std::vector<ColumnKind> kinds;
        for (int k = 0; k < points.n_columns(); ++k) {
            n_codes.push_back(points.n_codes(k));
            kinds.push_back(points.kind(k));
        }
        const auto first = [depth](const std::vector<double>& all) {
            return std::vector<double>(all.begin(), all.begin() + depth);
        };
        ExactOptions exact{
            depth, options.only_nontrivial, first(options.log_split), first(options.log_stop), 0.0, 1.0, false, n_jobs};
        return std::make_unique<ExactKernel<Family>>(
            points.family(), points.prior(), BitTable(codes.data(), n_rows, n_codes, kinds, place, n_places),
            RowStatistics<Family>(*points.family(), std::move(of_place), class_start),
            rows_as_bits(place.data(), n_rows, n_places), std::move(exact));
    }
    // Whether sums in single precision differ from exact ones by little more than a hundredth.
    static bool is_precise(const Points<Family>& points) {
        std::vector<Point> all(static_cast<std::size_t>(points.n_points()));
        for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<Point>(i);
        std::vector<double> stat(points.size());
        return std::fabs(points.log_evidence(all.data(), all.data() + all.size(), stat.data())) < 3e5;
    }
    // A row for each count of each point, class by class, each class from a new word on. Nothing if counts are not
    // whole numbers, if a point has none, or if there are more classes than can be counted as bits or many rows to a
    // point. Returns the number of places.
    static std::int64_t list_by_class(const Points<Family>& points, std::vector<Point>& point_of,
                                      std::vector<std::int64_t>& place, std::vector<std::int64_t>& class_start) {
        if (points.size() > ExactKernel<Family>::max_bit_classes) return 0;
        double total = 0.0;
        for (Point p = 0; p < points.n_points(); ++p) {
            const double before = total;
            for (std::size_t c = 0; c < points.size(); ++c) {
                const double count = points.statistic(p)[c];
                if (count != std::floor(count)) return 0;
                total += count;
            }
            if (!(total > before)) return 0;
        }
        if (total > 8.0 * static_cast<double>(points.n_points())) return 0;
        std::int64_t at = 0;
        for (std::size_t c = 0; c < points.size(); ++c) {
            at = (at + 63) / 64 * 64;
            class_start.push_back(at / 64);
            for (Point p = 0; p < points.n_points(); ++p)
                for (double left = points.statistic(p)[c]; left > 0.0; --left) {
                    point_of.push_back(p);
                    place.push_back(at++);
                }
        }
        class_start.push_back((at + 63) / 64);
        return at;
    }
    // Steps for one region: counting its rows, and its terms at each power.
    double steps_each(const ExactKernel<Family>& kernel, const Points<Family>& points) const {
        const double per_row = static_cast<double>(points.n_points()) * static_cast<double>(points.size());
        const double counting = kernel.counts_bits() ? static_cast<double>(kernel.n_steps())
                                                     : per_row * static_cast<double>(points.n_columns());
        return counting + points.n_possible() * (8.0 + static_cast<double>(powers_.size()));
    }

    void keep_children(std::vector<Level> listed) {
        for (std::size_t d = 0; d + 1 < levels_.size(); ++d) {
            LevelSums& own = levels_[d];
            own.index = KeyIndex(listed[d].size());
            for (std::size_t region = 0; region < listed[d].size(); ++region)
                own.index.number(key_of(listed[d].begin(region), listed[d].end(region)));
            own.first_child = std::move(listed[d].first_child);
            own.children = std::move(listed[d].children);
        }
    }

    void evaluate(const ExactKernel<Family>& kernel, const SamplerOptions& options, int depth, const Watch& watch) {
        const Level& listed = kernel.levels()[static_cast<std::size_t>(depth)];
        LevelSums& own = levels_[static_cast<std::size_t>(depth)];
        own.log_q.resize(listed.size() * powers_.size());
        std::vector<Part> parts = kernel.template parts<Part>(watch);
        over_regions(
            listed.size(), kernel.together(64), parts,
            [&](std::size_t first, std::size_t last, Part& part) {
                for (std::size_t region = first; region < last; ++region)
                    evaluate_region(kernel, options, depth, region, part);
            },
            [](std::size_t, const Part&, int) {});
    }

    void evaluate_region(const ExactKernel<Family>& kernel, const SamplerOptions& options, int depth,
                         std::size_t region, Part& part) {
        const Level& listed = kernel.levels()[static_cast<std::size_t>(depth)];
        kernel.look_at(listed.begin(region), listed.end(region), part.view);
        const double leaf = kernel.leaf_evidence(part.view.total.data());
        const bool is_last = depth + 1 == static_cast<int>(levels_.size());
        const std::size_t n_terms = is_last ? last_terms(kernel, part) : inner_terms(kernel, depth, region, part);
        float* log_q = levels_[static_cast<std::size_t>(depth)].log_q.data() + region * powers_.size();
        for (std::size_t p = 0; p < powers_.size(); ++p) {
            const double stop = powers_[p] * leaf;
            if (n_terms == 0) {
                log_q[p] = static_cast<float>(stop);
                continue;
            }
            const double mean = is_last ? mean_of_last(part, powers_[p]) : mean_of(part, p, n_terms);
            log_q[p] = static_cast<float>(
                weigh(options.log_stop[depth] + stop, options.log_split[depth] + mean).subtree_log_evidence);
        }
    }
    // Log evidence of the children of each candidate, as leaves; less that of the best one in `below_top`.
    std::size_t last_terms(const ExactKernel<Family>& kernel, Part& part) const {
        part.view.terms.clear();
        kernel.last_terms(part.view);
        if (part.view.terms.empty()) return 0;
        const double top = *std::max_element(part.view.terms.begin(), part.view.terms.end());
        part.terms.assign(1, top);
        part.below_top.clear();
        for (const double term : part.view.terms)
            part.below_top.push_back(static_cast<float>(std::fmin(std::fmax(term - top, -1e30), 0.0)));
        return part.view.terms.size();
    }
    // Log of the mean of the terms to a power.
    static double mean_of_last(Part& part, double power) {
        const std::size_t n = part.below_top.size();
        part.powered.assign((n + 3) / 4 * 4, 0.0f);
        raise_to(static_cast<float>(power), part.below_top.data(), n, part.powered.data());
        float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        for (std::size_t i = 0; i < part.powered.size(); i += 4)
            for (std::size_t j = 0; j < 4; ++j) sum[j] += part.powered[i + j];
        const double all = static_cast<double>(sum[0]) + sum[1] + sum[2] + sum[3];
        return power * part.terms[0] + std::log(all / static_cast<double>(n));
    }
    // For each power, the sums of log Q over the children of each candidate.
    std::size_t inner_terms(const ExactKernel<Family>& kernel, int depth, std::size_t region, Part& part) const {
        const Level& listed = kernel.levels()[static_cast<std::size_t>(depth)];
        const std::vector<float>& below = levels_[static_cast<std::size_t>(depth) + 1].log_q;
        const std::size_t n_powers = powers_.size();
        part.terms.clear();
        std::size_t at = listed.first_child[region];
        kernel.each_asked(part.view, [&](int, std::size_t n_children) {
            const std::size_t first = part.terms.size();
            part.terms.resize(first + n_powers, 0.0);
            for (std::size_t c = 0; c < n_children; ++c) {
                const std::int32_t child = listed.children[at++];
                for (std::size_t p = 0; child >= 0 && p < n_powers; ++p)
                    part.terms[first + p] += below[static_cast<std::size_t>(child) * n_powers + p];
            }
        });
        return part.terms.size() / n_powers;
    }
    double mean_of(const Part& part, std::size_t power, std::size_t n_terms) const {
        const std::size_t n_powers = powers_.size();
        double top = -std::numeric_limits<double>::infinity(), sum = 0.0;
        for (std::size_t i = 0; i < n_terms; ++i) top = std::fmax(top, part.terms[i * n_powers + power]);
        if (std::fabs(top) == std::numeric_limits<double>::infinity()) return top;
        for (std::size_t i = 0; i < n_terms; ++i) sum += std::exp(part.terms[i * n_powers + power] - top);
        return top + std::log(sum / static_cast<double>(n_terms));
    }

    std::vector<double> powers_;
    int n_columns_;
    std::unique_ptr<ExactKernel<Family>> kernel_;
    std::vector<LevelSums> levels_;
};

}  // namespace everytree
