// The evidence of the nodes of an online forest, kept in the nodes themselves.
//
// The kernel is a template over this and over `SplitGains`. Both follow all changes of the trees, give results once
// they are up to date, and rank the pairs of sibling leaves by what these add to the log evidence of their cell.
#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/sweep.hpp"
#include "numerics/compiler.hpp"
#include "online/heap.hpp"
#include "online/nodes.hpp"

namespace everytree::online {

template <class Leaves>
class NodeEvidence {
  public:
    NodeEvidence(const OnlinePool& pool, Leaves& leaves, LeastUseful& useless)
        : pool_(pool), leaves_(leaves), useless_(useless) {}

    void attach() {
        useless_.clear(pool_.arrays().capacity);
        for (std::int64_t s = 0; s < pool_.count(slots_used); ++s) rank(static_cast<std::int32_t>(s));
    }

    // All evidence must be derived again when it is next needed, and is not updated until then.
    void prior_changed() { is_settled_ = false; }
    void settle() {
        if (!is_settled_) derive_all();
    }
    void settle_ranks() { settle(); }
    EVERYTREE_NOINLINE void derive_all() {  // rare: kept apart from the work on every row
        pool_.each_node([this](std::int32_t s) { evaluate(s); });
        is_settled_ = true;
    }

    // From the root down.
    void row_added(const std::vector<std::int32_t>& path) {
        if (!is_settled_) return;
        for (auto s = path.rbegin(); s != path.rend(); ++s) evaluate(*s);
    }
    void odds_changed(std::int32_t s) {
        if (is_settled_) evaluate(s);
    }
    // The node holds all rows of the two leaves it had: evidence is updated above it.
    void forgotten(std::int32_t s) {
        pool_.node(s).subtree = pool_.node(s).leaf;
        for (std::int32_t up = pool_.node(s).parent; up >= 0; up = pool_.node(up).parent) weigh_fates(up);
    }
    void evaluate(std::int32_t s) {
        OnlineNode& at = pool_.node(s);
        at.leaf = at.subtree = leaves_.log_evidence(s);
        if (!pool_.is_leaf(s)) weigh_fates(s);
    }

    // Log odds that an inner node is a leaf rather than split.
    double odds(std::int32_t s) const {
        const OnlineNode& at = pool_.node(s);
        return std::exp(at.log_stop + at.leaf - at.log_split - children(s));
    }
    double log_evidence(std::int32_t s) const { return pool_.node(s).subtree; }
    void statistics_replaced() const {}  // along with nodes that have their evidence
    void write_to_nodes() const {}       // they have it already

  private:
    double children(std::int32_t s) const {
        return pool_.node(pool_.node(s).left).subtree + pool_.node(pool_.node(s).right).subtree;
    }
    void weigh_fates(std::int32_t s) {
        OnlineNode& at = pool_.node(s);
        at.subtree = weigh(at.log_stop + at.leaf, at.log_split + children(s)).subtree_log_evidence;
        rank(s);
    }
    void rank(std::int32_t s) {
        if (pool_.is_pair(s)) useless_.set(s, pool_.node(s).subtree - pool_.node(s).leaf);
    }

    const OnlinePool& pool_;
    Leaves& leaves_;
    LeastUseful& useless_;
    bool is_settled_ = true;  // whether all evidence is that of the present prior
};

}  // namespace everytree::online
