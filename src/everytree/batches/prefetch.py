"""The next batch is read while the last one is worked on."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any

AHEAD = 2
"""How many batches wait at most; with the one being worked on and the one being read, what memory holds."""


def read_ahead(start: Callable[[], Iterator[Any]], ahead: int = AHEAD) -> Iterator[Any]:
    """Read the items of `start()` ahead in a thread; an error is raised here, in order."""
    waiting: queue.Queue[tuple[str, Any]] = queue.Queue(maxsize=ahead)
    stop = threading.Event()

    def hand_over(kind: str, what: Any) -> bool:
        while not stop.is_set():
            try:
                waiting.put((kind, what), timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def run() -> None:
        try:
            for batch in start():
                if not hand_over("batch", batch):
                    return
            hand_over("end", None)
        except BaseException as failure:
            hand_over("failure", failure)

    thread = threading.Thread(target=run, name="everytree-read-ahead", daemon=True)
    thread.start()
    try:
        while True:
            kind, what = waiting.get()
            if kind == "end":
                return
            if kind == "failure":
                raise what
            yield what
            what = None  # the batch is the caller's alone: memory holds no more of them than it must
    finally:
        stop.set()
        thread.join(1.0)  # a source that waits for something itself is left to itself
