// The moves of a chain. Each of them leaves p(k | data) unchanged, at the power of its replica.
//
// A structure is a split for every region, stored or not. What a move does not mention it keeps, and it keeps a split
// only where it is stored before and after: elsewhere it is at its prior, which cancels from the acceptance. What is
// stored depends on the splits above and on the points alone.
#pragma once
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "sampling/replica.hpp"

namespace everytree::sampling {

enum class Move : std::uint8_t { change, neighbour, swap, rotation, prior, block };
inline constexpr std::size_t n_moves = 6;
inline constexpr std::size_t n_single_site = 5;  // those before `block`

struct MoveCounts {
    std::array<std::int64_t, n_moves> proposed{}, accepted{};
};

template <class Family>
class Mover {
  public:
    Mover(const Points<Family>& points, Replica<Family>& replica, Lookahead<Family>& ahead, ChainRandom& random,
          MoveCounts& counts)
        : points_(points), replica_(replica), ahead_(ahead), random_(random), counts_(counts) {}

    // One proposal of a single node. A new split for a node or a part is proposed more often than the special moves,
    // which are possible at few nodes.
    void single_site() {
        const double u = random_.uniform();
        if (u < 0.3) return count(Move::change, change());
        if (u < 0.55) return count(Move::neighbour, neighbour());
        if (u < 0.65) return count(Move::swap, swap());
        if (u < 0.75) return count(Move::rotation, rotate());
        count(Move::prior, redraw());
    }
    void block() { count(Move::block, redraw_block(replica_.walk(random_, 0.3))); }
    void whole_block() { count(Move::block, redraw_block(Replica<Family>::root)); }

  private:
    void count(Move move, bool is_accepted) {
        ++counts_.proposed[static_cast<std::size_t>(move)];
        counts_.accepted[static_cast<std::size_t>(move)] += is_accepted ? 1 : 0;
    }
    const StructureNode& node(std::int32_t at) const { return replica_.nodes()[at]; }
    std::int64_t n_inner() const { return node(Replica<Family>::root).n_inner; }

    // Decides about a plan for a node that was one of all split nodes, each as probable as the others.
    bool decide(std::int32_t at, const Plan& plan, double log_ratio) {
        const std::int32_t made = replica_.propose(at, plan, random_, &ahead_);
        if (made < 0) return false;
        const auto n_before = static_cast<double>(n_inner());
        const double n_after = n_before + static_cast<double>(node(made).n_inner - node(at).n_inner);
        log_ratio += replica_.log_prior_ratio() + std::log(n_before / n_after) +
                     replica_.log_evidence_with(at, node(made).evidence) - replica_.log_evidence();
        return settle(at, made, log_ratio);
    }
    bool settle(std::int32_t at, std::int32_t made, double log_ratio) {
        // Always one number: a ratio that is 1 but for rounding must not shift those of all later moves.
        const bool is_accepted = std::log(random_.uniform()) < log_ratio;
        if (is_accepted)
            replica_.accept(at, made);
        else
            replica_.reject(made);
        return is_accepted;
    }
    // Another split of a node; those below are kept where they are still possible.
    bool decide_split(std::int32_t at, Split split) {
        const StructureNode& old = node(at);
        if (split == old.split) return false;
        const bool is_multiway = points_.kind(split.column) == ColumnKind::multiway;
        const std::int32_t n = is_multiway ? points_.n_codes(split.column) : 2;
        Plan plan = Plan::of(split, {});
        for (std::int32_t c = 0; c < n; ++c)
            plan.children.push_back(n == old.n_children ? Plan::as(old.first_child + c) : Plan{});
        return decide(at, plan, -replica_.log_prior(old));  // the plan counts the new split, as likely as the old one
    }

    // A new split from the prior.
    bool change() {
        const std::int32_t at = replica_.any_inner(random_);
        if (at < 0) return false;
        replica_.enter_region(at);
        const auto n = static_cast<std::int64_t>(node(at).n_candidates);
        return decide_split(at, replica_.candidates_of(at).pick(points_, random_.below(n)));
    }

    // Another threshold or category of the same column.
    bool neighbour() {
        const std::int32_t at = replica_.any_inner(random_);
        if (at < 0) return false;
        Split split = node(at).split;
        const ColumnKind kind = points_.kind(split.column);
        if (kind == ColumnKind::multiway) return false;
        replica_.enter_region(at);
        const Candidates& candidates = replica_.candidates_of(at);
        const int n = candidates.n_of_column(kind, split.column);
        if (n < 2) return false;
        if (kind == ColumnKind::ordered) {
            const int distance = 1 << random_.below(4);
            split.code += random_.below(2) == 0 ? distance : -distance;
        } else {
            split.code = static_cast<std::int32_t>(random_.below(points_.n_codes(split.column)));
        }
        return candidates.has(points_, split) && decide_split(at, split);
    }

    // All children of a node have the same split: it and that of the node change places. The same parts of the points,
    // by another tree.
    bool swap() {
        const std::int32_t at = replica_.any_inner(random_);
        if (at < 0) return false;
        const StructureNode& top = node(at);
        const StructureNode& first = node(top.first_child);
        double log_ratio = -replica_.log_prior(top);
        for (std::int32_t c = 0; c < top.n_children; ++c) {
            const StructureNode& child = node(top.first_child + c);
            if (!child.is_inner() || !(child.split == first.split)) return false;
            log_ratio -= replica_.log_prior(child);
        }
        if (first.split.column == top.split.column) return false;
        Plan plan = Plan::of(first.split, {});
        for (std::int32_t j = 0; j < first.n_children; ++j) {
            plan.children.push_back(Plan::of(top.split, {}));
            for (std::int32_t c = 0; c < top.n_children; ++c)
                plan.children.back().children.push_back(Plan::as(node(top.first_child + c).first_child + j));
        }
        return decide(at, plan, log_ratio);
    }

    // Two thresholds of one column, one below the other, change places as in a search tree.
    bool rotate() {
        const std::int32_t at = replica_.any_inner(random_);
        const std::int64_t side = random_.below(2);
        if (at < 0) return false;
        const StructureNode& top = node(at);
        if (points_.kind(top.split.column) != ColumnKind::ordered) return false;
        const StructureNode& child = node(top.first_child + static_cast<std::int32_t>(side));
        if (!child.is_inner() || child.split.column != top.split.column) return false;
        const double log_ratio = -replica_.log_prior(top) - replica_.log_prior(child);
        const std::int32_t inner = child.first_child, outer = top.first_child + static_cast<std::int32_t>(1 - side);
        Plan plan =
            side == 0
                ? Plan::of(child.split, {Plan::as(inner), Plan::of(top.split, {Plan::as(inner + 1), Plan::as(outer)})})
                : Plan::of(child.split, {Plan::of(top.split, {Plan::as(outer), Plan::as(inner)}), Plan::as(inner + 1)});
        return decide(at, plan, log_ratio);
    }

    // A part drawn anew from its prior.
    bool redraw() {
        const std::int32_t at = replica_.walk(random_, 0.1);
        if (at < 0) return false;
        const std::int32_t made = replica_.propose(at, Plan{}, random_, &ahead_);
        return settle(at, made, replica_.log_evidence_with(at, node(made).evidence) - replica_.log_evidence());
    }

    // A part drawn anew, guided by sums over its next levels: see replica.hpp.
    bool redraw_block(std::int32_t at) {
        if (at < 0 || !replica_.is_site(node(at))) return false;
        const auto [a, b] = replica_.outside(at);
        replica_.enter_region(at);
        const double sum = b + replica_.log_prospect(at, ahead_);
        Plan plan;
        plan.draw = std::log(random_.uniform()) < a - numerics::log_sum(a, sum) ? Draw::prior : Draw::guided;
        const double before = numerics::log_sum(a, sum + replica_.log_density(at, false, ahead_));
        const std::int32_t made = replica_.propose(at, plan, random_, &ahead_);
        const double after = numerics::log_sum(a, sum + replica_.log_density(made, true, ahead_));
        return settle(at, made,
                      numerics::log_sum(a, b + node(made).evidence) - replica_.log_evidence() + before - after);
    }

    const Points<Family>& points_;
    Replica<Family>& replica_;
    Lookahead<Family>& ahead_;
    ChainRandom& random_;
    MoveCounts& counts_;
};

}  // namespace everytree::sampling
