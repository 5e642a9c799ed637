// The shape of a meta-tree, as other bindings use it.
#pragma once
#include <memory>

#include "bind/buffers.hpp"
#include "bind/common.hpp"
#include "core/codes.hpp"
#include "core/sweep.hpp"
#include "core/tree_shape.hpp"

namespace everytree::bind {

// Borrows the five arrays of a MetaTree and keeps them alive.
struct Tree {
    using Nodes = Input<std::int32_t>;

    Nodes feature, first_child, n_children, threshold, missing_child;
    TreeShape shape;
    TreeView view;
    Width width;
    CodeChecks checks;

    Tree(Nodes feature_, Nodes first_child_, Nodes n_children_, Nodes threshold_, Nodes missing_child_,
         std::int64_t n_features, bool exact_width)
        : feature(feature_),
          first_child(first_child_),
          n_children(n_children_),
          threshold(threshold_),
          missing_child(missing_child_),
          shape(arrays(), n_features),
          view(shape.view()),
          width{n_features, exact_width},
          checks(shape.limits()) {}

  private:
    TreeArrays arrays() const {
        const std::size_t n = feature.size();
        for (const Nodes* each : {&first_child, &n_children, &threshold, &missing_child})
            if (each->size() != n) throw std::invalid_argument("the arrays of a tree must have one entry a node");
        return {feature.data(),   first_child.data(),   n_children.data(),
                threshold.data(), missing_child.data(), static_cast<std::int64_t>(n)};
    }
};

// One number for all nodes, or one for each.
inline SplitPrior split_prior_of(std::int64_t n_nodes, const Input<double>& log_split, const Input<double>& log_stop) {
    const auto n = static_cast<std::int64_t>(log_split.size());
    if ((n != 1 && n != n_nodes) || log_stop.size() != log_split.size())
        throw std::invalid_argument("split priors must be one for all nodes or one for each");
    const std::ptrdiff_t stride = n == 1 ? 0 : 1;
    return {{log_split.data(), stride}, {log_stop.data(), stride}};
}

}  // namespace everytree::bind
