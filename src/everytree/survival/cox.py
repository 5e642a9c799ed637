"""Proportional hazards: coefficients by Newton's method, with a ridge."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray

MAX_STEPS = 30
LARGEST = 30.0


def cox_coefficients(
    design: FloatArray,
    time: FloatArray,
    is_event: NDArray[np.bool_],
    entry: FloatArray | None,
    weight: FloatArray,
    ridge: FloatArray,
    start: FloatArray | None = None,
) -> FloatArray:
    """(n_columns,) coefficients with the largest partial likelihood less `ridge / 2` times their squares.

    Ties are Breslow's.
    """
    order = np.argsort(-time, kind="stable")
    z, t, w = design[order], time[order], weight[order]
    d = w * is_event[order]
    # Rows with the same time are at risk together: sums up to the last of them.
    last = np.searchsorted(-t, -t, "right") - 1
    late = None
    if entry is not None and (entry > 0.0).any():
        late = np.argsort(-entry, kind="stable")
        n_late = np.searchsorted(-entry[late], -t, "right")  # entered at that time or later: not yet at risk
        late_in_order = np.empty(len(order), dtype=np.int64)
        late_in_order[order] = np.arange(len(order))
        late = late_in_order[late]
        entered = entry[order]
    events = np.flatnonzero(d > 0.0)
    beta: FloatArray = np.zeros(z.shape[1]) if start is None else start.copy()
    value = -np.inf
    step = np.zeros_like(beta)
    for _ in range(MAX_STEPS):
        lp = np.clip(z @ beta, -LARGEST, LARGEST)
        risk = w * np.exp(lp)
        s0 = np.cumsum(risk)[last]
        first = np.cumsum(risk[:, None] * z, axis=0)
        s1 = first[last[events]]
        if late is not None:
            gone = np.append(0.0, np.cumsum(risk[late]))
            s0 = np.asarray(s0 - gone[n_late])
            s1 = s1 - np.vstack([np.zeros(z.shape[1]), np.cumsum((risk[:, None] * z)[late], axis=0)])[n_late[events]]
        s0 = np.maximum(s0, 1e-300)
        new = float(d[events] @ (lp[events] - np.log(s0[events])) - 0.5 * ridge @ beta**2)
        if new < value - 1e-9 * abs(value):
            step *= 0.5
            beta = beta - step
            if np.abs(step).max() < 1e-8:
                break
            continue
        if new - value < 1e-7 * max(abs(new), 1.0):
            break
        value = new
        mean = s1 / s0[events, None]
        gradient = d[events] @ (z[events] - mean) - ridge * beta
        hazard = np.zeros(len(t))
        hazard[events] = d[events] / s0[events]
        # Hazard accumulated over the time that each row was at risk.
        total = np.cumsum(hazard[::-1])[::-1]
        lasts = total[np.searchsorted(-t, -t, "left")]
        if late is not None:
            before = np.append(total, 0.0)
            lasts = lasts - before[np.searchsorted(-t, -entered, "left")]
        hessian = (z * (risk * lasts)[:, None]).T @ z - (mean * d[events, None]).T @ mean
        hessian[np.diag_indices_from(hessian)] += ridge + 1e-9
        step = np.asarray(np.linalg.solve(hessian, gradient), dtype=np.float64)
        size = np.abs(z @ step).max(initial=0.0)
        if size > 5.0:
            step *= 5.0 / size
        beta = beta + step
    return beta


def partial_log_likelihood(
    lp: FloatArray, time: FloatArray, is_event: NDArray[np.bool_], entry: FloatArray, weight: FloatArray
) -> float:
    """Breslow's log partial likelihood of given linear predictors."""
    lp = np.clip(lp, -LARGEST, LARGEST)
    risk = weight * np.exp(lp)

    def from_on(starts: FloatArray, at: FloatArray) -> FloatArray:
        order = np.argsort(starts, kind="stable")
        total = np.append(np.cumsum(risk[order][::-1])[::-1], 0.0)
        return np.asarray(total[np.searchsorted(starts[order], at, "left")])

    events = np.flatnonzero(is_event)
    at_risk = from_on(time, time[events]) - (from_on(entry, time[events]) if (entry > 0.0).any() else 0.0)
    return float(weight[events] @ (lp[events] - np.log(np.maximum(at_risk, 1e-300))))
