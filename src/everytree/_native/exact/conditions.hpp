// Conditions of a region: which codes a column may still have.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "core/scramble.hpp"
#include "core/tree.hpp"
#include "exact/key_index.hpp"

namespace everytree::exact {

// The codes a column may still have: an interval lo | hi << 32 for ordered columns, a set of bits for categories.
using CodeSet = std::uint64_t;
inline CodeSet interval(std::uint64_t lo, std::uint64_t hi) { return lo | hi << 32; }
inline int lowest_of(CodeSet set) { return static_cast<int>(set & 0xffffffffu); }
inline int highest_of(CodeSet set) { return static_cast<int>(set >> 32); }

// A special value: the code of a row is unknown. It is never a condition otherwise.
inline constexpr CodeSet unknown_codes = ~CodeSet{0};

struct Condition {
    std::int32_t column;
    CodeSet codes;
};

// A set of conditions is identified by the sum of their keys: their order does not matter.
inline Key key_of(const Condition& condition) {
    const std::uint64_t mixed =
        scramble(condition.codes + 0x9e3779b97f4a7c15ull * (static_cast<std::uint64_t>(condition.column) + 1));
    return {mixed, scramble(mixed ^ 0xd1b54a32d192ed03ull)};
}
inline Key key_of(const Condition* begin, const Condition* end) {
    Key key;
    for (const Condition* c = begin; c != end; ++c) key = key + key_of(*c);
    return key;
}

// Appends a region's conditions, sorted by column, with one more that replaces the condition on its column.
inline void append_with(const Condition* begin, const Condition* end, const Condition& more,
                        std::vector<Condition>& to) {
    const Condition* c = begin;
    for (; c != end && c->column < more.column; ++c) to.push_back(*c);
    to.push_back(more);
    if (c != end && c->column == more.column) ++c;
    to.insert(to.end(), c, end);
}

// Kinds of columns by number, checked.
inline std::vector<ColumnKind> kinds_of(const std::vector<int>& kinds, const std::vector<int>& n_codes) {
    if (kinds.size() != n_codes.size()) throw std::invalid_argument("one kind a column");
    std::vector<ColumnKind> out;
    for (std::size_t k = 0; k < kinds.size(); ++k) {
        if (kinds[k] < 0 || kinds[k] > 2 || n_codes[k] < 1 || (kinds[k] != 0 && n_codes[k] > 64))
            throw std::invalid_argument("no such kind of column");
        out.push_back(static_cast<ColumnKind>(kinds[k]));
    }
    return out;
}

}  // namespace everytree::exact
