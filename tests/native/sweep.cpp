// Theorem 1 against the sum over every pruning.
#include "core/sweep.hpp"

#include <limits>

#include "boost/leaf_values.hpp"
#include "check.hpp"
#include "trees.hpp"

namespace native_tests {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Prior probabilities of splits, 0 and 1 among them, and evidences that may lie far beyond the range of exp.
struct Case {
    RandomTree tree;
    everytree::TreeShape shape;
    std::vector<double> split_prior, leaf;

    explicit Case(Random& random, double size) : tree(random, 5, false), shape(tree.arrays(), n_columns) {
        for (std::size_t s = 0; s < tree.size(); ++s) {
            const int kind = random.below(6);
            split_prior.push_back(kind == 0 ? 0.0 : kind == 1 ? 1.0 : random.uniform());
            leaf.push_back(size * (random.uniform() - 0.5));
        }
    }
};

// The share of the prunings with `node` in the tree in which it is split.
double split_share(const std::vector<Pruning>& all, std::size_t node) {
    double split = 0.0, stop = 0.0;
    const double total = log_evidence(all);
    for (const Pruning& each : all) {
        const double share = std::exp(each.log_weight - total);
        for (const std::size_t s : each.inner) split += s == node ? share : 0.0;
        for (const std::size_t s : each.leaves) stop += s == node ? share : 0.0;
    }
    return split + stop > 1e-12 ? split / (split + stop) : -1.0;
}

void check_sweep(Random& random, double size) {
    const Case one(random, size);
    const std::vector<Pruning> all = prunings(one.tree, 0, one.leaf, one.split_prior);
    const Swept swept(one.shape.view(), one.leaf, one.split_prior);
    CHECK(is_near(swept.subtree[0], log_evidence(all), 1e-12));
    for (std::size_t s = 0; s < one.tree.size(); ++s) {
        const double share = split_share(all, s);
        if (share >= 0.0 && !one.tree.is_terminal(s)) CHECK(is_near(swept.split_prob[s], share, 1e-9));
    }
}

// The touched nodes: each once, children before parents, all ancestors among them.
void check_touched(Random& random) {
    const Case one(random, 1.0);
    const everytree::TreeView view = one.shape.view();
    everytree::TouchedNodes touched(view.n_nodes);
    std::vector<bool> expected(one.tree.size(), false);
    for (int i = 0; i < 3; ++i) {
        const auto s = static_cast<std::int32_t>(random.below(static_cast<int>(one.tree.size())));
        touched.touch(s);
        for (std::int32_t up = s; up >= 0; up = view.parent[up]) expected[static_cast<std::size_t>(up)] = true;
    }
    touched.close_upward(view);
    std::vector<bool> seen(one.tree.size(), false);
    for (const std::int32_t s : touched.nodes()) {
        CHECK(!seen[static_cast<std::size_t>(s)]);
        CHECK(view.parent[s] < 0 || !seen[static_cast<std::size_t>(view.parent[s])]);
        seen[static_cast<std::size_t>(s)] = true;
    }
    CHECK(seen == expected);
}

void check_infinities() {
    using everytree::weigh;
    CHECK(weigh(-infinity, -infinity).subtree_log_evidence == -infinity);
    CHECK(weigh(infinity, infinity).subtree_log_evidence == infinity);
    CHECK(weigh(-infinity, 3.0).subtree_log_evidence == 3.0 && weigh(-infinity, 3.0).split_prob == 1.0);
    CHECK(weigh(3.0, -infinity).subtree_log_evidence == 3.0 && weigh(3.0, -infinity).split_prob == 0.0);
    CHECK(weigh(3.0, infinity).subtree_log_evidence == infinity && weigh(3.0, infinity).split_prob == 1.0);
    for (const double difference : {0.0, 1e-3, 5.0, -40.0, 700.0}) {
        const everytree::Fate fate = weigh(difference, 0.0);
        const everytree::LogFates logs = everytree::log_fates(difference, 0.0);
        CHECK(is_near(fate.split_prob, std::exp(logs.split), 1e-15));
        CHECK(is_near(std::exp(logs.split) + std::exp(logs.stop), 1.0, 1e-15));
    }
}

// Leaf values of boosting are averages over the same prunings, with the evidence of Newton's statistics.
void check_leaf_values(Random& random) {
    const RandomTree tree(random, 5, false);
    const everytree::boost::LeafPrior prior{0.5 + random.uniform(), 0.2 + 0.7 * random.uniform(), 1.5};
    everytree::grow::GrownTree grown{tree.feature, tree.first_child, tree.n_children, tree.threshold, {}, {}};
    everytree::boost::NodeSums sums;
    sums.clear(tree.size());
    for (std::size_t s = 0; s < tree.size(); ++s) {
        if (!tree.is_terminal(s)) continue;
        sums.first[s] = 8.0 * (random.uniform() - 0.5);
        sums.second[s] = 5.0 * random.uniform();
    }
    const std::vector<double> value =
        everytree::boost::leaf_values(grown, sums, prior).value;  // sums are all nodes' now
    std::vector<double> leaf(tree.size()), mean(tree.size());
    for (std::size_t s = 0; s < tree.size(); ++s) {
        const double precision = prior.tau + sums.second[s];
        mean[s] = -sums.first[s] / precision;
        leaf[s] = 0.5 * std::log(prior.tau / precision) + 0.5 * mean[s] * mean[s] * precision / prior.dispersion;
    }
    const everytree::TreeShape shape(tree.arrays(), n_columns);
    const std::vector<Pruning> all = prunings(tree, 0, leaf, std::vector<double>(tree.size(), prior.split_prior));
    const double total = log_evidence(all);
    for (std::size_t end = 0; end < tree.size(); ++end) {
        if (!tree.is_terminal(end)) continue;
        std::vector<bool> is_on_path(tree.size(), false);
        for (auto s = static_cast<std::int32_t>(end); s >= 0; s = shape.parent()[static_cast<std::size_t>(s)])
            is_on_path[static_cast<std::size_t>(s)] = true;
        double expected = 0.0;
        for (const Pruning& each : all)
            for (const std::size_t s : each.leaves)
                if (is_on_path[s]) expected += std::exp(each.log_weight - total) * mean[s];
        CHECK(is_near(value[end], expected, 1e-12));
    }
}

}  // namespace

void test_sweep() {
    Random random(1);
    for (int i = 0; i < 200; ++i) check_sweep(random, i % 2 == 0 ? 4.0 : 1e5);
    for (int i = 0; i < 50; ++i) check_touched(random);
    for (int i = 0; i < 50; ++i) check_leaf_values(random);
    check_infinities();
}

}  // namespace native_tests
