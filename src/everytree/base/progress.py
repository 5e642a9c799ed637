"""A progress bar for long work: it moves on a terminal and leaves nothing; elsewhere one line is written at the end."""

from __future__ import annotations

import os
import sys
import threading
import time
from types import TracebackType
from typing import Self

BAR_WIDTHS = (30, 20, 10, 5)
"""Columns of a bar: the widest that fits in the line."""

UNKNOWN_WIDTH = 80
"""Columns of a terminal that does not tell."""


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
    Steps may come from several threads. Written to standard error, at most ten times a second. On a terminal, the line
    is never wider than the terminal, and it is empty again when the work ends.
    """

    def __init__(self, what: str, n_steps: int | None, show: bool, unit: str = "") -> None:
        self._what, self._show, self._unit = what, show, unit
        self._n_steps = None if n_steps is None else max(n_steps, 1)
        self._done, self._start, self._last = 0, time.perf_counter(), 0.0
        self._lock = threading.Lock()
        self._n_written = 0

    def __enter__(self) -> Self:
        if self._show and sys.stderr.isatty():
            self._write_over(self._line(0.0, _width()))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if not self._show:
            return
        if sys.stderr.isatty():
            self._write_over("")
        else:
            sys.stderr.write(self._line(time.perf_counter() - self._start, None) + "\n")
            sys.stderr.flush()

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
            self._write_over(self._line(elapsed, _width()))

    def _write_over(self, line: str) -> None:
        """Replace what this bar has written on its line of the terminal."""
        padding = " " * (self._n_written - len(line))
        sys.stderr.write(f"\r{line}{padding}" + ("" if line else "\r"))
        sys.stderr.flush()
        self._n_written = len(line)

    def _line(self, elapsed: float, width: int | None) -> str:
        """Return the most that can be said in so many columns; None for any number."""
        lines = self._lines(elapsed)
        return lines[0] if width is None else next((line for line in lines if len(line) <= width), lines[-1][:width])

    def _lines(self, elapsed: float) -> list[str]:
        """Return what can be said, the longest first."""
        count, seconds = self._count(), f"{elapsed:.1f} s"
        time_left = seconds + self._left(elapsed)
        rate = f"({self._done / max(elapsed, 1e-9):,.0f} {self._unit} a second)" if self._unit else ""
        bars = [""] if self._n_steps is None else [self._bar(width) for width in BAR_WIDTHS]
        choices = [(bars[0], count, time_left, rate), *((bar, count, time_left) for bar in (*bars, ""))]
        choices += [(count, seconds), (count,), ()]
        return [" ".join(filter(None, (self._what, *parts))) for parts in choices]

    def _count(self) -> str:
        return f"{self._done:,} {self._unit}".rstrip() if self._n_steps is None else f"{self._done}/{self._n_steps}"

    def _bar(self, width: int) -> str:
        assert self._n_steps is not None
        filled = width * min(self._done, self._n_steps) // self._n_steps
        return "█" * filled + "░" * (width - filled)

    def _left(self, elapsed: float) -> str:
        if self._n_steps is None or not self._done:
            return ""
        remaining = elapsed / self._done * (self._n_steps - self._done)
        return f", {remaining:.0f} s left" if remaining >= 1.0 else ""


def _width() -> int:
    """Columns of the terminal but the last one, after which some go on in the next line."""
    try:
        width = os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError):
        width = 0
    return (width or UNKNOWN_WIDTH) - 1
