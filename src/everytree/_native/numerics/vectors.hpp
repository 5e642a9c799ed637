// A few operations on vectors of whole numbers, on every processor to the same bits.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>

namespace everytree::numerics {

#if defined(__GNUC__) || defined(__clang__)

template <class T, int lanes>
using Vector __attribute__((vector_size(lanes * sizeof(T)))) = T;

// By reference: vectors that not every processor has are no arguments.
template <class T, int lanes>
void keep_least(Vector<T, lanes>& least, const Vector<T, lanes>& a) {
    least = a < least ? a : least;
}
template <class T, int lanes>
void keep_most(Vector<T, lanes>& most, const Vector<T, lanes>& a) {
    most = a > most ? a : most;
}
// In the lanes where a is at most b, counts one more and adds q to the sum.
template <class T, int lanes>
void add_where_at_most(const Vector<T, lanes>& a, const Vector<T, lanes>& b, std::int32_t q, Vector<T, lanes>& count,
                       Vector<std::int32_t, lanes>& sum) {
    const auto is_so = a <= b;  // -1 where it is so, else 0
    count -= (Vector<T, lanes>)is_so;
    sum += __builtin_convertvector(is_so, Vector<std::int32_t, lanes>) & q;
}
// The same where q is 0 or 1, and sums are as small as counts.
template <class T, int lanes>
void count_where_at_most(const Vector<T, lanes>& a, const Vector<T, lanes>& b, std::int32_t q, Vector<T, lanes>& count,
                         Vector<T, lanes>& sum) {
    const auto is_so = (Vector<T, lanes>)(a <= b);
    count -= is_so;
    sum += is_so & static_cast<T>(q);
}

#else

// The same for compilers that have no vectors.
template <class T, int lanes>
struct Vector {
    T of[lanes];
    T operator[](int k) const { return of[k]; }
};

template <class T, int lanes>
void keep_least(Vector<T, lanes>& least, const Vector<T, lanes>& a) {
    for (int k = 0; k < lanes; ++k) least.of[k] = std::min(least.of[k], a.of[k]);
}
template <class T, int lanes>
void keep_most(Vector<T, lanes>& most, const Vector<T, lanes>& a) {
    for (int k = 0; k < lanes; ++k) most.of[k] = std::max(most.of[k], a.of[k]);
}
template <class T, int lanes>
void add_where_at_most(const Vector<T, lanes>& a, const Vector<T, lanes>& b, std::int32_t q, Vector<T, lanes>& count,
                       Vector<std::int32_t, lanes>& sum) {
    for (int k = 0; k < lanes; ++k) {
        count.of[k] = static_cast<T>(count.of[k] + (a.of[k] <= b.of[k]));
        sum.of[k] += a.of[k] <= b.of[k] ? q : 0;
    }
}
template <class T, int lanes>
void count_where_at_most(const Vector<T, lanes>& a, const Vector<T, lanes>& b, std::int32_t q, Vector<T, lanes>& count,
                         Vector<T, lanes>& sum) {
    for (int k = 0; k < lanes; ++k) {
        count.of[k] = static_cast<T>(count.of[k] + (a.of[k] <= b.of[k]));
        sum.of[k] = static_cast<T>(sum.of[k] + (a.of[k] <= b.of[k] ? q : 0));
    }
}

#endif

template <class T, int lanes>
void load(const T* from, Vector<T, lanes>& a) {
    std::memcpy(&a, from, sizeof a);
}

}  // namespace everytree::numerics
