"""Locks on files that end with the process that holds them, however it ends."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


def lock_or_skip(number: int) -> bool:
    """Lock an open file until it is closed; False where another has it, or where the system has no such locks."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@contextmanager
def alone_with(path: str | os.PathLike[str], waiting: Callable[[], object] = lambda: None) -> Iterator[None]:
    """No other process is in here with the same file: for reading it and writing it anew.

    The lock is that of the file itself, so nothing has to be cleaned up, and a process that is killed lets go. Whoever
    replaces the file replaces what others wait for; they find that out and lock the new one. Where the system or the
    disk has no such locks there is none.

    Parameters
    ----------
    path : path-like
        A file that exists.
    waiting : callable
        Called once if another process is in here.
    """
    number = _locked(path, waiting)
    try:
        yield
    finally:
        os.close(number)


def _locked(path: str | os.PathLike[str], waiting: Callable[[], object]) -> int:
    """The file at this path, open and locked."""
    has_said = False
    while True:
        number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        try:
            if not lock_or_skip(number) and fcntl is not None:
                if not has_said:
                    waiting()
                    has_said = True
                _wait_for(number)
            if os.path.samestat(os.fstat(number), os.stat(path)):
                return number
        except BaseException:
            os.close(number)
            raise
        os.close(number)


def _wait_for(number: int) -> None:
    with suppress(OSError):  # a disk without locks
        fcntl.flock(number, fcntl.LOCK_EX)
