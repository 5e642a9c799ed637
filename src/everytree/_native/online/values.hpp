// Values of features in an online forest: doubles, also for texts.
#pragma once
#include <cstdint>
#include <string_view>

#include "core/scramble.hpp"

namespace everytree::online {

inline constexpr double largest_feature = 1e150;  // so that differences and their sums stay finite

// A text as a number in [0, 1): the same in every process, unlike Python's own hash.
inline double category_code(std::string_view text) {
    std::uint64_t word = text.size();
    for (const char letter : text) word = scramble(word ^ static_cast<unsigned char>(letter));
    return static_cast<double>(word >> 11) * 0x1p-53;
}

}  // namespace everytree::online
