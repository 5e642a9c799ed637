// What compilers spell differently.
#pragma once

// For rare code beside frequent code: kept out of the caller, which then keeps its registers.
#if defined(_MSC_VER)
#define EVERYTREE_NOINLINE __declspec(noinline)
#else
#define EVERYTREE_NOINLINE __attribute__((noinline))
#endif

// Asks for memory that is read a little later, where the compiler knows how.
#if defined(__GNUC__) || defined(__clang__)
#define EVERYTREE_PREFETCH(address) __builtin_prefetch(address)
#else
#define EVERYTREE_PREFETCH(address) static_cast<void>(address)
#endif
