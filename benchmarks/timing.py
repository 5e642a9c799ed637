"""Stopwatches: a fresh state for every repetition, made off the clock."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

State = TypeVar("State")
Setup = Callable[[], Callable[[], object]]
"""Makes a fresh state off the clock and returns the run to be timed."""


def started(make: Callable[[], State], work: Callable[[State], object]) -> Setup:
    """Time `work` on a state that `make` builds anew, off the clock, for each repetition."""

    def setup() -> Callable[[], object]:
        state = make()
        return lambda: work(state)

    return setup


def one_run(setup: Setup) -> float:
    """Milliseconds of one repetition."""
    run = setup()
    start = perf_counter()
    run()
    return 1e3 * (perf_counter() - start)


def in_turn(setups: Mapping[str, Setup], repeats: int) -> dict[str, NDArray[Any]]:
    """Milliseconds of each repetition, the competitors taking turns, after one run each that does not count."""
    return _measured([[setups] * repeats], setups)


def in_blocks(setups: Mapping[str, Setup], repeats: int) -> dict[str, NDArray[Any]]:
    """The same, all repetitions of one competitor before those of the next.

    For runs of microseconds: taking turns with one of milliseconds, each would find its caches cold.
    """
    return _measured([[{name: setup}] * repeats for name, setup in setups.items()], setups)


def _measured(blocks: list[list[Mapping[str, Setup]]], setups: Mapping[str, Setup]) -> dict[str, NDArray[Any]]:
    spent: dict[str, list[float]] = {name: [] for name in setups}
    gc.collect()
    gc.disable()
    for block in blocks:
        for setup in block[0].values():
            one_run(setup)
        for turn in block:
            for name, setup in turn.items():
                spent[name].append(one_run(setup))
    gc.enable()
    return {name: np.array(each) for name, each in spent.items()}


def medians(setups: Mapping[str, Setup], repeats: int) -> dict[str, float]:
    """Median milliseconds of each competitor, in turn."""
    return {name: float(np.median(each)) for name, each in in_turn(setups, repeats).items()}
