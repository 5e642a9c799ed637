// Evidence for many new classes without decay: only the gain of each node's splits over the node as a leaf.
//
// With q the evidence of a node's subtree and L that of its rows in one leaf, the gain log(q / L) is that of
//   q / L = (1 - g) + g (L_left L_right / L) (q_left / L_left) (q_right / L_right).
// In L_left L_right / L all classes cancel that the two children do not share, and the concentration is the same for
// any number of classes. So a new class changes the gain only of nodes whose children have a class in common. All
// others stay the same to the last bit, and the evidence of a leaf is never needed to predict.
#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/sweep.hpp"
#include "online/classes.hpp"
#include "online/heap.hpp"
#include "online/nodes.hpp"

namespace everytree::online {

class SplitGains {
  public:
    SplitGains(const OnlinePool& pool, ClassLists& leaves, LeastUseful& useless)
        : pool_(pool), leaves_(leaves), useless_(useless) {}

    void attach() {
        gains_.resize(static_cast<std::size_t>(pool_.arrays().capacity));
        useless_.resize(pool_.arrays().capacity);
    }
    // Only the gains of the pairs are known then.
    void statistics_replaced() {
        gains_.assign(gains_.size(), {});
        useless_.clear(pool_.arrays().capacity);
        for (std::int64_t s = 0; s < pool_.count(slots_used); ++s)
            if (pool_.is_pair(static_cast<std::int32_t>(s))) evaluate(static_cast<std::int32_t>(s));
    }

    void prior_changed() {}  // nodes store how many classes there were when they were evaluated
    void settle() {
        for (std::int64_t tree = 0; tree < pool_.arrays().n_trees; ++tree)
            if (pool_.root(tree) >= 0) settle_below(pool_.root(tree));
    }
    // The gains of the pairs, and nothing above them.
    void settle_ranks() {
        if (ranked_for_ == leaves_.n_classes()) return;
        waiting_.clear();
        for (const std::int32_t s : useless_.nodes())
            if (!is_current(s)) waiting_.push_back(s);
        for (const std::int32_t s : waiting_) evaluate(s);
        ranked_for_ = leaves_.n_classes();
    }
    void derive_all() {
        pool_.each_node([this](std::int32_t s) { evaluate(s); });
    }

    void row_added(const std::vector<std::int32_t>& path) {
        for (const std::int32_t s : path) gains_[s] = {};
        if (path.size() > 1) evaluate_pair(path[path.size() - 2]);
    }
    void odds_changed(std::int32_t s) {
        gains_[s] = {};
        evaluate_pair(s);
    }
    void forgotten(std::int32_t s) {
        for (std::int32_t up = s; up >= 0; up = pool_.node(up).parent) gains_[up] = {};
        if (pool_.node(s).parent >= 0) evaluate_pair(pool_.node(s).parent);
    }
    void evaluate(std::int32_t s) {
        if (pool_.is_leaf(s)) return;
        const OnlineNode& at = pool_.node(s);
        const Gain &left = gains_[at.left], &right = gains_[at.right];
        const ClassLists::Parting parting = leaves_.part(at.left, at.right);
        Gain& mine = gains_[s];
        mine.of_children = parting.log_ratio + left.gain + right.gain;
        mine.gain = weigh(at.log_stop, at.log_split + mine.of_children).subtree_log_evidence;
        mine.depends_on_prior = parting.share_classes || left.depends_on_prior || right.depends_on_prior;
        mine.n_classes = leaves_.n_classes();
        if (pool_.is_pair(s)) useless_.set(s, mine.gain);
    }

    double odds(std::int32_t s) const {
        return std::exp(pool_.node(s).log_stop - pool_.node(s).log_split - gains_[s].of_children);
    }
    double log_evidence(std::int32_t s) { return leaves_.log_evidence(s) + gains_[s].gain; }
    void write_to_nodes() {
        pool_.each_node([this](std::int32_t s) {
            pool_.node(s).leaf = leaves_.log_evidence(s);
            pool_.node(s).subtree = pool_.node(s).leaf + gains_[s].gain;
        });
    }

  private:
    // The initial state of a leaf, and of a node that is to be evaluated.
    struct Gain {
        double of_children = 0.0, gain = 0.0;
        int n_classes = 0;  // when it was evaluated
        bool depends_on_prior = false;
    };

    // A node that is not current makes all nodes above it not current.
    bool is_current(std::int32_t s) const {
        const Gain& mine = gains_[s];
        if (mine.n_classes == 0) return pool_.is_leaf(s);
        return !mine.depends_on_prior || mine.n_classes == leaves_.n_classes();
    }
    void settle_below(std::int32_t root) {
        waiting_.assign(1, root);
        while (!waiting_.empty()) {
            const std::int32_t s = waiting_.back();
            if (is_current(s)) {
                waiting_.pop_back();
                continue;
            }
            const std::size_t before = waiting_.size();
            for (const std::int32_t child : {pool_.node(s).left, pool_.node(s).right})
                if (!is_current(child)) waiting_.push_back(child);
            if (waiting_.size() == before) evaluate(s);
        }
    }
    void evaluate_pair(std::int32_t s) {
        if (pool_.is_pair(s)) evaluate(s);
    }

    const OnlinePool& pool_;
    ClassLists& leaves_;
    LeastUseful& useless_;
    std::vector<Gain> gains_;
    std::vector<std::int32_t> waiting_;
    int ranked_for_ = 0;  // number of classes for which all pairs are ranked
};

}  // namespace everytree::online
