// The random numbers of one chain: a word of state, so that a chain can be stored and continued.
#pragma once
#include <cstdint>

#include "core/scramble.hpp"

namespace everytree::sampling {

class ChainRandom {
  public:
    explicit ChainRandom(std::uint64_t state) : state_(state) {}
    std::uint64_t state() const { return state_; }

    std::uint64_t word() { return scramble(state_ += 0x9e3779b97f4a7c15ULL); }
    // In (0, 1): neither bound is drawn, so that logs are finite.
    double uniform() { return (static_cast<double>(word() >> 11) + 0.5) * 0x1p-53; }
    // One of 0 .. n - 1.
    std::int64_t below(std::int64_t n) {
        const auto drawn = static_cast<std::int64_t>(uniform() * static_cast<double>(n));
        return drawn < n ? drawn : n - 1;
    }
    // A generator whose numbers have nothing to do with those of this one, which stays as it is.
    ChainRandom aside() const { return ChainRandom(scramble(state_ ^ 0xd1b54a32d192ed03ULL)); }

  private:
    std::uint64_t state_;
};

}  // namespace everytree::sampling
