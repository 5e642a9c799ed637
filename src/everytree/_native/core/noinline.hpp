// For rare code beside frequent code: kept out of the caller, which then keeps its registers.
#pragma once

#if defined(_MSC_VER)
#define EVERYTREE_NOINLINE __declspec(noinline)
#else
#define EVERYTREE_NOINLINE __attribute__((noinline))
#endif
