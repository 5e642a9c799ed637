"""Survival curves of rows by trees that were not grown on them, and what is chosen by these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree import _kernels
from everytree.base.arrays import FloatArray
from everytree.base.checks import is_auto, positive_number
from everytree.families.survival import Survival
from everytree.fitting.held_out.held_out import HeldOut
from everytree.fitting.held_out.search import Choice
from everytree.survival.baseline import Baseline
from everytree.survival.curves import PER_CELL, Sharpening, curves_at, log_log
from everytree.survival.rows import TimesOfRows
from everytree.survival.scores import brier_scores, horizon

SHAPES = (2.0, 8.0, 32.0)
SPLIT_PRIORS = (0.05, 0.5, 0.95)
POWERS = (1.0, 1.25, 1.5, 2.0)
FIRST_SPLIT_PRIOR = 0.95


@dataclass(frozen=True)
class JudgedTrees:
    """Trees that share a baseline, with the rows that each was not grown on."""

    baseline: Baseline
    family: Survival
    held: HeldOut
    log_hazard: FloatArray  # (n_rows,): of all rows, without themselves
    change: FloatArray  # (n_scored, n_knots): of the baseline hazard, by which each scored row is left out of it

    def at(self, at_points: FloatArray, times: FloatArray, some: NDArray[np.int64]) -> FloatArray:
        """(n_some, n_times) curves of some scored rows at knots, from those at points of the cells."""
        curves = curves_at(self.baseline, at_points, times)
        return np.asarray(curves ** self.change[some][:, np.searchsorted(self.baseline.times, times)])

    def curves(self, shape: float, split_prior: Any, per_cell: int, n_jobs: int) -> tuple[FloatArray, FloatArray]:
        """(n_scored, n_points) sums of curves over the trees that may predict a row, and how many these are."""
        held, family = self.held, replace(self.family, shape=shape)
        total, count = np.zeros((held.n_scored, family.size * per_cell)), np.zeros(held.n_scored)
        assert held.numbers is not None, "rows of a table have numbers"
        for tree, of_tree in enumerate(held.rows):
            if len(of_tree) == 0:
                continue
            found = held.components(tree, family, split_prior)
            total[of_tree] += _kernels.survival_curves(
                size=family.size, per_cell=per_cell, parameters=found.parameters, start=found.start,
                nodes=np.arange(len(found.log_weights)), log_weights=found.log_weights,
                log_hazard=self.log_hazard[held.numbers[of_tree]], n_jobs=n_jobs,
            )  # fmt: skip
            count[of_tree] += 1.0
        return total, count


@dataclass(frozen=True)
class HeldOutCurves:
    """Mean curves of held-out rows."""

    numbers: NDArray[np.int64]  # (n_known,): which rows of the table
    curves: FloatArray  # (n_known, n_times): before they are sharpened


def held_out_curves(
    judged: Sequence[JudgedTrees],
    shape: float,
    split_prior: Any,
    times: FloatArray,
    n_jobs: int,
    per_cell: int = PER_CELL,
) -> HeldOutCurves:
    """The equal mean over groups of trees, of the rows that trees of every group may predict."""
    each = [one.curves(shape, split_prior, per_cell, n_jobs) for one in judged]
    known = np.flatnonzero(np.all([count > 0.0 for _, count in each], axis=0))
    mean = sum(
        one.at(total[known] / count[known, None], times, known)
        for one, (total, count) in zip(judged, each, strict=True)
    ) / len(judged)  # fmt: skip
    numbers = judged[0].held.numbers
    assert numbers is not None, "rows of a table have numbers"
    return HeldOutCurves(numbers[known], np.asarray(mean))


def choose_curves(
    judged: Sequence[JudgedTrees],
    times: TimesOfRows,
    given: Mapping[str, Any],
    split_prior: Any,
    *,
    sharpen: bool,
    n_jobs: int,
) -> tuple[Choice, Sharpening, HeldOutCurves]:
    """The priors and the sharpening with the best Brier score of held-out rows; and the curves of these."""
    knots = judged[0].baseline.times
    grid = _judging_times(knots, times)
    unknown = sorted(set(given) - {"shape"})
    if unknown:
        raise ValueError(f"prior has {unknown}, but the parameters of this family are ['shape']")
    shapes: Sequence[float] = SHAPES
    if "shape" in given and not is_auto(given["shape"]):
        positive_number("shape", given["shape"], " or 'auto'")
        shapes = (float(given["shape"]),)
    splits: Sequence[Any] = SPLIT_PRIORS if is_auto(split_prior) else (split_prior,)
    powers = POWERS if sharpen else (1.0,)
    tried: list[tuple[float, float, Any, float]] = []

    def attempt(shape: float, split: Any) -> None:
        found = held_out_curves(judged, shape, split, grid, n_jobs, per_cell=1)
        rows = times.at(found.numbers)
        if len(found.numbers) == 0 or not rows.is_event.any():
            tried.append((np.inf, shape, split, 1.0))
            return
        centre = log_log(found.curves).mean(axis=0)
        for power in powers:
            scores = brier_scores(Sharpening(power, centre).of(found.curves), grid, rows, times)
            tried.append((float(np.average(scores, weights=rows.weight)), shape, split, power))

    first = FIRST_SPLIT_PRIOR if is_auto(split_prior) else split_prior
    for shape in shapes:
        attempt(shape, first)
    best = min(tried, key=lambda one: one[0])[1]
    for split in splits:
        if split is not first:
            attempt(best, split)
    score, shape, split, power = min(tried, key=lambda one: one[0])
    found = held_out_curves(judged, shape, split, knots, n_jobs)
    if len(found.numbers):
        centre = log_log(found.curves).mean(axis=0)
    else:
        power, centre = 1.0, np.zeros(len(knots))
    family = replace(judged[0].family, shape=shape)
    parameters = {"split_prior": split, "shape": shape}
    return (
        Choice(family, split, parameters, -score if np.isfinite(score) else np.nan, power),
        Sharpening(power, centre),
        found,
    )


def _judging_times(knots: FloatArray, times: TimesOfRows) -> FloatArray:
    """Some times up to the horizon of scores."""
    some = knots[knots <= horizon(times)]
    some = some if len(some) > 1 else knots
    return np.asarray(some[np.unique(np.linspace(0, len(some) - 1, 30).astype(int))])
