// A structure at one power of the evidence: building parts of it, and their evidence.
//
// The evidence of the whole is linear in that of any part, q_root = A + B q_s: each region above s contributes
// (1 - g) leaf to A and g times the evidence of its other children to B. So everything outside s fixed, the structure
// below s has the density p(k) (A + B q_s(k)): with probability A / (A + B Q_s) it is drawn from its prior, otherwise
// from the posterior of the region of s alone, Q_s being the sum over all structures below s.
//
// A draw from the posterior of a region: a leaf has the share `stop` of Q; then nothing below matters and is drawn from
// the prior. Otherwise a split c is drawn by its share, and each child is drawn in the same way. Relative to the prior
// its density is
//     rho(S) = stop + n share_c * product of rho(child)           (n candidates, each of prior probability 1 / n),
// which is q(S) / Q(S) where the sums are exact. Where they only look some levels ahead, rho is still the density of
// the draw, and a proposal k' instead of k is accepted with probability
//     min(1, (A + B q') (A + B Q rho) / ((A + B q) (A + B Q rho'))),
// which is 1 where the sums are exact: one rule for Gibbs steps of exact blocks and for larger parts.
// Below the depth where prunings are summed out, rho is stop / (1 - g) of a leaf and n share_c / g * product otherwise.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "core/sweep.hpp"
#include "numerics/log_sum.hpp"
#include "sampling/lookahead.hpp"
#include "sampling/options.hpp"
#include "sampling/points.hpp"
#include "sampling/random.hpp"
#include "sampling/region.hpp"
#include "sampling/structure.hpp"

namespace everytree::sampling {

template <class Family>
class Replica {
  public:
    static constexpr std::int32_t root = 0;

    Replica(const Points<Family>& points, const SamplerOptions& options)
        : points_(points), options_(options), order_(static_cast<std::size_t>(points.n_points())), draft_(order_) {
        for (std::size_t i = 0; i < order_.size(); ++i) order_[i] = static_cast<Point>(i);
        stat_.resize(points.size());
        nodes_.take(1);
        nodes_[root].end = points.n_points();
        nodes_[root].leaf = points_.log_evidence(order_.data(), order_.data() + order_.size(), stat_.data());
    }

    const NodeArena& nodes() const { return nodes_; }
    const Point* points_of(const StructureNode& node) const { return order_.data() + node.begin; }
    double power() const { return power_; }
    double log_evidence() const { return nodes_[root].evidence; }

    // The same structure with another power of the evidence.
    void set_power(double power) {
        power_ = power;
        evaluate(root, power, true);
    }
    double log_evidence_at(double power) { return evaluate(root, power, false); }

    // Begins anew with a structure made as the plan says; `list` holds the splits of Draw::listed.
    bool begin(const Plan& plan, ChainRandom& random, Lookahead<Family>* ahead, const std::vector<Split>* list) {
        list_ = list;
        n_listed_ = 0;
        const std::int32_t made = propose(root, plan, random, ahead);
        const bool is_whole = made >= 0 && (list == nullptr || n_listed_ == list->size());
        if (made >= 0 && is_whole) accept(root, made);
        if (made >= 0 && !is_whole) reject(made);
        return is_whole;
    }

    // ---- proposals --------------------------------------------------------------------------------------------------

    // A node that is to take the place of `at`, or -1 if the plan is not possible there. `log_prior_ratio` is then the
    // log prior of all splits that the plan fixed or kept, minus that of those it kept.
    std::int32_t propose(std::int32_t at, const Plan& plan, ChainRandom& random, Lookahead<Family>* ahead) {
        random_ = &random;
        ahead_ = ahead;
        log_prior_ratio_ = 0.0;
        enter_region(at);
        const std::int32_t made = nodes_.take(1);
        const StructureNode& old = nodes_[at];
        StructureNode& own = nodes_[made];
        own.begin = old.begin;
        own.end = old.end;
        own.depth = old.depth;
        own.leaf = old.leaf;
        std::copy(order_.begin() + old.begin, order_.begin() + old.end, draft_.begin() + old.begin);
        if (build(made, plan)) return made;
        reject(made);
        return -1;
    }
    double log_prior_ratio() const { return log_prior_ratio_; }

    // Log evidence of the whole with another evidence of one part.
    double log_evidence_with(std::int32_t at, double evidence) const {
        for (std::int32_t node = at; nodes_[node].parent >= 0; node = nodes_[node].parent)
            evidence = evidence_above(nodes_[nodes_[node].parent], node, evidence);
        return evidence;
    }
    void accept(std::int32_t at, std::int32_t made) {
        const std::int64_t more = nodes_[made].n_inner - nodes_[at].n_inner;
        nodes_.drop_children(at);
        StructureNode& own = nodes_[at];
        const std::int32_t parent = own.parent;
        own = nodes_[made];
        own.parent = parent;
        nodes_[made].first_child = -1;
        nodes_[made].n_children = 0;
        for (std::int32_t c = 0; c < own.n_children; ++c) nodes_[own.first_child + c].parent = at;
        nodes_.give_back(made, 1);
        std::copy(draft_.begin() + own.begin, draft_.begin() + own.end, order_.begin() + own.begin);
        double evidence = own.evidence;
        for (std::int32_t node = at; nodes_[node].parent >= 0; node = nodes_[node].parent) {
            StructureNode& above = nodes_[nodes_[node].parent];
            above.evidence = evidence = evidence_above(above, node, evidence);
            above.n_inner += more;
        }
    }
    void reject(std::int32_t made) {
        nodes_.drop_children(made);
        nodes_.give_back(made, 1);
    }

    // ---- the density of guided draws --------------------------------------------------------------------------------

    // log A and log B of q_root = A + B q_s.
    std::pair<double, double> outside(std::int32_t at) const {
        double a = -std::numeric_limits<double>::infinity(), b = 0.0;
        path_.clear();
        for (std::int32_t node = at; node >= 0; node = nodes_[node].parent) path_.push_back(node);
        for (std::size_t i = path_.size() - 1; i > 0; --i) {
            const StructureNode& own = nodes_[path_[i]];
            const bool is_summed = options_.is_summed(own.depth);
            if (is_summed) a = numerics::log_sum(a, b + options_.log_stop[own.depth] + power_ * own.leaf);
            if (is_summed) b += options_.log_split[own.depth];
            for (std::int32_t c = own.first_child; c < own.first_child + own.n_children; ++c)
                if (c != path_[i - 1]) b += nodes_[c].evidence;
        }
        return {a, b};
    }
    // log rho of a node; `is_draft` if it was proposed and not accepted yet. Call with the region of the node.
    double log_density(std::int32_t node, bool is_draft, Lookahead<Family>& ahead) {
        const StructureNode own = nodes_[node];
        if (!is_site(own)) return 0.0;
        const Prospect& prospect = look(own, is_draft, ahead);
        const double log_stop = prospect.log_stop;
        const bool is_summed = options_.is_summed(own.depth);
        if (!own.is_inner()) return log_stop - options_.log_stop[own.depth];
        candidates_.list(points_, region_, begin_of(own, is_draft), end_of(own, is_draft), options_.only_nontrivial);
        const std::size_t number = candidates_.number_of(points_, own.split);
        double log_share = std::log(own.n_candidates) + prospect.log_share[number];
        std::vector<CodeSet> sets;
        child_sets(points_.kind(own.split.column), region_.codes[own.split.column], own.split.code, sets);
        for (std::int32_t c = 0; c < own.n_children; ++c) {
            if (!is_site(nodes_[own.first_child + c])) continue;
            const auto before = enter(own.split.column, sets[static_cast<std::size_t>(c)]);
            log_share += log_density(own.first_child + c, is_draft, ahead);
            region_.leave(own.split.column, before);
        }
        return is_summed ? numerics::log_sum(log_stop, log_share) : log_share - options_.log_split[own.depth];
    }
    // Sum over structures below a node, as far as the sums look ahead. Call with the region of the node.
    double log_prospect(std::int32_t node, Lookahead<Family>& ahead) {
        const StructureNode& own = nodes_[node];
        return is_site(own) ? look(own, false, ahead).log_evidence : own.evidence;
    }
    // Makes the region of a node the current one.
    void enter_region(std::int32_t at) {
        region_.start(points_);
        path_.clear();
        for (std::int32_t node = at; node >= 0; node = nodes_[node].parent) path_.push_back(node);
        for (std::size_t i = path_.size() - 1; i > 0; --i) {
            const StructureNode& above = nodes_[path_[i]];
            const int column = above.split.column;
            child_sets(points_.kind(column), region_.codes[column], above.split.code, sets_);
            enter(column, sets_[static_cast<std::size_t>(path_[i - 1] - above.first_child)]);
        }
    }
    // Candidates of a node whose region is the current one.
    const Candidates& candidates_of(std::int32_t node) {
        const StructureNode& own = nodes_[node];
        candidates_.list(points_, region_, begin_of(own, false), end_of(own, false), options_.only_nontrivial);
        return candidates_;
    }
    const Region& region() const { return region_; }

    // Whether a node has a split or a pruning to draw.
    bool is_site(const StructureNode& node) const { return node.n_points() > 1 && node.depth < options_.max_depth; }
    // Log prior of what was drawn at a site.
    double log_prior(const StructureNode& node) const {
        if (!node.is_inner()) return options_.log_stop[node.depth];
        return (options_.is_summed(node.depth) ? 0.0 : options_.log_split[node.depth]) - std::log(node.n_candidates);
    }

    // ---- choice of a node -------------------------------------------------------------------------------------------

    // One of the split regions, each as probable as the others; -1 if there is none.
    std::int32_t any_inner(ChainRandom& random) const {
        if (nodes_[root].n_inner == 0) return -1;
        std::int64_t number = random.below(nodes_[root].n_inner);
        std::int32_t at = root;
        while (number > 0) {
            --number;  // the node itself
            std::int32_t c = nodes_[at].first_child;
            for (; number >= nodes_[c].n_inner; ++c) number -= nodes_[c].n_inner;
            at = c;
        }
        return at;
    }
    // A site by a walk from the root, to children by their numbers of points: whether it ends at a node depends on what
    // lies above it alone. -1 if the walk leaves the structure.
    std::int32_t walk(ChainRandom& random, double stop) const {
        std::int32_t at = root;
        while (random.uniform() >= stop) {
            if (!nodes_[at].is_inner()) return -1;
            std::int64_t point = nodes_[at].begin + random.below(nodes_[at].n_points());
            std::int32_t c = nodes_[at].first_child;
            while (point >= nodes_[c].end) ++c;
            at = c;
        }
        return is_site(nodes_[at]) ? at : -1;
    }

    // All splits in preorder, (-1, -1) for a region that was drawn as a leaf.
    std::vector<Split> listed() const {
        std::vector<Split> all;
        list_from(root, all);
        return all;
    }

  private:
    const Point* begin_of(const StructureNode& node, bool is_draft) const {
        return (is_draft ? draft_ : order_).data() + node.begin;
    }
    const Point* end_of(const StructureNode& node, bool is_draft) const {
        return (is_draft ? draft_ : order_).data() + node.end;
    }
    const Prospect& look(const StructureNode& node, bool is_draft, Lookahead<Family>& ahead) {
        return ahead.of(region_, begin_of(node, is_draft), end_of(node, is_draft), node.depth, node.n_candidates,
                        node.leaf);
    }
    typename Region::Before enter(int column, CodeSet set) {
        return region_.enter(points_.kind(column), column, set, points_.all_codes()[column]);
    }
    void list_from(std::int32_t node, std::vector<Split>& all) const {
        const StructureNode& own = nodes_[node];
        if (!is_site(own)) return;
        all.push_back(own.split);
        for (std::int32_t c = 0; c < own.n_children; ++c) list_from(own.first_child + c, all);
    }

    // Evidence of a node of which one child has another evidence than it says.
    double evidence_above(const StructureNode& above, std::int32_t child, double evidence) const {
        double product = evidence;
        for (std::int32_t c = above.first_child; c < above.first_child + above.n_children; ++c)
            if (c != child) product += nodes_[c].evidence;
        return evidence_of(above, product, power_);
    }
    double evidence_of(const StructureNode& node, double product, double power) const {
        if (!options_.is_summed(node.depth)) return product;
        return weigh(options_.log_stop[node.depth] + power * node.leaf, options_.log_split[node.depth] + product)
            .subtree_log_evidence;
    }
    double evaluate(std::int32_t node, double power, bool keeps) {
        StructureNode& own = nodes_[node];
        double found = power * own.leaf;
        if (own.is_inner()) {
            double product = 0.0;
            for (std::int32_t c = 0; c < own.n_children; ++c) product += evaluate(own.first_child + c, power, keeps);
            found = evidence_of(own, product, power);
        }
        if (keeps) own.evidence = found;
        return found;
    }

    // Makes a node whose points lie in the draft and whose region is the current one. False if that is not possible.
    bool build(std::int32_t node, const Plan& plan) {
        {
            StructureNode& own = nodes_[node];
            own.evidence = power_ * own.leaf;
            own.n_candidates = region_.n_possible;
            if (!is_site(own)) return plan.draw != Draw::fixed;
            candidates_.list(points_, region_, begin_of(own, true), end_of(own, true), options_.only_nontrivial);
            own.n_candidates = candidates_.n();
        }
        Draw below = plan.draw;
        Split split;
        if (!choose(node, plan, split, below)) return false;
        if (split.column >= 0 && !divide(node, split, plan, below)) return false;
        if (plan.draw == Draw::fixed) log_prior_ratio_ += log_prior(nodes_[node]);
        if (plan.draw == Draw::kept && is_site(nodes_[plan.like]))
            log_prior_ratio_ += log_prior(nodes_[node]) - log_prior(nodes_[plan.like]);
        return true;
    }

    // The split of a site, column -1 for a leaf, and how its children are drawn.
    bool choose(std::int32_t node, const Plan& plan, Split& split, Draw& below) {
        const StructureNode& own = nodes_[node];
        switch (plan.draw) {
            case Draw::fixed:
                split = plan.split;
                return candidates_.has(points_, split);
            case Draw::kept: {
                const StructureNode& like = nodes_[plan.like];
                if (!is_site(like)) break;
                split = like.split;
                if (split.column < 0) return !options_.is_summed(own.depth);
                return candidates_.has(points_, split);
            }
            case Draw::listed:
                if (n_listed_ >= list_->size()) return false;
                split = (*list_)[n_listed_++];
                if (split.column < 0) return !options_.is_summed(own.depth);
                return split.column < points_.n_columns() && candidates_.has(points_, split);
            case Draw::guided:
                return choose_guided(own, split, below);
            case Draw::worst:
                split = worst_split(own);
                return true;
            case Draw::prior:
                break;
        }
        below = Draw::prior;
        split = prior_split(own);
        return true;
    }
    Split prior_split(const StructureNode& own) {
        if (!options_.is_summed(own.depth) && std::log(random_->uniform()) >= options_.log_split[own.depth]) return {};
        return candidates_.pick(points_, random_->below(static_cast<std::int64_t>(own.n_candidates)));
    }
    bool choose_guided(const StructureNode& own, Split& split, Draw& below) {
        const Prospect& prospect = look(own, true, *ahead_);
        double left = random_->uniform() - std::exp(prospect.log_stop);
        if (left < 0.0) {
            below = Draw::prior;
            if (options_.is_summed(own.depth)) split = prior_split(own);
            return true;
        }
        std::size_t number = 0;
        for (; number + 1 < prospect.log_share.size(); ++number)
            if ((left -= std::exp(prospect.log_share[number])) < 0.0) break;
        split = candidates_.pick(points_, static_cast<std::int64_t>(number));
        return true;
    }
    Split worst_split(const StructureNode& own) {
        const Prospect& prospect = look(own, true, *ahead_);
        std::size_t worst = 0;
        for (std::size_t i = 1; i < prospect.log_share.size(); ++i)
            if (prospect.log_share[i] < prospect.log_share[worst]) worst = i;
        return candidates_.pick(points_, static_cast<std::int64_t>(worst));
    }

    // Splits a node and makes its children.
    bool divide(std::int32_t node, Split split, const Plan& plan, Draw below) {
        const ColumnKind kind = points_.kind(split.column);
        if (sets_by_depth_.size() <= static_cast<std::size_t>(nodes_[node].depth)) sets_by_depth_.resize(256);
        std::vector<CodeSet>& sets = sets_by_depth_[static_cast<std::size_t>(nodes_[node].depth)];
        child_sets(kind, region_.codes[split.column], split.code, sets);
        const auto n_children = static_cast<std::int32_t>(sets.size());
        const std::int32_t first = nodes_.take(sets.size());
        {
            StructureNode& own = nodes_[node];
            own.split = split;
            own.first_child = first;
            own.n_children = n_children;
            partition(own, kind);
        }
        double product = 0.0;
        std::int64_t n_inner = 1;
        const std::int32_t like = plan.draw == Draw::kept && is_site(nodes_[plan.like]) ? plan.like : -1;
        for (std::int32_t c = 0; c < n_children; ++c) {
            const auto before = enter(split.column, sets[static_cast<std::size_t>(c)]);
            bool is_made;
            if (plan.draw == Draw::fixed) {
                is_made = build(first + c, plan.children[static_cast<std::size_t>(c)]);
            } else if (like >= 0) {
                is_made = build(first + c, Plan::as(nodes_[like].first_child + c));
            } else {
                Plan next;
                next.draw = below;
                is_made = build(first + c, next);
            }
            region_.leave(split.column, before);
            if (!is_made) return false;
            product += nodes_[first + c].evidence;
            n_inner += nodes_[first + c].n_inner;
        }
        StructureNode& own = nodes_[node];
        own.evidence = evidence_of(own, product, power_);
        own.n_inner = n_inner;
        return true;
    }
    // Orders the points of a node in the draft by the children of its split, and counts them there.
    void partition(const StructureNode& own, ColumnKind kind) {
        const std::uint16_t* codes = points_.codes(own.split.column);
        const auto n = static_cast<std::size_t>(own.n_children);
        Point* points = draft_.data();
        if (n == 2 && kind != ColumnKind::multiway) {
            aside_.clear();
            std::int64_t kept = own.begin;
            for (std::int64_t i = own.begin; i < own.end; ++i) {
                const Point point = points[i];
                if (child_of(kind, own.split.code, codes[point]) == 0)
                    points[kept++] = point;
                else
                    aside_.push_back(point);
            }
            std::copy(aside_.begin(), aside_.end(), points + kept);
            starts_.assign({own.begin, kept, own.end});
        } else {
            starts_.assign(n + 1, 0);
            for (std::int64_t i = own.begin; i < own.end; ++i) ++starts_[codes[points[i]] + std::size_t{1}];
            starts_[0] = own.begin;
            for (std::size_t c = 0; c < n; ++c) starts_[c + 1] += starts_[c];
            aside_.assign(points + own.begin, points + own.end);
            places_.assign(starts_.begin(), starts_.end());
            for (const Point point : aside_) points[places_[codes[point]]++] = point;
        }
        for (std::size_t c = 0; c < n; ++c) {
            StructureNode& child = nodes_[own.first_child + static_cast<std::int32_t>(c)];
            child.parent = static_cast<std::int32_t>(&own - &nodes_[0]);
            child.depth = own.depth + 1;
            child.begin = starts_[c];
            child.end = starts_[c + 1];
            child.leaf = child.n_points() == own.n_points()
                             ? own.leaf
                             : points_.log_evidence(points + child.begin, points + child.end, stat_.data());
        }
    }

    const Points<Family>& points_;
    const SamplerOptions& options_;
    NodeArena nodes_;
    std::vector<Point> order_, draft_, aside_;  // points by node; the same of a proposal; scratch space
    double power_ = 1.0, log_prior_ratio_ = 0.0;
    ChainRandom* random_ = nullptr;
    Lookahead<Family>* ahead_ = nullptr;
    const std::vector<Split>* list_ = nullptr;
    std::size_t n_listed_ = 0;
    Region region_;
    Candidates candidates_;
    std::vector<double> stat_;
    std::vector<std::int64_t> starts_, places_;
    std::vector<CodeSet> sets_;
    std::vector<std::vector<CodeSet>> sets_by_depth_;  // of the nodes that are being made
    mutable std::vector<std::int32_t> path_;
};

}  // namespace everytree::sampling
