"""A progress bar for long work: it moves on a terminal; elsewhere one line is written at the end."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import Self


class Progress:
    """Count the steps of a piece of work and show the progress.

    Parameters
    ----------
    what : str
        Name of the work.
    n_steps : int or None
        None where it is not known: the steps are then counted without a bar.
    show : bool
        Whether to write anything at all.
    unit : str
        Name of the steps, to show how many are done per second; empty to leave that out.

    Notes
    -----
    Steps may come from several threads. Written to standard error, at most ten times a second.
    """

    def __init__(self, what: str, n_steps: int | None, show: bool, unit: str = "") -> None:
        self._what, self._show, self._unit = what, show, unit
        self._n_steps = None if n_steps is None else max(n_steps, 1)
        self._done, self._start, self._last = 0, time.perf_counter(), 0.0
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._show:
            self._write(time.perf_counter() - self._start, end="\n")

    def step(self, n_steps: int = 1) -> None:
        """Count this many more steps as done."""
        with self._lock:
            self._show_at(self._done + n_steps)

    def at(self, done: int, n_steps: int) -> None:
        """Set how many steps are done, and how many there are."""
        with self._lock:
            self._n_steps = max(n_steps, done, 1)
            self._show_at(done)

    def _show_at(self, done: int) -> None:
        self._done = done
        elapsed = time.perf_counter() - self._start
        if self._show and sys.stderr.isatty() and elapsed - self._last > 0.1:
            self._last = elapsed
            self._write(elapsed, end="")

    def _write(self, elapsed: float, end: str) -> None:
        start = "\r" if sys.stderr.isatty() else ""
        parts = [self._what, self._how_far(), f"{elapsed:.1f} s{self._left(elapsed)}"]
        if self._unit:
            parts.append(f"({self._done / max(elapsed, 1e-9):,.0f} {self._unit} a second)")
        sys.stderr.write(f"{start}{' '.join(parts)}   {end}")
        sys.stderr.flush()

    def _how_far(self) -> str:
        if self._n_steps is None:
            return f"{self._done:,} {self._unit}".rstrip()
        filled = 30 * min(self._done, self._n_steps) // self._n_steps
        return "█" * filled + "░" * (30 - filled) + f" {self._done}/{self._n_steps}"

    def _left(self, elapsed: float) -> str:
        if self._n_steps is None or not self._done:
            return ""
        remaining = elapsed / self._done * (self._n_steps - self._done)
        return f", {remaining:.0f} s left" if remaining >= 1.0 else ""
