"""Noise: where targets do not depend on the columns, no estimator finds skill, and none says that it did.

Every public estimator, every kind of column, classes and every family; `make check-slow` has more sizes and seeds.
"""

from __future__ import annotations

from functools import cache
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np
import pytest
from sklearn.base import is_classifier

import noise_cases as noise
from cases import rng_for
from every_estimator import estimators, families_of, make, marked

pytestmark = [pytest.mark.filterwarnings("ignore::UserWarning"), pytest.mark.long]

ESTIMATORS = marked(estimators())


class Judged(NamedTuple):
    """Nats a row: by how much a model says that it is better than fresh rows do, and what these lose by its columns."""

    too_much: float
    loss: float


def judged(kind: type[Any], columns: str, target: str | int, n: int, seed: int, times: int = 1) -> Judged:
    rng = rng_for("noise", kind.__name__, columns, target, n, seed, times)
    rows = noise.draw(rng, columns, target, n, times=times)
    fresh = noise.draw(rng, columns, target, noise.FEWEST_FRESH, times=times)
    options = {} if isinstance(target, int) else {"family": target}
    groups = {} if rows.groups is None or not leaves_rows_out(kind) else {"groups": rows.groups}
    model = make(kind, **options).fit(rows.X, rows.y, **groups)
    found = noise.log_scores(model, fresh).mean()
    without = noise.log_scores_without_columns(target, rows, fresh).mean()
    return Judged(said(model) - found, without - found)


@cache
def leaves_rows_out(kind: type[Any]) -> bool:
    """Whether it takes groups: sums with given priors refuse them, since they would change nothing."""
    try:
        make(kind).fit(np.zeros((12, 1)), [0, 1] * 6, groups=np.arange(12) // 2)
    except ValueError as error:
        if "takes no groups" not in str(error):
            raise
        return False
    return True


def said(model: Any) -> float:
    """Mean log score of rows that the model had not seen, by itself; NaN where it says nothing."""
    try:
        scores = model.unseen_
    except AttributeError:
        return np.nan
    return -scores.log_loss if hasattr(scores, "log_loss") else getattr(scores, "log_score", np.nan)


def targets_of(kind: type[Any]) -> list[str | int]:
    return [2, 5] if is_classifier(kind()) else list(families_of(kind))


def check(found: list[Judged], most_lost: float) -> None:
    too_much, loss = np.array(found).T
    assert loss.mean() < most_lost
    known = too_much[~np.isnan(too_much)]
    if len(known):
        assert known.mean() < 2.0 * known.std() / np.sqrt(len(known)) + 1e-3


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_noise_is_no_skill(kind):
    """All kinds of columns together, each with the next of the targets: mean over the tables."""
    targets = cycle(targets_of(kind))
    check([judged(kind, columns, next(targets), 150, 0) for columns in noise.COLUMNS], 0.015)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_repeated_measurements_are_no_skill(kind):
    """Persons are measured several times, and targets are those of the person."""
    target = targets_of(kind)[0]
    found = [judged(kind, "numbers", target, 300, seed, times=5) for seed in range(2)]
    known = np.array([one.too_much for one in found])
    known = known[~np.isnan(known)]
    if len(known):
        assert known.mean() < 2.0 * known.std() / np.sqrt(len(known)) + 0.02


@pytest.mark.slow
@pytest.mark.parametrize("n", [50, 300, 2000])
@pytest.mark.parametrize("columns", noise.COLUMNS)
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_noise_is_no_skill_in_any_kind_of_column(kind, columns, n):
    found = [judged(kind, columns, target, n, seed) for target in targets_of(kind) for seed in range(6)]
    check(found, 0.01 if n >= 100 else 0.02)


def test_the_law_can_fail():
    """A model that memorises its rows and judges itself by them is caught."""

    class Memory:
        classes_ = np.arange(2)

        def __init__(self, rows: noise.Rows) -> None:
            self.share = rows.y.mean()

        def predict_proba(self, X: Any) -> np.ndarray:
            sure = np.where(np.arange(len(X)) % 2, 0.9, 0.1)
            return np.column_stack([1.0 - sure, sure])

    rng = rng_for("memory")
    rows, fresh = (noise.draw(rng, "numbers", 2, n) for n in (200, 2000))
    found = noise.log_scores(Memory(rows), fresh).mean()
    lost = noise.log_scores_without_columns(2, rows, fresh).mean() - found
    with pytest.raises(AssertionError):
        check([Judged(0.0, lost)] * 3, 0.01)
    with pytest.raises(AssertionError):
        check([Judged(0.1, 0.0), Judged(0.12, 0.0)], 0.01)
