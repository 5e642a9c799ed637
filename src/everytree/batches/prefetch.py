"""The next batch is read while the last one is worked on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

END = object()


def read_ahead(start: Callable[[], Iterator[Any]]) -> Iterator[Any]:
    """Read the next item of `start()` in a thread, one at a time; an error is raised here, in order."""
    pool = ThreadPoolExecutor(1, "everytree-read-ahead")
    try:
        items = pool.submit(start).result()
        ahead = pool.submit(next, items, END)
        while (item := ahead.result()) is not END:
            ahead = pool.submit(next, items, END)
            yield item
            del item  # the batch is the caller's alone: memory holds no more of them than it must
    finally:
        pool.shutdown(wait=False)  # a source that waits for something itself is left to itself
