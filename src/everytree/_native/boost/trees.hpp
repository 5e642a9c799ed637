// Trees as a chain collects them: the arrays of all of them, one tree after another.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "grow/tree.hpp"

namespace everytree::boost {

struct Trees {
    std::vector<std::int32_t> n_nodes, feature, first_child, n_children, threshold, missing_child;
    std::vector<double> value;  // (n_nodes, n_values) the learning rate included
    std::vector<double> gain;   // expected gain in log evidence by the split of each node
    std::vector<double> mass;   // weight of the rows of the table in each node, whatever they are there for
    std::size_t n_values = 1;   // of each node

    std::size_t size() const { return n_nodes.size(); }
    void append(const grow::GrownTree& tree, const std::vector<double>& values, const std::vector<double>& gains,
                const std::vector<double>& masses) {
        const auto add = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
        n_nodes.push_back(static_cast<std::int32_t>(tree.feature.size()));
        add(feature, tree.feature);
        add(first_child, tree.first_child);
        add(n_children, tree.n_children);
        add(threshold, tree.threshold);
        add(missing_child, tree.missing_child);
        add(value, values);
        add(gain, gains);
        add(mass, masses);
    }
    // Removes the trees after the first `n_trees`.
    void cut(std::size_t n_trees) {
        n_nodes.resize(n_trees);
        std::size_t n = 0;
        for (const std::int32_t each : n_nodes) n += static_cast<std::size_t>(each);
        for (auto* each : {&feature, &first_child, &n_children, &threshold, &missing_child}) each->resize(n);
        value.resize(n * n_values);
        gain.resize(n);
        mass.resize(n);
    }
};

}  // namespace everytree::boost
