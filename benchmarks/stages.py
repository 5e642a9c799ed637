"""Processor time of the stages of a fit, by a hook on function calls: the library does not know that it is measured."""

from __future__ import annotations

import sys
import threading
from collections import defaultdict
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from time import thread_time
from types import FrameType
from typing import Any

STAGES: dict[str, list[tuple[str, str]]] = {
    "encode": [("fitting.structures.structure", "fit_schema"), ("fitting.coding", "code_first_rows")],
    "grow": [("structure.growers", "grow"), ("structure.given_forest", "grow_as_given")],
    "count": [
        ("fitting.structures.growing", "_with_statistics"), ("fitting.structures.grown", "_counted"),
        ("fitting.structures.grown", "_posteriors"),
    ],
    "choose": [
        ("fitting.held_out.held_out", "held_out"), ("fitting.held_out.held_out", "held_out_by_few"),
        ("fitting.held_out.search", "choose"),
    ],
    "weights": [
        ("fitting.held_out.tempering", "tempered_weights"), ("fitting.held_out.stacking", "stacking_weights"),
    ],
    "boosting": [("boosting.chains", "boost")],
    "refit": [("boosting.chains", "again")],
    "residuals": [("fitting.structures.boost", "fit_residuals")],
}  # fmt: skip
"""Functions in which each stage begins and ends, by their modules."""

WHOLE = "residuals"
"""A stage with stages of its own, which count as it."""

REST = "rest"


def _stage_of_code() -> dict[tuple[str, str], str]:
    """Stages by file and name of their functions; a function that is gone is an error."""
    found = {}
    for stage, functions in STAGES.items():
        for module, name in functions:
            spec = find_spec(f"everytree.{module}")
            assert spec is not None, f"there is no module {module}"
            assert spec.origin is not None, f"{module} has no file"
            assert f"def {name}(" in Path(spec.origin).read_text(encoding="utf-8"), f"{module} has no {name}"
            found[spec.origin, name] = stage
    return found


class _Clock:
    """Processor time of each stage, in all threads; a thread that is in no stage works for that of the first one."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._stage_of = _stage_of_code()
        self._first: list[str] = []  # stages that the first thread is in
        self._own = threading.local()

    def begin(self) -> None:
        self._own.stack, self._own.last = self._first, thread_time()

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        del argument
        if event not in ("call", "return"):
            return
        stage = self._stage_of.get((frame.f_code.co_filename, frame.f_code.co_name))
        if not hasattr(self._own, "stack"):
            self._own.stack, self._own.last = [], thread_time()
        if stage is None and self._own.stack is self._first:
            return
        now = thread_time()
        stack: list[str] = self._own.stack
        current = stack[-1] if stack else (self._first[-1] if self._first else REST)
        self.seconds[current] += now - self._own.last
        self._own.last = now
        if stage is None:
            return
        if event == "return":
            stack.pop()
        else:
            stack.append(WHOLE if current == WHOLE else stage)

    def end(self) -> None:
        self.seconds[REST] += thread_time() - self._own.last


def seconds_by_stage(work: Callable[[], object]) -> dict[str, float]:
    """Processor seconds of each stage of fits in `work`, and of the rest."""
    clock = _Clock()
    clock.begin()
    threading.setprofile(clock)
    sys.setprofile(clock)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    clock.end()
    return {stage: clock.seconds[stage] for stage in (*STAGES, REST)}
