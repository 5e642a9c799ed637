// Words that look random, the same ones on every machine: for the hashes of regions and of paths.
#pragma once
#include <cstdint>

namespace everytree {

inline std::uint64_t scramble(std::uint64_t x) {  // a bijection of 64-bit words that looks random (splitmix64)
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

}  // namespace everytree
