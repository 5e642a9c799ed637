// Asks for memory that is read a little later, where the compiler knows how.
#pragma once

#if defined(__GNUC__) || defined(__clang__)
#define EVERYTREE_PREFETCH(address) __builtin_prefetch(address)
#else
#define EVERYTREE_PREFETCH(address) static_cast<void>(address)
#endif
