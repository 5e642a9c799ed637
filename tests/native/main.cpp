// The kernels against their plain meaning, without Python.
#include "check.hpp"

int main() {
    native_tests::test_arithmetic();
    native_tests::test_route();
    native_tests::test_sweep();
    native_tests::test_held_out();
    std::printf("%d checks, %d failed\n", native_tests::n_checks, native_tests::n_failed);
    return native_tests::n_failed == 0 ? 0 : 1;
}
