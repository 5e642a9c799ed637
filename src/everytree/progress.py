"""A progress bar for long work: on a terminal it moves, elsewhere it says nothing but when the work is done."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import Self


class Progress:
    """Counts steps of a piece of work and shows how far it is.

    Parameters
    ----------
    what : str
        Name of the work.
    n_steps : int
    show : bool
        Whether to write anything at all.

    Notes
    -----
    Steps may come from several threads. Written to standard error, at most ten times a second.
    """

    def __init__(self, what: str, n_steps: int, show: bool) -> None:
        self._what, self._n_steps, self._show = what, max(n_steps, 1), show
        self._done, self._start, self._last = 0, time.perf_counter(), 0.0
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._show:
            self._write(time.perf_counter() - self._start, end="\n")

    def step(self) -> None:
        """One more step is done."""
        self.at(self._done + 1)

    def at(self, done: int, n_steps: int | None = None) -> None:
        """So many steps are done; their number may turn out to be another one."""
        with self._lock:
            self._done, self._n_steps = done, max(n_steps or self._n_steps, done, 1)
            elapsed = time.perf_counter() - self._start
            if self._show and sys.stderr.isatty() and elapsed - self._last > 0.1:
                self._last = elapsed
                self._write(elapsed, end="")

    def _write(self, elapsed: float, end: str) -> None:
        filled = 30 * min(self._done, self._n_steps) // self._n_steps
        remaining = elapsed / self._done * (self._n_steps - self._done) if self._done else 0.0
        left = f", {remaining:.0f} s left" if remaining >= 1.0 else ""
        bar = "█" * filled + "░" * (30 - filled)
        start = "\r" if sys.stderr.isatty() else ""
        sys.stderr.write(f"{start}{self._what} {bar} {self._done}/{self._n_steps} {elapsed:.1f} s{left}   {end}")
        sys.stderr.flush()
