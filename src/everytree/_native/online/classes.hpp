// Which classes the rows of each node have, where there are many classes: most nodes have few of them.
#pragma once
#include <bit>
#include <cstdint>
#include <vector>

namespace everytree {

// A bit for each node and class. Follows from the statistics, so it is not stored; a class whose rows have decayed to
// nothing may keep its bit.
class SeenClasses {
  public:
    static constexpr std::int64_t worth_it = 32;  // classes from which on a look at all of them costs more

    bool is_kept() const { return n_words_ > 0; }

    // From the statistics of the nodes in use, `stride` numbers a node.
    void build(const double* statistics, std::int64_t n_used, std::int64_t capacity, std::int64_t n_classes,
               std::int64_t stride) {
        n_words_ = n_classes < worth_it ? 0 : (stride + 63) / 64;
        words_.assign(static_cast<std::size_t>(capacity * n_words_), 0);
        if (!is_kept()) return;
        for (std::int64_t s = 0; s < n_used; ++s)
            for (std::int64_t c = 0; c < n_classes; ++c)
                if (statistics[s * stride + c] != 0.0) add(static_cast<std::int32_t>(s), c);
    }
    void add(std::int32_t s, std::int64_t c) { of(s)[c / 64] |= std::uint64_t{1} << (c % 64); }
    void clear(std::int32_t s) {
        for (std::int64_t w = 0; w < n_words_; ++w) of(s)[w] = 0;
    }
    void copy(std::int32_t from, std::int32_t to) {
        for (std::int64_t w = 0; w < n_words_; ++w) of(to)[w] = of(from)[w];
    }
    template <class Use>
    void each(std::int32_t s, Use use) const {
        const std::uint64_t* words = words_.data() + s * n_words_;
        for (std::int64_t w = 0; w < n_words_; ++w)
            for (std::uint64_t left = words[w]; left != 0; left &= left - 1) use(64 * w + std::countr_zero(left));
    }

  private:
    std::uint64_t* of(std::int32_t s) { return words_.data() + s * n_words_; }

    std::int64_t n_words_ = 0;
    std::vector<std::uint64_t> words_;
};

}  // namespace everytree
