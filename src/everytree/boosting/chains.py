"""Chains of boosted trees: each leaves out some rows and scores them, and stops by some of the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, xlogy

from everytree import _kernels
from everytree.base.arrays import FloatArray
from everytree.boosting.folds import folds
from everytree.boosting.lines import LinedTrees, Points
from everytree.boosting.scales import scales_of_folds
from everytree.boosting.trees import NODE_ARRAYS, AdditiveTrees
from everytree.posterior.rows import Rows
from everytree.tables.either import Either, drawn_columns

SPLIT_PRIORS = (0.8, 0.99)
"""The usual one, and one for targets that hardly have any noise."""

SMALL_TABLE = 5_000
"""Rows up to which steps are smallest."""

FEW_ROWS = 1_000
"""Rows up to which those that stop a chain are missed by it, where its scores are data for another model."""

MAX_REFIT_ROWS = 50_000
"""Rows up to which each chain is refitted on all rows; with more, its own training rows are enough."""

SHARED = "shared softmax"
"""The loss of many classes: a step is one tree, with a value for each class in every leaf."""

SHARED_RATE = 0.16
"""Learning rate of such trees."""

SHARED_SMALL_TABLE = 1_000
"""Rows up to which they are smallest."""

NUMBERS = ("squared", "rate")
"""Losses of numbers."""

MIN_STANDARD_ERRORS = 1.5
"""Standard errors by which the second split prior must predict better to be chosen."""

SHARES_OF_COLUMNS = (0.5, 1.0)
"""The usual one, and one for targets with interactions of columns, which trees of half of the columns seldom see."""

N_PILOTS = 2
"""Chains that try the second prior or share of columns first; it is dropped unless they gain by it."""

MIN_ERRORS = 2.5
"""Standard errors by which all columns, or more of them, must predict the left-out rows of all chains better to be
chosen."""

HARDLY_NOISE = 0.1
"""Share of the loss without any column above which the second is not tried."""

STOPPING_PARTS = (5, 10)
"""Of the rows that a chain does not leave out, one part of so many says when it stops: the least, for small tables, and
the most."""

STOPPING_ROWS = 100
"""Rows that are enough for that, so that there may be more parts."""


class Role(IntEnum):
    """Use of a row in a chain: training, early stopping, or held out."""

    TRAINS = 0
    STOPS = 1
    LEFT_OUT = 2


@dataclass(frozen=True)
class BoostRule:
    """How chains are boosted.

    Attributes
    ----------
    n_chains : int
    learning_rate : float or None
        Share of a tree's values that is added to the scores.
    max_steps : int
    patience : int or None
        A chain ends when so many steps have not lowered the loss of the rows that it stops by.
    split_prior : float or None
        Prior probability that a node is split; 1 for no averaging over prunings. None: one of `SPLIT_PRIORS`, chosen
        for each chain by the rows that it stops by.
    tau : float
        Prior precision of leaf values, in rows.
    max_leaf_nodes, max_depth : int or None
        Of each tree; depth 0 is any depth.
    min_samples_leaf : int
    subsample : float
        Share of the rows by which the splits of a tree are chosen. Its leaves count all rows.
    max_features : float or None
        Share of the columns. None: one of `SHARES_OF_COLUMNS`, chosen by the rows that all chains leave out, on tables
        of more than `FEW_ROWS` rows.
    max_rows : int
        Number of rows that are enough to choose splits by.

    What is None is set by the number of rows: see `for_rows`.
    """

    n_chains: int = 5
    learning_rate: float | None = None
    max_steps: int = 1000
    patience: int | None = None
    split_prior: float | None = None
    tau: float = 1.0
    max_leaf_nodes: int | None = None
    max_depth: int | None = None
    min_samples_leaf: int = 1
    subsample: float = 0.5
    max_features: float | None = None
    max_rows: int = 20_000

    def for_rows(self, n_rows: int, loss: str = "") -> BoostRule:
        """Set what is None: many small steps up to `SMALL_TABLE` rows, then larger and fewer ones, up to four times.

        By trees of all classes, steps are larger from the start, and trees grow from `SHARED_SMALL_TABLE` rows on.
        """
        larger = float(np.clip((n_rows / SMALL_TABLE) ** 0.45, 1.0, 4.0))
        wider = larger if loss != SHARED else float(np.clip((n_rows / SHARED_SMALL_TABLE) ** 0.3, 1.0, 4.0))
        by_rows = {
            "learning_rate": (SHARED_RATE if loss == SHARED else 0.08) * larger,
            "patience": round(50.0 / larger), "max_leaf_nodes": round(16.0 * wider),
            "max_depth": round(6.0 + np.log2(wider)),
        }  # fmt: skip
        return replace(self, **{name: value for name, value in by_rows.items() if getattr(self, name) is None})

    def kernel_options(self, split_prior: float, max_features: float) -> dict[str, Any]:
        return {
            "learning_rate": self.learning_rate, "tau": self.tau, "split_prior": split_prior,
            "max_steps": self.max_steps, "patience": self.patience, "max_leaf_nodes": self.max_leaf_nodes,
            "max_depth": self.max_depth, "min_samples_leaf": self.min_samples_leaf, "subsample": self.subsample,
            "max_features": max_features, "max_rows": self.max_rows,
        }  # fmt: skip


class Likelihood(NamedTuple):
    """Targets as scores predict them."""

    # {"logit", "softmax", "shared softmax", "squared", "rate"}: "softmax" has a tree for each class, `SHARED` trees of
    # all classes
    loss: str
    y: FloatArray  # (n_rows,)
    exposure: FloatArray | None = None  # (n_rows,)
    n_classes: int = 0

    @property
    def order(self) -> FloatArray:
        """(n_rows,) by which folds are made alike: classes, numbers or rates."""
        if self.exposure is None:
            return self.y
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.y / self.exposure)

    def losses(self, scores: FloatArray) -> FloatArray:
        """(n_rows,) loss of each row, without what does not depend on its scores."""
        if self.loss == "squared":
            return np.asarray(0.5 * (scores[:, 0] - self.y) ** 2)
        if self.loss == "rate":
            return np.asarray(
                (1.0 if self.exposure is None else self.exposure) * np.exp(scores[:, 0]) - self.y * scores[:, 0]
            )
        if scores.shape[1] == 1:
            return np.logaddexp(0.0, np.where(self.y > 0.5, -scores[:, 0], scores[:, 0]))
        wide = class_scores(scores)
        return np.asarray(logsumexp(wide, axis=1) - wide[np.arange(len(wide)), self.y.astype(np.int64)])

    def least_losses(self) -> FloatArray:
        """(n_rows,) loss of each row by the scores that suit it best."""
        if self.loss != "rate":
            return np.zeros(len(self.y))
        exposure = np.ones(len(self.y)) if self.exposure is None else self.exposure
        return np.asarray(self.y - xlogy(self.y, self.y) + xlogy(self.y, exposure))

    def at(self, rows: NDArray[Any]) -> Likelihood:
        """Some of the rows."""
        return self._replace(y=self.y[rows], exposure=None if self.exposure is None else self.exposure[rows])


def class_scores(scores: FloatArray) -> FloatArray:
    """(n_rows, n_classes): one score is the logit of the second of two classes."""
    return np.column_stack([np.zeros(len(scores)), scores[:, 0]]) if scores.shape[1] == 1 else scores


class Boosted(NamedTuple):
    """Result of `boost`."""

    chains: list[AdditiveTrees]
    # by which the average of the chains goes farther, or less far, from their base; 0 where no column matters
    factor: float
    fold: NDArray[np.int64]  # (n_rows,): the chain that left a row out
    base: FloatArray  # (n_rows, n_outputs): score of each row by that chain before its first step
    # (n_rows, n_outputs): sum of the steps of that chain, times the factor that the rows of all other folds choose:
    # out-of-fold scores
    departure: FloatArray
    n_steps: list[int]  # steps of each chain
    split_prior: float  # that was given, or the one of most chains
    # (n_features,): expected gain in log evidence by the splits on each column and its slopes, on average over the
    # chains
    gains: FloatArray
    # the trees with lines of each chain, whose scores add to those of `chains`; empty where no lines are offered
    lined: list[LinedTrees]
    # of the number of a fold: the chain that left it out, with the factor that all other folds choose
    without: Callable[[int], tuple[AdditiveTrees, LinedTrees | None]]


class _Run(NamedTuple):
    """A chain as it comes from the kernel, its split prior and share of columns, and the role of each row in it."""

    chain: dict[str, Any]
    split_prior: float
    max_features: float
    role: NDArray[np.int64]

    def scores(self, role: Role) -> FloatArray:
        """(n, n_outputs) scores of the rows of one role, if they were set aside."""
        return np.asarray(self.chain["aside"][self.role[self.role != Role.TRAINS] == role])


def boost(
    rows: Rows,
    likelihood: Likelihood,
    rule: BoostRule,
    *,
    n_codes: NDArray[Any],
    has_missing: NDArray[np.bool_],
    factors: FloatArray,
    rng: np.random.Generator,
    either: Either = (),
    points: Points | None = None,
    n_jobs: int = 1,
    progress: Callable[[], object] = lambda: None,
) -> Boosted:
    """Run the chains, the same for any `n_jobs`; every row is left out by one of them.

    Nothing of a chain depends on the rows that it leaves out: some of the others say when it stops. What it says of
    numbers is data for another model; on tables of up to `FEW_ROWS` rows it is therefore boosted once more on all rows
    that it does not leave out.

    The out-of-fold scores are then known, and a table of up to `MAX_REFIT_ROWS` rows is boosted again: every chain on
    all rows, for the number of steps that was best for the rows it had set aside. With more rows there are more steps,
    by the square root. A table of fewer groups than chains has as many chains as groups.

    With `points`, those of the codes of each column, nodes may be lines; for the losses of `NUMBERS`.

    `factors` are those to try by which the average of the chains may go farther, or less far, from their base.
    """
    rule = rule.for_rows(len(rows), likelihood.loss)
    n_groups = len(rows) if rows.group is None else int(rows.group.max()) + 1
    n_chains = max(1, min(rule.n_chains, n_groups))
    fold = folds(likelihood.order, rows.group, n_chains, rng)
    roles = [roles_of(fold == chain, likelihood.order, rows.group, rng) for chain in range(n_chains)]
    seeds = rng.integers(2**62, size=n_chains).tolist()
    columns = [drawn_columns(len(n_codes), either, seed) for seed in seeds]
    booster = _kernels.booster(
        codes=np.ascontiguousarray(rows.codes), n_codes=n_codes.astype(np.int32), has_missing=has_missing,
        y=np.ascontiguousarray(likelihood.y, dtype=np.float64), weight=rows.weight, exposure=likelihood.exposure,
        n_classes=likelihood.n_classes, loss=likelihood.loss, points=None if points is None else np.concatenate(points),
    )  # fmt: skip

    def run(chain: int, role: NDArray[np.int64], split_prior: float, max_features: float, most_steps: int) -> _Run:
        options = rule.kernel_options(split_prior, max_features) | {"max_steps": most_steps}
        return _Run(
            booster.run(role=role.astype(np.uint8), columns=columns[chain], seed=seeds[chain], **options),
            split_prior,
            max_features,
            role,
        )

    def one(chain: int, split_prior: float, max_features: float) -> _Run:
        """The chain by the rows that it does not leave out; without any to stop by it takes no step."""
        role = roles[chain]
        most_steps = rule.max_steps if (role == Role.STOPS).any() else 0
        return run(chain, role, split_prior, max_features, most_steps)

    def first(chain: int) -> _Run:
        return one(
            chain, SPLIT_PRIORS[0] if rule.split_prior is None else rule.split_prior,
            SHARES_OF_COLUMNS[0] if rule.max_features is None else rule.max_features,
        )  # fmt: skip

    def with_second_prior(chain: int, before: _Run) -> _Run:
        return one(chain, SPLIT_PRIORS[1], before.max_features)

    def with_chosen_prior(firsts: list[_Run]) -> list[_Run]:
        """Each chain with the split prior that predicts the rows that it stops by better; pilots try first."""
        if rule.split_prior is not None:
            return firsts
        tried = [k for k, own in enumerate(firsts) if _has_hardly_noise(own, likelihood, rows.weight)]
        pilots, others = tried[:N_PILOTS], tried[N_PILOTS:]
        seconds = dict(zip(pilots, pool.map(with_second_prior, pilots, [firsts[k] for k in pilots]), strict=True))
        # Rows that pilots left out: no other chain scores these.
        gain = sum(float(_gain_of(own, firsts[k], likelihood, rows.weight).sum()) for k, own in seconds.items())
        if gain > 0.0:
            seconds |= zip(others, pool.map(with_second_prior, others, [firsts[k] for k in others]), strict=True)
        return [
            seconds[k] if k in seconds and _is_clearly_better(seconds[k], own, likelihood, rows.weight) else own
            for k, own in enumerate(firsts)
        ]

    def with_all_columns(chain: int, before: _Run) -> _Run:
        return one(chain, before.split_prior, SHARES_OF_COLUMNS[1])

    def again(chain: int, before: _Run, role: NDArray[np.int64], name: str) -> _Run:
        """With these rows, for as many steps as were found with fewer; more rows bear more."""
        of_before, of_now = (max(int((each == Role.TRAINS).sum()), 1) for each in (roles[chain], role))
        n_steps = min(round(before.chain[name] * np.sqrt(of_now / of_before)), rule.max_steps)
        return run(chain, role, before.split_prior, before.max_features, n_steps)

    def with_chosen_columns(halves: list[_Run]) -> tuple[list[_Run], list[_Run]]:
        """The chains to go on with; and those that score the rows they left out, which have no say in the choice."""
        if rule.max_features is not None or len(rows) <= FEW_ROWS or n_chains <= N_PILOTS:
            return halves, halves
        wholes = list(pool.map(with_all_columns, range(N_PILOTS), halves))
        gains = [_gain_of(whole, half, likelihood, rows.weight) for whole, half in zip(wholes, halves, strict=False)]
        may_gain = pilots_gain(gains, n_chains)
        if not any(may_gain):
            return halves, halves
        wholes += pool.map(with_all_columns, range(N_PILOTS, n_chains), halves[N_PILOTS:])
        gains = [_gain_of(whole, half, likelihood, rows.weight) for whole, half in zip(wholes, halves, strict=True)]
        *of_fold, of_all = np.logical_and(may_gain, all_clearly_gain(gains, n_groups / len(rows))).tolist()
        scored = [whole if own else half for whole, half, own in zip(wholes, halves, of_fold, strict=True)]
        return wholes if of_all else halves, scored

    with ThreadPoolExecutor(n_jobs) as pool:
        try:
            runs = []
            for own in pool.map(first, range(n_chains)):
                runs.append(own)
                progress()
            runs, scored = with_chosen_columns(with_chosen_prior(runs))
            if likelihood.loss in NUMBERS and len(rows) <= FEW_ROWS:
                without = [np.where(fold == chain, Role.LEFT_OUT, Role.TRAINS) for chain in range(n_chains)]
                scored = list(pool.map(again, range(n_chains), scored, without, ["n_steps"] * n_chains))
            base = np.array([own.chain["base"] for own in scored])[fold]
            departure = _left_out(scored, fold) - base
            factor, of_fold = _factors(likelihood, base, departure, fold, rows.weight, n_groups, factors)
            if len(rows) <= MAX_REFIT_ROWS and factor > 0.0:
                every = [np.full(len(fold), Role.TRAINS)] * n_chains
                runs = list(pool.map(again, range(n_chains), runs, every, ["n_steps_of_aside"] * n_chains))
        except BaseException:
            booster.stop()  # before the pool waits for chains that still run
            raise

    def trees(own: dict[str, Any]) -> AdditiveTrees:
        nodes = {name: own[name] for name in NODE_ARRAYS}
        return AdditiveTrees(own["n_nodes"], nodes, own["value"], own["base"], n_codes, own["mass"])

    def lines(own: dict[str, Any]) -> list[LinedTrees]:
        return [] if points is None else [LinedTrees.of_chain(own["lined"], points, n_codes)]

    def chain_without(number: int) -> tuple[AdditiveTrees, LinedTrees | None]:
        own, share = scored[number].chain, float(of_fold[number])
        return AdditiveTrees.average([trees(own)], share), LinedTrees.average(lines(own), share)

    n_steps = [own["n_steps"] if factor > 0.0 else 0 for own, *_ in runs]
    split_prior = float(np.median([own.split_prior for own in runs]))
    gains = np.zeros(len(n_codes))
    if factor > 0.0:
        gains = np.mean([gains_of(own, len(n_codes)) for own, *_ in runs], axis=0)
    chains, lined = [trees(own) for own, *_ in runs], [each for own, *_ in runs for each in lines(own)]
    left_out = departure * of_fold[fold][:, None]
    return Boosted(chains, factor, fold, base, left_out, n_steps, split_prior, gains, lined, chain_without)


def roles_of(
    is_left_out: NDArray[np.bool_], order_by: FloatArray, group: NDArray[np.int64] | None, rng: np.random.Generator
) -> NDArray[np.int64]:
    """(n_rows,) the role of each row in a chain; only of rows that it does not leave out some are drawn to stop it."""
    role = np.where(is_left_out, Role.LEFT_OUT, Role.TRAINS)
    others = np.flatnonzero(~is_left_out)
    own = None if group is None else group[others]
    n_groups = len(others) if own is None else len(np.unique(own))
    least, most = STOPPING_PARTS
    n_parts = min(int(np.clip(n_groups // STOPPING_ROWS, least, most)), n_groups)
    if n_parts > 1:
        role[others[folds(order_by[others], own, n_parts, rng) == 0]] = Role.STOPS
    return role


def _has_hardly_noise(own: _Run, likelihood: Likelihood, weight: FloatArray | None) -> bool:
    """Whether a chain leaves so little of the loss that a larger split prior may be better."""
    losses, stops = own.chain["losses"], own.role == Role.STOPS
    if not stops.any():
        return False
    least = np.average(likelihood.at(stops).least_losses(), weights=None if weight is None else weight[stops])
    return bool(losses[own.chain["n_steps"]] - least < HARDLY_NOISE * (losses[0] - least))


def _is_clearly_better(second: _Run, first: _Run, likelihood: Likelihood, weight: FloatArray | None) -> bool:
    """Whether the second of two chains clearly predicts the rows that they stop by better."""
    stops = first.role == Role.STOPS
    of_first, of_second = (likelihood.at(stops).losses(own.scores(Role.STOPS)) for own in (first, second))
    gain = (of_first - of_second) * (1.0 if weight is None else weight[stops])
    return len(gain) > 1 and bool(gain.mean() > MIN_STANDARD_ERRORS * gain.std() / np.sqrt(len(gain)))


def _gain_of(second: _Run, first: _Run, likelihood: Likelihood, weight: FloatArray | None) -> FloatArray:
    """(n,) how much better the second of two chains predicts each of the rows that both left out."""
    left_out = first.role == Role.LEFT_OUT
    of_first, of_second = (likelihood.at(left_out).losses(own.scores(Role.LEFT_OUT)) for own in (first, second))
    return np.asarray((of_first - of_second) * (1.0 if weight is None else weight[left_out]))


def pilots_gain(gains: Sequence[FloatArray], n_chains: int) -> list[bool]:
    """For each fold, and at last for all rows: whether the pilots of other folds gain at all.

    Parameters
    ----------
    gains : sequence of (n,) float64
        Of the rows that each pilot leaves out.
    """
    return [sum(float(each.sum()) for each in _of_others(gains, k)) > 0.0 for k in (*range(n_chains), None)]


def all_clearly_gain(gains: Sequence[FloatArray], share: float) -> list[bool]:
    """For each fold, and at last for all rows: whether the rows of other folds clearly gain on average.

    Parameters
    ----------
    gains : sequence of (n,) float64
        Of the rows that each chain leaves out.
    share : float
        Of independent rows among all.
    """
    others = [np.concatenate(_of_others(gains, k)) for k in (*range(len(gains)), None)]
    return [clearly_gain(gain, share) for gain in others]


def clearly_gain(gain: FloatArray, share: float) -> bool:
    """Whether rows clearly gain on average, if this share of them is independent."""
    return bool(gain.mean() > MIN_ERRORS * gain.std() / np.sqrt(max(len(gain) * share, 1.0)))


def _of_others(gains: Sequence[FloatArray], fold: int | None) -> list[FloatArray]:
    return [each for k, each in enumerate(gains) if k != fold]


def _left_out(runs: Sequence[_Run], fold: NDArray[np.int64]) -> FloatArray:
    """(n_rows, n_outputs) the scores of each row by the chain that left it out."""
    scores = np.empty((len(fold), len(runs[0].chain["base"])))
    for number, own in enumerate(runs):
        scores[fold == number] = own.scores(Role.LEFT_OUT)
    return scores


def _factors(
    likelihood: Likelihood,
    base: FloatArray,
    departure: FloatArray,
    fold: NDArray[np.int64],
    weight: FloatArray | None,
    n_groups: int,
    tried: FloatArray,
) -> tuple[float, FloatArray]:
    """The factor of departures from the base by all rows, and by those of all folds but each."""
    of_row = np.ones(len(fold)) if weight is None else weight
    if likelihood.loss == "squared":  # a loss in nats is over the variance
        least = min(float(np.average(likelihood.losses(base + f * departure), weights=of_row)) for f in (0.0, 1.0))
        of_row = of_row / max(2.0 * least, np.finfo(np.float64).tiny)
    return scales_of_folds(
        lambda factor: -of_row * likelihood.losses(base + factor * departure), fold, n_groups / len(fold), tried,
    )  # fmt: skip


def gains_of(chain: Mapping[str, Any], n_columns: int) -> FloatArray:
    """(n_columns,) gain by the splits of a chain on each column, and by its slopes."""
    gains, lined = np.zeros(n_columns), chain["lined"]
    for trees in (chain, lined):
        is_split = trees["feature"] >= 0
        gains += np.bincount(trees["feature"][is_split], trees["gain"][is_split], n_columns)
    return gains + np.bincount(lined["columns"], lined["gain_of_line"], n_columns)
