"""The priors of the leaves to try: centred on the data (empirical Bayes), of several strengths.

The prior mean of a leaf is that of the whole table: the class frequencies, the mean of y, the overall rate. How strong
the prior is compared with the rows of a leaf is searched, or given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from everytree.base.arrays import FloatArray
from everytree.base.checks import is_auto, positive_number

SPLIT_PRIORS = (0.5, 0.8, 0.95, 0.99)
"""Split priors to try first; the search goes on along the ladder if the best lies at an end."""

SPLIT_PRIOR_LADDER = (1e-6, 1e-4, 1e-3, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99, 0.999, 0.9999, 0.99999, 0.999999)
"""All split priors: from hardly any split, best for pure noise, to hardly any pruning."""

STRENGTHS = tuple(float(f"{digit}e{power}") for power in range(-5, 5) for digit in (1, 3))
"""1e-5, 3e-5, ..., 1e4, 3e4: strengths of a prior, in rows."""


@dataclass(frozen=True)
class Search:
    """The priors to try."""

    make: Callable[..., Any]  # leaf model from hyperparameters by name
    # hyperparameters and `split_prior` to start from; those that no stage names stay as they are
    start: Mapping[str, Any]
    # each stage tries every combination of the values it lists, the others being the best so far
    stages: Sequence[Mapping[str, Sequence[Any]]] = ()
    # log prior of the hyperparameters, in nats; it matters on small tables
    log_prior: Callable[[Mapping[str, Any]], float] = lambda parameters: 0.0
    # For some of these names, all values they may take, in ascending order. If the best of a stage is the smallest or
    # largest that it lists, the search goes on along the ladder.
    ladders: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def family(self, parameters: Mapping[str, Any]) -> Any:
        """Return the leaf model with these parameters."""
        return self.make(**{name: value for name, value in parameters.items() if name != "split_prior"})

    def is_searched(self, name: str) -> bool:
        """Whether a hyperparameter is not given."""
        return any(name in stage for stage in self.stages)

    @property
    def first_family(self) -> Any:
        """Return the leaf model that the search starts from."""
        return self.family(self.start)


def search_for(
    make: Callable[..., Any],
    start: Mapping[str, float],
    given: Mapping[str, Any],
    split_prior: Any,
    stages: Sequence[Mapping[str, Sequence[float]]],
    ladders: Mapping[str, Sequence[float]],
) -> Search:
    """Return a search in which given parameters, those not "auto", are fixed."""
    unknown = sorted(set(given) - set(start))
    if unknown:
        raise ValueError(f"prior has {unknown}, but the parameters of this family are {sorted(start)}")
    fixed = {name: value for name, value in given.items() if not is_auto(value)}
    for name, value in fixed.items():
        positive_number(name, value, " or 'auto'")
    if not is_auto(split_prior):
        fixed["split_prior"] = split_prior
    tried = [{name: grid for name, grid in stage.items() if name not in fixed} for stage in stages]
    return Search(
        make,
        {"split_prior": 0.8, **start, **fixed},
        [stage for stage in tried if stage],
        ladders={"split_prior": SPLIT_PRIOR_LADDER, **ladders},
    )


def strengths() -> dict[str, tuple[float, ...]]:
    """Return the stage for priors whose `shape` counts rows or events."""
    return {"shape": (0.3, 1.0, 3.0, 10.0, 30.0), "split_prior": SPLIT_PRIORS}


# ---- summaries of the whole table -----------------------------------------------------------------------------------


def variance_about(mean: float, y: FloatArray, weight: FloatArray | None) -> float:
    """Variance of y about a mean, never quite zero: a constant column has a prior too."""
    return max(float(np.average((y - mean) ** 2, weights=weight)), (1e-13 * mean) ** 2, 1e-50)


def overall_rate(events: FloatArray, time: FloatArray, weight: FloatArray | None) -> float:
    """Events over time, half an event added so that it is never zero."""
    total = float(np.sum(time if weight is None else weight * time))
    return (float(np.sum(events if weight is None else weight * events)) + 0.5) / max(total, 1e-300)


def rounding(y: FloatArray, weight: FloatArray | None) -> float:
    """Step to which targets are rounded: the smallest between them where most values occur several times, else 0.

    A density has no ties: with rounded targets, a spike at each value would win any log score. The expected variance of
    a leaf is therefore never less than that of rounding.
    """
    values, n_rows = np.unique(y), len(y) if weight is None else weight.sum()  # a row of weight 2 is two rows
    return float(np.diff(values).min()) if 1 < len(values) <= n_rows / 5 else 0.0
