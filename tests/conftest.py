"""What holds for every test: no window opens, no figure stays open, and what only POSIX has is left out elsewhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

os.environ["MPLBACKEND"] = "agg"  # before anything imports matplotlib, and for the processes that tests start


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips tests that need what Windows does not have."""
    if sys.platform == "win32" and item.get_closest_marker("posix") is not None:
        pytest.skip("needs the permissions, links, signals, locks or pipes of POSIX")


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    """Closes what a test has drawn, so that the next one finds none."""
    yield
    if (pyplot := sys.modules.get("matplotlib.pyplot")) is not None:
        pyplot.close("all")
