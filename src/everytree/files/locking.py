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
    """Lock an open file until it is closed; return False if another process has it, or if there are no such locks."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@contextmanager
def alone_with(path: str | os.PathLike[str], waiting: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Keep other processes out while a file is read and written again.

    The lock is on the file itself, so nothing has to be cleaned up, and it ends with the process. If the file is
    replaced meanwhile, waiting processes notice that and lock the new one. Where the system or the disk has no such
    locks, there is no lock.

    `path`: a file that exists. `waiting`: called once if another process holds the lock.
    """
    number = _locked(path, waiting)
    try:
        yield
    finally:
        os.close(number)


def _locked(path: str | os.PathLike[str], waiting: Callable[[], object]) -> int:
    """Return the descriptor of the file at this path, open and locked."""
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
