"""Every package has tests: at least half a line for each line of its source."""

from __future__ import annotations

import pytest

from lines_of_tests import PACKAGES, docstring_lines, native_lines, package_of_kernel, python_lines, ratios, table


def test_no_package_has_less_than_half_a_line_of_tests_per_line():
    assert {name: round(ratio, 2) for name, ratio in ratios().items() if ratio < 0.5} == {}


def test_the_table_has_every_package():
    rows = table().splitlines()[2:]
    assert sorted(row.split(" | ")[0].removeprefix("| ") for row in rows) == PACKAGES


def test_lines_with_code_are_counted():
    first = '"""About."""\n\n# why\nx = (\n    1,\n    2,\n)  # all\n\n\n'
    text = first + 'def f():\n    """One."""\n    return """a\n\nb"""\n'
    assert python_lines(text) == 4 + 1 + 3
    assert docstring_lines(text) == {1, 11}
    assert native_lines("// a\n\nint x;  // b\n  // c\n}\n") == 2


@pytest.mark.parametrize(
    ("path", "package"),
    [("sampling/moves.hpp", "sampling"), ("bind/boost.cpp", "boosting"), ("core/posterior.hpp", "posterior")],
)
def test_kernels_belong_to_the_package_that_calls_them(path, package):
    assert package_of_kernel(path) == package
    with pytest.raises(LookupError, match="does not know"):
        package_of_kernel(f"elsewhere/{path}")
