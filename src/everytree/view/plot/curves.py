"""Survival curves as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from everytree.base.arrays import FloatArray
from everytree.base.checks import probabilities
from everytree.base.errors import ArgumentError
from everytree.predictive.curves import CurvePredictive
from everytree.survival.rows import times_of_rows
from everytree.survival.scores import kaplan_meier
from everytree.view.plot.axes import new_axes

MOST_ROWS = 12


def plot_survival(
    dist: CurvePredictive,
    *,
    labels: Sequence[Any] | None = None,
    time: ArrayLike | None = None,
    event: ArrayLike | None = None,
    coverage: float = 0.9,
    ax: Any = None,
) -> Any:
    """Draw the survival curves of some rows, and beside them the Kaplan-Meier curve of a table.

    Parameters
    ----------
    dist : CurvePredictive
        Of at most twelve rows: `model.predictive(rows)` of an estimator with `family="survival"`.
    labels : sequence, optional
        A name for each row; by default its number.
    time : (n_table_rows,) array_like, optional
        Times of the rows of a table.
    event : (n_table_rows,) array_like of bool, optional
        Which of them saw the event; all by default.
    coverage : float
        Probability of the band about the table's curve, at each time.
    ax : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.axes.Axes
    """
    if not isinstance(dist, CurvePredictive):
        raise TypeError(
            f"dist must be survival curves, as predictive() of family='survival', not {type(dist).__name__}"
        )
    if not 0 < len(dist) <= MOST_ROWS:
        raise ArgumentError("dist", f"has {len(dist)} rows, but at least 1 and at most {MOST_ROWS} can be told apart")
    names = [f"row {k}" for k in range(len(dist))] if labels is None else [str(label) for label in labels]
    if len(names) != len(dist):
        raise ArgumentError("labels", f"has {len(names)} entries, but there are {len(dist)} rows")
    share = float(probabilities("coverage", coverage))
    axes = new_axes(ax, (6.4, 4.0))
    grid = np.append(0.0, dist.times)
    for name, curve in zip(names, dist.sf(grid[:, None]).T, strict=True):
        axes.plot(grid, curve, label=name)
    if time is not None:
        times = np.asarray(time, dtype=np.float64)
        censored = np.zeros(len(times)) if event is None else 1.0 - np.asarray(event, dtype=np.float64)
        at, curve = kaplan_meier(times_of_rows(times, None, {"censored": censored}))
        low, high = _band(times, censored, at, curve, share)
        steps = {"where": "post", "color": "0.3"}
        axes.step(np.append(0.0, at), np.append(1.0, curve), linestyle="--", label="Kaplan-Meier of the table", **steps)
        axes.fill_between(at, low, high, step="post", color="0.3", alpha=0.12, linewidth=0.0)
    axes.set_ylim(0.0, 1.02)
    axes.set_xlim(0.0, float(dist.times[-1]))
    axes.set_xlabel("time")
    axes.set_ylabel("probability to be without event")
    axes.legend(frameon=False)
    return axes


def _band(
    times: FloatArray, censored: FloatArray, at: FloatArray, curve: FloatArray, coverage: float
) -> tuple[FloatArray, FloatArray]:
    """Greenwood's variance, on the scale of log(-log S)."""
    at_risk = (times[None, :] >= at[:, None]).sum(axis=1)
    events = ((times[None, :] == at[:, None]) & (censored == 0.0)).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.cumsum(np.where(at_risk > events, events / (at_risk * (at_risk - events)), 0.0))
        spread = ndtri(0.5 + 0.5 * coverage) * np.sqrt(variance) / np.abs(np.log(curve))
        low, high = (np.where((curve > 0.0) & (curve < 1.0), curve ** np.exp(sign * spread), curve) for sign in (1, -1))
    return np.asarray(low), np.asarray(high)
