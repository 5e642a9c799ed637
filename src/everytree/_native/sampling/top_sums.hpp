// Sums over all structures of the first levels of the table, at several powers of the evidence at once.
//
// Regions are listed as in an exact sum, each set of conditions once, as many whole levels as the limits allow. Those
// of the last level are leaves or split once more. Chains look the sums up by the conditions of a region: they say
// which splits are worth proposing. Where they reach the maximum depth, they are exact, and structures drawn by them
// are independent draws. The acceptance of a proposal corrects their rounding errors.
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

namespace everytree::sampling {

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
    double steps;  // words of rows and terms of sums, about a nanosecond each
    double bytes;  // of the table of rows, the lists of regions and their sums, about
    int depth;     // levels of splits
};

// What the sums lack to be over as many levels as asked.
enum class Lack { nothing, time, memory };

template <class Family>
class TopSums {
  public:
    TopSums(const Points<Family>& points, const SamplerOptions& options, const std::vector<double>& powers,
            const TopLimits& limits, int n_jobs, exact::Watch& watch)
        : n_columns_(points.n_columns()) {
        for (const double power : powers) {
            place_of_power_.push_back(power == 0.0 ? -1 : static_cast<int>(powers_.size()));
            if (power != 0.0) powers_.push_back(power);
        }
        const int wanted = std::min(limits.depth, options.max_depth);
        if (wanted < 1 || points.n_points() < 2) return;
        const Counting counting = plan_counting(points);
        const exact::Budget budget = budget_for(limits, counting, points);
        if (lack_ != Lack::nothing) return;  // not even the table of rows is made
        std::unique_ptr<Kernel> kernel = make_kernel(points, counting, options, wanted, n_jobs);
        kernel->list(budget, watch, [](int, std::size_t, std::size_t) {});
        levels_.resize(n_whole(kernel->levels()));
        if (depth() < wanted) lack_ = kernel->lacks_memory() ? Lack::memory : Lack::time;
        for (int d = depth() - 1; d >= 0; --d) evaluate(*kernel, options, d, watch);
        keep_children(kernel->take_levels());
        // Without bits, counting points is as fast, so the kernel is not needed.
        if (kernel->reader().counts_bits()) kernel_ = std::move(kernel);
    }

    Lack lack() const { return lack_; }
    // Levels of splits that the sum at the root is over.
    int depth() const { return static_cast<int>(levels_.size()); }
    // Whether the children of regions at this depth are listed.
    bool covers(int depth) const { return depth + 1 < static_cast<int>(levels_.size()); }
    // The children of a region with rows, candidate by candidate: their numbers on the next level, -1 without rows.
    const std::int32_t* children(int depth, const exact::Key& key) const {
        const LevelSums& level = levels_[static_cast<std::size_t>(depth)];
        const std::int32_t number = level.index.find(key);
        if (number < 0) throw std::logic_error("a region with rows was not listed");
        return level.children.data() + level.first_child[static_cast<std::size_t>(number)];
    }
    // Log Q of a listed region at one of the powers. At power 0 it is the sum of the prior, which is 1.
    double value(int depth, std::int32_t number, std::size_t power) const {
        if (place_of_power_[power] < 0) return 0.0;
        return levels_[static_cast<std::size_t>(depth)].log_q[static_cast<std::size_t>(number) * powers_.size() +
                                                              static_cast<std::size_t>(place_of_power_[power])];
    }

    // Whether counting all rows as bits is less work than going through this many points.
    bool counts_faster(double n_points) const {
        return kernel_ && kernel_->reader().counts_bits() &&
               static_cast<double>(kernel_->reader().n_steps()) < 2.0 * n_points * static_cast<double>(n_columns_);
    }
    // Log evidence of the children of each candidate of a region, as leaves, in view.terms.
    void count_terms(const std::vector<exact::Condition>& conditions, exact::RegionView& view) const {
        kernel_->reader().look_at(conditions.data(), conditions.data() + conditions.size(), view);
        view.terms.clear();
        kernel_->reader().last_terms(view);
    }

  private:
    struct LevelSums {
        // (n_regions, n_powers). Not in single precision: a log evidence of 1e6 would be off by a tenth.
        std::vector<double> log_q;
        // Of all levels but the last.
        exact::KeyIndex index{0};
        std::vector<std::size_t> first_child;
        std::vector<std::int32_t> children;
    };
    struct Part {
        exact::RegionView view;
        std::vector<float> below_top, powered;
        std::vector<double> terms;  // (n_powers, n_terms)
    };

    using Kernel = exact::ExactKernel<Family>;

    // How rows are counted: those that count 1 each as bits, if that is less work than adding up points.
    struct Counting {
        std::vector<std::int64_t> of_class;  // number of rows that are counted as bits; empty where points are added up
        std::int64_t n_rows = 0, n_places = 0;
        double steps = 1.0;  // for one region
        double bytes = 0.0;  // of the table, and while it is made
    };
    static Counting plan_counting(const Points<Family>& points) {
        Counting made;
        made.of_class = rows_of_classes(points);
        for (const std::int64_t n : made.of_class) {
            made.n_rows += n;
            made.n_places = words_of(made.n_places) * 64 + n;
        }
        if (made.of_class.empty()) made.n_rows = made.n_places = points.n_points();
        add_costs(points, made);
        return made;
    }
    static void add_costs(const Points<Family>& points, Counting& made) {
        const bool counts_bits = !made.of_class.empty();
        const auto n_rows = static_cast<double>(made.n_rows), size = static_cast<double>(points.size());
        const std::int64_t n_words = words_of(made.n_places);
        for (int k = 0; k < points.n_columns(); ++k) {
            const auto steps = static_cast<double>(exact::BitTable::n_steps(n_words, points.n_codes(k)));
            made.steps += counts_bits ? steps : n_rows * size;
            made.bytes += static_cast<double>(exact::BitTable::n_bytes(n_words, points.n_codes(k)));
        }
        made.bytes += n_rows * (sizeof(std::uint16_t) * points.n_columns() + sizeof(Point) + sizeof(std::int64_t));
        made.bytes += sizeof(double) * (counts_bits ? n_to_tabulate(points, n_rows) : n_rows * size);
    }
    static std::int64_t words_of(std::int64_t n_places) { return (n_places + 63) / 64; }
    // Numbers that the kernel tabulates for itself: none if the table of the points is large enough.
    static double n_to_tabulate(const Points<Family>& points, double n_rows) {
        if constexpr (requires { points.family()->tabulated(0); })
            if (!(points.family()->n_tabulated() > n_rows))
                return (static_cast<double>(points.size()) + 1.0) * std::min(n_rows + 1.0, 1048576.0);
        return 0.0;
    }
    // Number of rows of each class, a row for each count of each point. Nothing if counts are not whole numbers, if a
    // point has none, or if there are more classes than can be counted as bits or many rows to a point.
    static std::vector<std::int64_t> rows_of_classes(const Points<Family>& points) {
        if constexpr (!requires { points.family()->tabulated(0); }) {
            return {};
        } else {
            if (points.size() > Kernel::Reader::max_bit_classes) return {};
            std::vector<std::int64_t> rows(points.size(), 0);
            const double most = 8.0 * static_cast<double>(points.n_points());
            double total = 0.0;
            for (Point p = 0; p < points.n_points(); ++p) {
                const double before = total;
                for (std::size_t c = 0; c < points.size(); ++c) {
                    const double count = points.statistic(p)[c];
                    if (count != std::floor(count) || !(total + count <= most)) return {};
                    total += count;
                    rows[c] += static_cast<std::int64_t>(count);
                }
                if (!(total > before)) return {};
            }
            return rows;
        }
    }

    static std::unique_ptr<Kernel> make_kernel(const Points<Family>& points, const Counting& counting,
                                               const SamplerOptions& options, int depth, int n_jobs) {
        std::vector<std::int64_t> place, class_start;
        std::vector<std::uint16_t> codes;
        std::vector<double> of_place;
        std::vector<Point> point_of;  // the point of each row
        const auto n_rows = static_cast<std::size_t>(counting.n_rows);
        place.reserve(n_rows);
        point_of.reserve(n_rows);
        codes.reserve(n_rows * static_cast<std::size_t>(points.n_columns()));
        if (counting.of_class.empty())
            list_points(points, point_of, place, of_place);
        else
            list_by_class(points, point_of, place, class_start);
        for (const Point p : point_of)
            for (int k = 0; k < points.n_columns(); ++k) codes.push_back(points.codes(k)[p]);
        std::vector<int> n_codes;
        std::vector<ColumnKind> kinds;
        for (int k = 0; k < points.n_columns(); ++k) {
            n_codes.push_back(points.n_codes(k));
            kinds.push_back(points.kind(k));
        }
        const auto first = [depth](const std::vector<double>& all) {
            return std::vector<double>(all.begin(), all.begin() + depth);
        };
        exact::ExactOptions exact_options{
            depth, options.only_nontrivial, first(options.log_split), first(options.log_stop), 0.0, 1.0, false, n_jobs};
        return std::make_unique<Kernel>(exact::RegionReader<Family>(
            points.family(), points.prior(),
            exact::BitTable(codes.data(), counting.n_rows, n_codes, kinds, place, counting.n_places),
            exact::RowStatistics<Family>(*points.family(), std::move(of_place), class_start),
            exact::rows_as_bits(place.data(), counting.n_rows, counting.n_places), std::move(exact_options)));
    }
    // A row for each point, with its statistics.
    static void list_points(const Points<Family>& points, std::vector<Point>& point_of,
                            std::vector<std::int64_t>& place, std::vector<double>& of_place) {
        of_place.assign(static_cast<std::size_t>(words_of(points.n_points()) * 64) * points.size(), 0.0);
        for (Point p = 0; p < points.n_points(); ++p) {
            point_of.push_back(p);
            place.push_back(p);
            std::copy_n(points.statistic(p), points.size(),
                        of_place.begin() + p * static_cast<std::ptrdiff_t>(points.size()));
        }
    }
    // A row for each count of each point, class by class, each class from a new word on.
    static void list_by_class(const Points<Family>& points, std::vector<Point>& point_of,
                              std::vector<std::int64_t>& place, std::vector<std::int64_t>& class_start) {
        std::int64_t at = 0;
        for (std::size_t c = 0; c < points.size(); ++c) {
            at = words_of(at) * 64;
            class_start.push_back(at / 64);
            for (Point p = 0; p < points.n_points(); ++p)
                for (double left = points.statistic(p)[c]; left > 0.0; --left) {
                    point_of.push_back(p);
                    place.push_back(at++);
                }
        }
        class_start.push_back(words_of(at));
    }
    // What the limits leave for the list of regions; a lack if that is less than the root and a child take.
    exact::Budget budget_for(const TopLimits& limits, const Counting& counting, const Points<Family>& points) {
        const auto n_powers = static_cast<double>(powers_.size());
        // Counting the rows of a region, and its terms at each power.
        const double regions = limits.steps / (counting.steps + points.n_possible() * (8.0 + n_powers));
        exact::Budget budget;
        budget.bytes = limits.bytes - counting.bytes;
        // The sums are made when the index of the list is gone.
        budget.bytes_each = std::max(static_cast<double>(exact::KeyIndex::most_bytes_each), n_powers * sizeof(double));
        if (!(regions >= 2.0)) lack_ = Lack::time;
        if (!(budget.bytes >= 2.0 * budget.bytes_each)) lack_ = Lack::memory;
        if (lack_ == Lack::nothing) budget.regions = static_cast<std::int64_t>(std::min(regions, 2147483647.0));
        return budget;
    }
    // Number of levels that are listed as a whole.
    static std::size_t n_whole(const std::vector<exact::Level>& listed) {
        std::size_t n = 1;
        while (n < listed.size() && listed[n - 1].n_expanded() == listed[n - 1].size()) ++n;
        return n;
    }

    void keep_children(std::vector<exact::Level> listed) {
        for (std::size_t d = 0; d + 1 < levels_.size(); ++d) {
            LevelSums& own = levels_[d];
            own.index = exact::KeyIndex(listed[d].size());
            for (std::size_t region = 0; region < listed[d].size(); ++region)
                own.index.number(exact::key_of(listed[d].begin(region), listed[d].end(region)));
            own.first_child = std::move(listed[d].first_child);
            own.children = std::move(listed[d].children);
        }
    }

    void evaluate(const Kernel& kernel, const SamplerOptions& options, int depth, const exact::Watch& watch) {
        const exact::Level& listed = kernel.levels()[static_cast<std::size_t>(depth)];
        LevelSums& own = levels_[static_cast<std::size_t>(depth)];
        own.log_q.resize(listed.size() * powers_.size());
        std::vector<Part> parts = kernel.template parts<Part>(watch);
        exact::over_regions(
            listed.size(), kernel.together(64), parts,
            [&](std::size_t first, std::size_t last, Part& part) {
                for (std::size_t region = first; region < last; ++region)
                    evaluate_region(kernel, options, depth, region, part);
            },
            [](std::size_t, const Part&, int) {});
    }

    void evaluate_region(const Kernel& kernel, const SamplerOptions& options, int depth, std::size_t region,
                         Part& part) {
        const exact::Level& listed = kernel.levels()[static_cast<std::size_t>(depth)];
        kernel.reader().look_at(listed.begin(region), listed.end(region), part.view);
        const double leaf = kernel.reader().leaf_evidence(part.view.total.data());
        const bool is_last = depth + 1 == static_cast<int>(levels_.size());
        const std::size_t n_terms = is_last ? last_terms(kernel, part) : inner_terms(kernel, depth, region, part);
        double* log_q = levels_[static_cast<std::size_t>(depth)].log_q.data() + region * powers_.size();
        for (std::size_t p = 0; p < powers_.size(); ++p) {
            const double stop = powers_[p] * leaf;
            if (n_terms == 0) {
                log_q[p] = stop;
                continue;
            }
            const double mean = is_last ? mean_of_last(part, powers_[p]) : mean_of(part, p, n_terms);
            log_q[p] = weigh(options.log_stop[depth] + stop, options.log_split[depth] + mean).subtree_log_evidence;
        }
    }
    // Log evidence of the children of each candidate, as leaves; less that of the best one in `below_top`.
    std::size_t last_terms(const Kernel& kernel, Part& part) const {
        part.view.terms.clear();
        kernel.reader().last_terms(part.view);
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
    std::size_t inner_terms(const Kernel& kernel, int depth, std::size_t region, Part& part) const {
        const exact::Level& listed = kernel.levels()[static_cast<std::size_t>(depth)];
        const std::vector<double>& below = levels_[static_cast<std::size_t>(depth) + 1].log_q;
        const std::size_t n_powers = powers_.size();
        part.terms.clear();
        std::size_t at = listed.first_child[region], n_terms = 0;
        kernel.reader().each_candidate_size(part.view, [&](int, std::size_t n_children) {
            const std::size_t first = part.terms.size();
            ++n_terms;
            part.terms.resize(first + n_powers, 0.0);
            for (std::size_t c = 0; c < n_children; ++c) {
                const std::int32_t child = listed.children[at++];
                for (std::size_t p = 0; child >= 0 && p < n_powers; ++p)
                    part.terms[first + p] += below[static_cast<std::size_t>(child) * n_powers + p];
            }
        });
        return n_terms;
    }
    double mean_of(const Part& part, std::size_t power, std::size_t n_terms) const {
        const std::size_t n_powers = powers_.size();
        double top = -std::numeric_limits<double>::infinity(), sum = 0.0;
        for (std::size_t i = 0; i < n_terms; ++i) top = std::fmax(top, part.terms[i * n_powers + power]);
        if (std::fabs(top) == std::numeric_limits<double>::infinity()) return top;
        for (std::size_t i = 0; i < n_terms; ++i) sum += std::exp(part.terms[i * n_powers + power] - top);
        return top + std::log(sum / static_cast<double>(n_terms));
    }

    std::vector<double> powers_;       // those above 0
    std::vector<int> place_of_power_;  // among them, of each power that was given; -1 for 0
    int n_columns_;
    Lack lack_ = Lack::nothing;
    std::unique_ptr<exact::ExactKernel<Family>> kernel_;  // if it counts rows as bits
    std::vector<LevelSums> levels_;
};

}  // namespace everytree::sampling
