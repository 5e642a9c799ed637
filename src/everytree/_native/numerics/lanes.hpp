// Two doubles that are computed with at once, on every processor to the same bits.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>

namespace everytree::numerics {

#if defined(__GNUC__) || defined(__clang__)

using Lanes = double __attribute__((vector_size(16)));
using BitLanes = std::uint64_t __attribute__((vector_size(16)));

inline BitLanes bits_of(Lanes a) { return (BitLanes)a; }
inline Lanes doubles_of(BitLanes a) { return (Lanes)a; }
// The first, or the second, of both.
inline Lanes firsts(Lanes a, Lanes b) { return Lanes{a[0], b[0]}; }
inline Lanes seconds(Lanes a, Lanes b) { return Lanes{a[1], b[1]}; }

#else

// The same for compilers that have no vectors.
template <class T>
struct PlainLanes {
    T of[2];
    T operator[](int i) const { return of[i]; }
    friend PlainLanes operator+(PlainLanes a, PlainLanes b) { return {a.of[0] + b.of[0], a.of[1] + b.of[1]}; }
    friend PlainLanes operator-(PlainLanes a, PlainLanes b) { return {a.of[0] - b.of[0], a.of[1] - b.of[1]}; }
    friend PlainLanes operator*(PlainLanes a, PlainLanes b) { return {a.of[0] * b.of[0], a.of[1] * b.of[1]}; }
    friend PlainLanes operator&(PlainLanes a, PlainLanes b) { return {a.of[0] & b.of[0], a.of[1] & b.of[1]}; }
    friend PlainLanes operator|(PlainLanes a, PlainLanes b) { return {a.of[0] | b.of[0], a.of[1] | b.of[1]}; }
    friend PlainLanes operator^(PlainLanes a, PlainLanes b) { return {a.of[0] ^ b.of[0], a.of[1] ^ b.of[1]}; }
    PlainLanes& operator+=(PlainLanes b) { return *this = *this + b; }
    PlainLanes& operator-=(PlainLanes b) { return *this = *this - b; }
};
using Lanes = PlainLanes<double>;
using BitLanes = PlainLanes<std::uint64_t>;

inline BitLanes bits_of(Lanes a) { return std::bit_cast<BitLanes>(a); }
inline Lanes doubles_of(BitLanes a) { return std::bit_cast<Lanes>(a); }
inline Lanes firsts(Lanes a, Lanes b) { return {a[0], b[0]}; }
inline Lanes seconds(Lanes a, Lanes b) { return {a[1], b[1]}; }

#endif

inline Lanes both(double a) { return Lanes{a, a}; }
inline BitLanes both_bits(std::uint64_t a) { return BitLanes{a, a}; }
inline double sum_of(Lanes a) { return a[0] + a[1]; }
inline Lanes load_lanes(const double* from) {
    Lanes a;
    std::memcpy(&a, from, sizeof a);
    return a;
}

}  // namespace everytree::numerics
