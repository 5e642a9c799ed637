// How a tree is grown, and what one split is.
#pragma once
#include <cstdint>
#include <limits>

namespace everytree::grow {

enum class Splitter : std::uint8_t {
    best,    // of all thresholds of a column, the best one
    random,  // one threshold, drawn evenly between the smallest and the largest code of the node
};

struct GrowRule {
    Splitter splitter = Splitter::best;
    int max_features = 1;  // columns a node looks at; more where they all have one code
    std::int64_t min_samples_leaf = 1;
    int max_depth = 0;                                           // 0: as deep as it goes
    std::int64_t max_leaf_nodes = 0;                             // above 0: the split that wins most comes next
    double min_gain = -std::numeric_limits<double>::infinity();  // splits that do not win more are not made
};

// Codes up to the threshold go left; missing ones, where the column has any, to the side that is said.
struct Split {
    int feature = -1;
    int threshold = 0;
    bool missing_left = false;
    double score = 0.0;

    bool is_found() const { return feature >= 0; }
};

}  // namespace everytree::grow
