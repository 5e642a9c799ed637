"""Threads that get in each other's way more often than they would by themselves."""

from __future__ import annotations

import faulthandler
import sys
from collections.abc import Iterator

import pytest

from threads import PATIENCE


@pytest.fixture
def busy_threads() -> Iterator[None]:
    """Ends a run that hangs where no Python can, and lets threads take turns a thousand times as often."""
    faulthandler.dump_traceback_later(4 * PATIENCE, exit=True, file=sys.__stderr__)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(interval)
    faulthandler.cancel_dump_traceback_later()
