"""What holds for every test: no window opens, no figure stays open, and what only POSIX has is left out elsewhere."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator

import pytest

os.environ["MPLBACKEND"] = "agg"  # before anything imports matplotlib, and for the processes that tests start

# A shell that starts the tests in the background has interrupts ignored, and tests of interrupts would wait for ever.
if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


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
