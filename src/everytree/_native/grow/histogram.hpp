// Sums of cells for each code of one column. Only codes that some rows have cost anything.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "grow/criteria.hpp"

namespace everytree::grow {

template <class Code, class Criterion>
class Histogram {
  public:
    using Cell = typename Criterion::Cell;

    Histogram(int n_cells, int most_codes)
        : n_cells_(static_cast<std::size_t>(n_cells)),
          cells_((static_cast<std::size_t>(most_codes) + 1) * n_cells_),
          is_seen_((static_cast<std::size_t>(most_codes) / together + 1) * together) {}

    // Missing codes are counted under `n_codes`.
    void fill(const Criterion& criterion, const Code* column, int n_codes,
              std::span<const SampledRow<Criterion>> rows) {
        const auto missing = static_cast<Code>(n_codes);
        // Own copies of what does not change: the compiler cannot know that the bytes written are not among it.
        Cell* const cells = cells_.data();
        std::uint8_t* const is_seen = is_seen_.data();
        const auto n_cells = Criterion::fixed_cells ? static_cast<std::size_t>(Criterion::fixed_cells) : n_cells_;
        const Criterion own = criterion;
        const auto code_of = [&](const SampledRow<Criterion>& each) {
            return static_cast<std::size_t>(std::min(column[each.row], missing));
        };
        if (rows.size() < static_cast<std::size_t>(n_codes)) {
            for (const auto& each : rows) {
                const std::size_t code = code_of(each);
                own.add(cells + code * n_cells, each.target);
                is_seen[code] = 1;
            }
            return;
        }
        // Of many rows, it is faster to find out afterwards.
        for (const auto& each : rows) own.add(cells + code_of(each) * n_cells, each.target);
        for (std::size_t code = 0; code <= static_cast<std::size_t>(n_codes); ++code)
            is_seen[code] = own.n_rows(cells + code * n_cells) > 0;
    }

    // Calls visit(code, cells) for each code below `n_codes` that was seen, in ascending order, and forgets it.
    template <class Visit>
    void drain(int n_codes, Visit visit) {
        std::uint8_t* const is_seen = is_seen_.data();
        const auto end = static_cast<std::size_t>(n_codes);
        for (std::size_t block = 0; block < end; block += together) {
            // Bits instead of branches: which codes small nodes have cannot be foreseen.
            std::uint64_t seen = 0;
            for (std::size_t k = 0; k < together; k += 8) seen |= flags(is_seen + block + k) << k;
            if (end - block < together) seen &= (std::uint64_t{1} << (end - block)) - 1;
            for (; seen != 0; seen &= seen - 1) {
                const std::size_t code = block + static_cast<std::size_t>(std::countr_zero(seen));
                is_seen[code] = 0;
                forget(code, visit);
            }
        }
    }
    // The same for one code. Returns whether it was seen.
    template <class Visit>
    bool drain_one(std::size_t code, Visit visit) {
        if (!is_seen_[code]) return false;
        is_seen_[code] = 0;
        forget(code, visit);
        return true;
    }

  private:
    static constexpr std::size_t together = 64;

    // Eight bytes, each 0 or 1, as eight bits.
    static std::uint64_t flags(const std::uint8_t* bytes) {
        if constexpr (std::endian::native == std::endian::little) {
            std::uint64_t word;
            std::memcpy(&word, bytes, sizeof word);
            return (word * 0x0102040810204080ULL) >> 56;
        }
        std::uint64_t bits = 0;
        for (int k = 0; k < 8; ++k) bits |= std::uint64_t{bytes[k]} << k;
        return bits;
    }
    template <class Visit>
    void forget(std::size_t code, Visit visit) {
        const auto n_cells = Criterion::fixed_cells ? static_cast<std::size_t>(Criterion::fixed_cells) : n_cells_;
        Cell* const mine = cells_.data() + code * n_cells;
        visit(static_cast<int>(code), static_cast<const Cell*>(mine));
        for (std::size_t k = 0; k < n_cells; ++k) mine[k] = Cell{};
    }

    std::size_t n_cells_;
    std::vector<Cell> cells_;
    std::vector<std::uint8_t> is_seen_;
};

}  // namespace everytree::grow
