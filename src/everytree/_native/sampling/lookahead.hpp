// Sums over all structures of the next levels of a region: they say which splits are worth proposing.
//
//     Q_h(S) = (1 - g) leaf(S) + g * mean over candidates of the product of Q_{h-1}(child),   Q_0(S) = leaf(S).
//
// Where h reaches the maximum depth, Q is the exact evidence of the region and the shares below are the exact posterior
// of its split.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/sweep.hpp"
#include "numerics/log_sum.hpp"
#include "sampling/options.hpp"
#include "sampling/points.hpp"
#include "sampling/region.hpp"
#include "sampling/top_sums.hpp"

namespace everytree::sampling {

// Q of a region, and the log share of each term in it: of a leaf, and of each candidate.
struct Prospect {
    double log_evidence = 0.0, log_stop = 0.0;
    std::vector<double> log_share;
};

template <class Family>
class Lookahead {
  public:
    Lookahead(const Points<Family>& points, const SamplerOptions& options)
        : points_(points), options_(options), levels_(static_cast<std::size_t>(std::max(options.block_depth, 2)) + 1) {}

    // Forgets what was computed for another power of the evidence.
    void set_power(double power) {
        if (power != power_) known_.clear(), n_known_ = 0;
        power_ = power;
    }
    // Takes the sums of the first levels from here, at the power with this number; null for none.
    void set_top(const TopSums<Family>* top, std::size_t number) {
        known_.clear();
        n_known_ = 0;
        top_ = top;
        power_number_ = number;
    }
    // Of a region with at least two points above the maximum depth; `leaf` is its log evidence as one leaf. Valid until
    // the next call.
    const Prospect& of(Region& region, const Point* begin, const Point* end, int depth, double n_candidates,
                       double leaf) {
        const auto n_points = static_cast<double>(end - begin);
        const double share = n_points / static_cast<double>(points_.n_points());
        int horizon = options_.horizon(share, n_points, points_.n_columns(), n_candidates, depth);
        if (top_ && top_->covers(depth)) horizon = 2;  // the sums of all children are known
        if (end - begin < min_points_known && horizon == 1) {
            compute(region, begin, end, depth, horizon, leaf, scratch_);
            return scratch_;
        }
        const Key key = region.key + key_of(Condition{-1 - depth, 0});
        const auto found = known_.find(key);
        if (found != known_.end()) return found->second;
        if (n_known_ > max_known) known_.clear(), n_known_ = 0;
        compute(region, begin, end, depth, horizon, leaf, scratch_);
        n_known_ += scratch_.log_share.size() + 8;
        return known_[key] = std::move(scratch_);
    }

  private:
    static constexpr std::size_t max_known = std::size_t{1} << 19;  // numbers kept: 4 MiB
    static constexpr std::ptrdiff_t min_points_known = 24;          // of one level, fewer are counted again as fast

    void compute(Region& region, const Point* begin, const Point* end, int depth, int horizon, double leaf,
                 Prospect& made) {
        std::vector<double>& terms = levels_[static_cast<std::size_t>(horizon)].terms;
        const double log_stop = options_.log_stop[depth] + power_ * leaf;
        list_terms(region, begin, end, depth, horizon, leaf);
        const double log_each = options_.log_split[depth] - std::log(static_cast<double>(terms.size()));
        const Fate all = weigh(log_stop, log_each + numerics::log_sum(terms));
        made.log_evidence = all.subtree_log_evidence;
        made.log_stop = log_stop - made.log_evidence;
        made.log_share.clear();
        for (const double term : terms) made.log_share.push_back(log_each + term - made.log_evidence);
    }

    struct Hash {
        std::size_t operator()(const Key& key) const { return static_cast<std::size_t>(key.one); }
    };
    // Scratch space of one depth of the recursion.
    struct Level {
        Candidates candidates;
        std::vector<double> terms, by_code, above, upto;
        std::vector<std::int64_t> start;  // of the points of each code, in `sorted`
        std::vector<Point> sorted, rest;
        std::vector<CodeSet> sets;
    };

    // Log Q of a region with the given log evidence of a leaf.
    double value(Region& region, const Point* begin, const Point* end, int depth, int horizon, double leaf) {
        if (begin == end) return 0.0;
        if (end - begin == 1 || horizon == 0 || depth >= options_.max_depth) return power_ * leaf;
        list_terms(region, begin, end, depth, horizon, leaf);
        const std::vector<double>& terms = levels_[static_cast<std::size_t>(horizon)].terms;
        const double log_each = options_.log_split[depth] - std::log(static_cast<double>(terms.size()));
        return weigh(options_.log_stop[depth] + power_ * leaf, log_each + numerics::log_sum(terms))
            .subtree_log_evidence;
    }

    // The log of the product of Q(child) for each candidate, in the scratch space of the horizon.
    void list_terms(Region& region, const Point* begin, const Point* end, int depth, int horizon, double leaf) {
        Level& level = levels_[static_cast<std::size_t>(horizon)];
        level.terms.clear();
        level.candidates.list(points_, region, begin, end, options_.only_nontrivial);
        if (top_ && top_->covers(depth)) return look_up_terms(region, depth, level);
        if (horizon == 1 && top_ && top_->counts_faster(static_cast<double>(end - begin)))
            return count_terms(region, level);
        for (int k = 0; k < points_.n_columns(); ++k) {
            if (level.candidates.n_of_column(points_.kind(k), k) == 0) continue;
            count(region.codes[k], k, begin, end, level, horizon > 1);
            if (points_.kind(k) == ColumnKind::ordered)
                add_thresholds(region, k, end - begin, depth, horizon, leaf, level);
            else
                add_categories(region, k, end - begin, depth, horizon, leaf, level);
        }
    }

    // The same from the sums of the first levels, which list candidates in the same order.
    void look_up_terms(const Region& region, int depth, Level& level) {
        const std::int32_t* child = top_->children(depth, region.key);
        for (int k = 0; k < points_.n_columns(); ++k) {
            const ColumnKind kind = points_.kind(k);
            const int n_children = kind == ColumnKind::multiway ? std::popcount(region.codes[k]) : 2;
            for (int i = level.candidates.n_of_column(kind, k); i > 0; --i) {
                double product = 0.0;
                for (int c = 0; c < n_children; ++c, ++child)
                    if (*child >= 0) product += top_->value(depth + 1, *child, power_number_);
                level.terms.push_back(product);
            }
        }
    }
    // The same from rows counted as bits, where children are leaves.
    void count_terms(const Region& region, Level& level) {
        conditions_.clear();
        for (int k = 0; k < points_.n_columns(); ++k)
            if (region.codes[k] != points_.all_codes()[k]) conditions_.push_back({k, region.codes[k]});
        top_->count_terms(conditions_, view_);
        for (const double term : view_.terms) level.terms.push_back(power_ * term);
    }

    // Statistics and numbers of the points by their code in a column, and the points themselves in that order.
    void count(CodeSet codes, int column, const Point* begin, const Point* end, Level& level, bool sorts) {
        const std::size_t size = points_.size();
        const bool is_ordered = points_.kind(column) == ColumnKind::ordered;
        const int lo = is_ordered ? lowest_of(codes) : 0, n = points_.n_codes(column);
        const int hi = is_ordered ? highest_of(codes) : n - 1;
        level.by_code.resize(static_cast<std::size_t>(n) * size);
        level.start.assign(static_cast<std::size_t>(n) + 1, 0);
        std::fill(level.by_code.begin() + lo * static_cast<std::ptrdiff_t>(size),
                  level.by_code.begin() + (hi + 1) * static_cast<std::ptrdiff_t>(size), 0.0);
        const std::uint16_t* own = points_.codes(column);
        if (points_.layout().n_pairs == 0 && size == 2) {  // two classes: no loop over statistics
            for (const Point* p = begin; p != end; ++p) {
                double* to = level.by_code.data() + own[*p] * std::size_t{2};
                const double* from = points_.statistic(*p);
                to[0] += from[0];
                to[1] += from[1];
                ++level.start[own[*p] + 1];
            }
        } else {
            for (const Point* p = begin; p != end; ++p) {
                points_.layout().add(level.by_code.data() + own[*p] * size, points_.statistic(*p));
                ++level.start[own[*p] + 1];
            }
        }
        for (int code = 0; code < n; ++code) level.start[code + 1] += level.start[code];
        if (!sorts) return;
        level.sorted.resize(static_cast<std::size_t>(end - begin));
        for (const Point* p = begin; p != end; ++p) level.sorted[static_cast<std::size_t>(level.start[own[*p]]++)] = *p;
        for (int code = n; code > 0; --code) level.start[code] = level.start[code - 1];
        level.start[0] = 0;
    }

    void add_thresholds(Region& region, int column, std::int64_t n_points, int depth, int horizon, double leaf,
                        Level& level) {
        const std::size_t size = points_.size();
        const CodeSet codes = region.codes[column], candidates = level.candidates.of_column(column);
        const int lo = lowest_of(codes), hi = highest_of(codes);
        const auto at = [&](std::vector<double>& of, int code) { return of.data() + code * size; };
        level.above.resize(level.by_code.size());
        std::copy_n(at(level.by_code, hi), size, at(level.above, hi));
        for (int code = hi - 1; code > lo; --code) {
            std::copy_n(at(level.above, code + 1), size, at(level.above, code));
            points_.layout().add(at(level.above, code), at(level.by_code, code));
        }
        level.upto.assign(size, 0.0);
        for (int t = lo; t < highest_of(candidates); ++t) {
            points_.layout().add(level.upto.data(), at(level.by_code, t));
            if (t < lowest_of(candidates)) continue;
            const std::int64_t n_left = level.start[t + 1];
            const auto leaf_of = [&](std::int64_t n, const double* stat) {
                return n == 0 ? 0.0 : n == n_points ? leaf : points_.log_evidence(stat);
            };
            const double left = leaf_of(n_left, level.upto.data());
            const double right = leaf_of(n_points - n_left, at(level.above, t + 1));
            if (horizon == 1) {
                level.terms.push_back(power_ * (left + right));
                continue;
            }
            const Point *first = level.sorted.data(), *middle = first + n_left, *last = first + n_points;
            const auto low = interval(static_cast<std::uint64_t>(lo), static_cast<std::uint64_t>(t));
            const auto high = interval(static_cast<std::uint64_t>(t) + 1, static_cast<std::uint64_t>(hi));
            const double below = child(region, column, low, first, middle, depth, horizon, left);
            level.terms.push_back(below + child(region, column, high, middle, last, depth, horizon, right));
        }
    }

    void add_categories(Region& region, int column, std::int64_t n_points, int depth, int horizon, double leaf,
                        Level& level) {
        const std::size_t size = points_.size();
        const CodeSet codes = region.codes[column];
        const bool is_multiway = points_.kind(column) == ColumnKind::multiway;
        const int n = level.candidates.n_of_column(points_.kind(column), column);
        CodeSet left = is_multiway ? codes : level.candidates.of_column(column);
        for (int i = 0; i < n; ++i, left &= left - 1) {
            child_sets(points_.kind(column), codes, std::countr_zero(left), level.sets);
            double product = 0.0;
            for (std::size_t c = 0; c < level.sets.size(); ++c) {
                const CodeSet set = level.sets[c];
                level.upto.assign(size, 0.0);
                level.rest.clear();
                std::int64_t n_here = 0;
                for (CodeSet more = set; more; more &= more - 1) {
                    const int code = std::countr_zero(more);
                    points_.layout().add(level.upto.data(), level.by_code.data() + code * size);
                    n_here += level.start[code + 1] - level.start[code];
                    if (horizon > 1)
                        level.rest.insert(level.rest.end(), level.sorted.begin() + level.start[code],
                                          level.sorted.begin() + level.start[code + 1]);
                }
                if (n_here == 0) continue;
                const double own = n_here == n_points ? leaf : points_.log_evidence(level.upto.data());
                const Point* first = level.rest.data();
                product += horizon == 1 ? power_ * own
                                        : child(region, column, set, first, first + n_here, depth, horizon, own);
            }
            level.terms.push_back(product);
        }
    }

    double child(Region& region, int column, CodeSet set, const Point* begin, const Point* end, int depth, int horizon,
                 double leaf) {
        if (end - begin < 2) return begin == end ? 0.0 : power_ * leaf;
        const auto before = region.enter(points_.kind(column), column, set, points_.all_codes()[column]);
        const double found = value(region, begin, end, depth + 1, horizon - 1, leaf);
        region.leave(column, before);
        return found;
    }

    const Points<Family>& points_;
    const SamplerOptions& options_;
    double power_ = 1.0;
    const TopSums<Family>* top_ = nullptr;
    std::size_t power_number_ = 0;
    std::vector<Level> levels_;  // by horizon
    std::unordered_map<Key, Prospect, Hash> known_;
    std::size_t n_known_ = 0;
    Prospect scratch_;
    std::vector<Condition> conditions_;
    exact::RegionView view_;
};

}  // namespace everytree::sampling
