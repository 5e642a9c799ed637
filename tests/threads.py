"""Several threads or processes at once, with an end to waiting."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

PATIENCE = 30.0  # seconds until a thread that has not come back counts as stuck


def together(*jobs: Callable[[], Any]) -> None:
    """All jobs at once, each in a thread of its own; the first failure among them is raised here."""
    failures: list[BaseException] = []
    start = threading.Barrier(len(jobs))

    def run(job: Callable[[], Any]) -> None:
        try:
            start.wait(PATIENCE)
            job()
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(job,), daemon=True) for job in jobs]
    deadline = time.monotonic() + PATIENCE
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    assert not any(thread.is_alive() for thread in threads), "some threads wait for ever"
    if failures:
        raise failures[0]


def in_fork(job: Callable[[], bytes]) -> bytes:
    """What the job returns in a forked child."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(read_end)
            with os.fdopen(write_end, "wb") as pipe:
                pipe.write(job())
            status = 0
        finally:
            os._exit(status)
    os.close(write_end)
    deadline = time.monotonic() + PATIENCE
    with os.fdopen(read_end, "rb") as pipe:
        os.set_blocking(read_end, False)
        answer = b""
        while time.monotonic() < deadline:
            piece = pipe.read()
            if piece == b"":
                break
            answer += piece or b""
            if piece is None:
                time.sleep(0.005)
        else:
            os.kill(child, 9)
    _, status = os.waitpid(child, 0)
    assert status == 0, f"the child ended with status {status}"
    return answer


ignore_fork_warning = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
