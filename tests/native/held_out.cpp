// Rows that are left out against a second count of the others.
#include "held_out/held_out.hpp"

#include "check.hpp"
#include "trees.hpp"

namespace native_tests {
namespace {

constexpr int n_rows = 24;
const std::vector<double> split_probs = {0.0, 0.1, 0.35, 0.5, 0.8, 0.97};

// Rows of a random tree, in groups of one to three neighbours.
template <class Family>
struct Case {
    RandomTree tree;
    everytree::TreeShape shape;
    std::vector<double> y, weight;
    std::vector<std::int32_t> at;
    std::vector<std::uint8_t> counted, scored;
    std::vector<std::int64_t> start{0};

    Case(Random& random, bool plain_weights) : tree(random, 6, true), shape(tree.arrays(), n_columns) {
        for (std::int64_t i = 0; i < n_rows; ++i) {
            int row[n_columns];
            tree.draw_row(random, row);
            at.push_back(tree.terminal_of(row));
            y.push_back(std::is_same_v<Family, everytree::Categorical> ? random.below(3)
                                                                       : 4.0 * random.uniform() - 1.0);
            weight.push_back(plain_weights || random.below(2) ? 1.0 : 0.25 + 2.0 * random.uniform());
            counted.push_back(random.below(5) > 0);
            scored.push_back(random.below(5) > 0);
            if (i + 1 == n_rows || random.below(2)) start.push_back(i + 1);
        }
    }
    everytree::RowView rows() const { return {y.data(), weight.data(), nullptr, 0}; }

    // (n_nodes, size) of all counted rows but those of one group; of a negative group, of all.
    std::vector<double> statistics(const Family& family, std::int64_t group) const {
        const auto size = static_cast<std::size_t>(family.layout.size());
        std::vector<double> all(tree.size() * size, 0.0);
        for (std::int64_t i = 0; i < n_rows; ++i) {
            const bool is_out = group >= 0 && i >= start[static_cast<std::size_t>(group)] &&
                                i < start[static_cast<std::size_t>(group) + 1];
            if (is_out || !counted[static_cast<std::size_t>(i)]) continue;
            for (std::int32_t s = at[static_cast<std::size_t>(i)]; s >= 0;
                 s = shape.parent()[static_cast<std::size_t>(s)])
                family.add(all.data() + static_cast<std::size_t>(s) * size, rows()[i]);
        }
        return all;
    }
};

// p(y of a row | statistics of a node): the ratio of evidences with and without it.
template <class Family>
double density(const Family& family, const double* prior, const double* stat, double y) {
    std::vector<double> more(stat, stat + family.layout.size());
    family.add(more.data(), {y, 1.0, nullptr});
    return std::exp(family.log_evidence(more.data(), prior) - family.log_evidence(stat, prior));
}

// The same of the mixture over the nodes on the row's path.
template <class Family>
double mixed_density(const Case<Family>& one, const Family& family, const double* prior, std::int64_t group,
                     double split_prob, std::int32_t end, double y) {
    const std::vector<double> all = one.statistics(family, group);
    const auto stat = [&](std::size_t s) { return all.data() + s * static_cast<std::size_t>(family.layout.size()); };
    std::vector<double> leaf;
    for (std::size_t s = 0; s < one.tree.size(); ++s) leaf.push_back(family.log_evidence(stat(s), prior));
    const Swept swept(one.shape.view(), leaf, std::vector<double>(leaf.size(), split_prob));
    double below = 0.0;
    for (std::int32_t s = end; s >= 0; s = one.shape.parent()[static_cast<std::size_t>(s)]) {
        const auto node = static_cast<std::size_t>(s);
        const double split = one.tree.is_terminal(node) ? 0.0 : swept.split_prob[node];
        below = split * below + (1.0 - split) * density(family, prior, stat(node), y);
    }
    return below;
}

template <class Family>
void check_held_out(Random& random, const Family& family, const std::vector<double>& hyper, bool plain_weights) {
    using HeldOut = everytree::held_out::HeldOut<Family>;
    const Case<Family> one(random, plain_weights);
    std::vector<double> prior(static_cast<std::size_t>(family.n_prior));
    family.prepare(hyper.data(), prior.data());
    const everytree::held_out::HeldOutRows held{one.rows(),
                                                one.at.data(),
                                                n_rows,
                                                one.counted.data(),
                                                one.scored.data(),
                                                one.start.data(),
                                                static_cast<std::int64_t>(one.start.size()) - 1};
    const everytree::held_out::HeldOutPaths paths(one.shape.view(), held, HeldOut::n_classes(family));
    std::vector<double> log_split, log_stop;
    for (const double g : split_probs) {
        log_split.push_back(std::log(g));
        log_stop.push_back(std::log1p(-g));
    }
    const auto n_values = static_cast<std::size_t>(HeldOut::n_values(family));
    std::vector<double> found(split_probs.size() * static_cast<std::size_t>(held.n_scored()) * n_values);
    const std::vector<double> all = one.statistics(family, -1);
    HeldOut kernel(family, one.shape.view(), all.data());
    kernel.use(prior.data());
    kernel.predict(held, paths, {log_split.data(), log_stop.data(), static_cast<std::int64_t>(log_split.size()), 1},
                   found.data());
    const double* next = found.data();
    for (const double g : split_probs)
        for (std::int64_t group = 0; group < held.n_groups; ++group)
            for (std::int64_t i = held.start[group]; i < held.start[group + 1]; ++i) {
                if (!held.scored[i]) continue;
                for (std::size_t c = 0; c < n_values; ++c, ++next) {
                    const double y =
                        HeldOut::writes_classes ? static_cast<double>(c) : one.y[static_cast<std::size_t>(i)];
                    const double expected = mixed_density(one, family, prior.data(), group, g, held.at[i], y);
                    CHECK(is_near(HeldOut::writes_classes ? *next : std::exp(*next), expected, 1e-9));
                }
            }
}

}  // namespace

void test_held_out() {
    Random random(3);
    for (int i = 0; i < 12; ++i) {
        check_held_out(random, everytree::Categorical(3), {0.5, 1.0, 2.0}, i % 2 == 0);
        check_held_out(random, everytree::Normal(), {0.3, 0.5, 1.5, 0.8}, i % 2 == 0);
    }
}

}  // namespace native_tests
