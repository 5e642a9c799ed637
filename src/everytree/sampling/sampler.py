"""A sampler of structures: which column and which cut each inner node of a tree uses.

The prunings of a structure and the parameters of its leaves are summed out, so what is drawn is p(k | data), k the
splits. Chains run at several powers of the evidence, from 0, which is the prior, to that of the target, and exchange
their structures. The kernels in `_native/sampling` make the moves; `replica.hpp` there has the derivation.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from functools import reduce
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everytree import _kernels
from everytree.base.arrays import FloatArray
from everytree.base.checks import resolve_n_jobs, whole_number
from everytree.base.progress import Progress
from everytree.base.randomness import RandomSource, random_generator
from everytree.exact.checks import checked_candidates, checked_codes, checked_family, checked_kinds
from everytree.exact.regions import KINDS, Kind
from everytree.exact.trees import ExactTree
from everytree.families.base import NativeFamily
from everytree.posterior.forest import Forest
from everytree.posterior.split_prior import SplitPriorLike, log_split_stop, split_prior_of_depths
from everytree.predictive.predictive import Predictive
from everytree.sampling.draws import Draws, Structures, inference_data
from everytree.sampling.evidence import EvidenceEstimate, adapted_powers, estimate_evidence, first_powers
from everytree.sampling.points import DistinctRows
from everytree.trees.metatree import read_only

MAX_DEPTH = 64
"""Maximum depth where none is given: with a split prior of 0.5 no tree in 1e19 is deeper."""

SUMMED_DEPTH = 5
"""Depth to which prunings are summed out; below it they are drawn with the structure."""

MOVES = ("change", "neighbour", "swap", "rotation", "prior", "block")
"""Names of the moves, in the order of the kernel."""

PROPOSALS, PROPOSALS_IF_INDEPENDENT = (20, 2), (0, 1)
"""Proposals of a draw at each temperature: of single nodes, and of blocks. Where a block is an independent draw from
the posterior, one is enough."""

SECONDS_AT_ONCE = 0.3
"""Approximate time that the kernel draws before it returns; how draws are divided does not change them."""

Records = list[list[dict[str, NDArray[Any]]]]
"""Results of the kernel: for each call, one record per chain."""

BLOCK_DEPTH = 3
"""Levels over which a block is summed below the first ones, at most."""

MAX_BLOCK_STEPS = 1e5
"""Steps that the sums of a block may take in each level, where they are computed again and again."""

TOP_STEPS, TOP_BYTES = 1e5, 2**30
"""Steps of the sums over the first levels for each draw at each temperature, so that they take about as long as the
draws do, and the memory that they may take. Where they reach the last level, draws are independent."""

ADAPTING_SHARE = 1 / 16
"""Share of these steps for sums at powers that are still to be adapted."""

N_ROUNDS = 4
"""Rounds of the burn-in after which the temperatures are adapted, each twice as long as the one before."""

KEPT = 200
"""Approximate number of structures that `thin="auto"` keeps."""


class StructureSampler:
    """Draws from p(k | data): the splits of a tree, its prunings and leaves summed out exactly.

    The prior is that of `ExactPosterior`: a region is split with probability `split_prior` (of its depth) unless it is
    at `max_depth` or has nothing left to split; a split is chosen uniformly from the candidates of the region. With the
    same arguments the chains draw from the posterior that `ExactPosterior` sums over.

    Parameters
    ----------
    n_codes, family
        As in `ExactPosterior`.
    max_depth : int, optional
        No limit by default. Regions with equal rows stay at the prior and are not stored.
    split_prior
        As in `ExactPosterior`.
    candidates
        As in `ExactPosterior`.
    kinds
        As in `ExactPosterior`.
    temperature : float
        Power of the evidence by which structures are drawn, as in `ExactPosterior`: 1 is the posterior, less spreads
        it over structures that explain the rows a little worse. Predictions weigh the prunings of each structure by
        the full evidence.
    n_chains : int
        Independent chains; where they agree, they have converged.
    n_temperatures : int
        Powers of the evidence in each chain, from 0 to `temperature`. With 1 nothing is exchanged, and there is no
        estimate of the evidence.
    start : {"prior", "worst"}
        Structures that chains begin with: drawn from the prior, or made of the splits that explain the rows worst, to
        see whether results depend on it.
    random_state : int, Generator, RandomState or None
    n_jobs : int, optional
        Threads; the result does not depend on it.

    Examples
    --------
    >>> import numpy as np, everytree as et
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5, dtype=np.uint8)
    >>> sampler = et.StructureSampler([2, 2], et.Bernoulli(0.5, 0.5), max_depth=2, random_state=0)
    >>> sampler.fit(X, X[:, 0], n_draws=200).map_tree().n_leaves
    2
    """

    powers: FloatArray
    _rows: DistinctRows
    _draws: Draws
    _kept: Structures
    _best: dict[str, Any]
    _moves: dict[str, NDArray[Any]]
    _forest: Forest | None
    _thin: int
    _top_steps: float
    _needs_sums: bool
    _state: list[dict[str, Any]]
    _engine: _kernels.Sampler | None

    def __init__(
        self,
        n_codes: Sequence[int],
        family: NativeFamily,
        max_depth: int | None = None,
        split_prior: SplitPriorLike = 0.5,
        *,
        candidates: Literal["all", "nontrivial"] = "all",
        kinds: Kind | Sequence[Kind] = "ordered",
        temperature: float = 1.0,
        n_chains: int = 4,
        n_temperatures: int = 10,
        start: Literal["prior", "worst"] = "prior",
        random_state: RandomSource = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_codes = checked_codes(n_codes)
        self.family = checked_family(family)
        self.max_depth = None if max_depth is None else whole_number("max_depth", max_depth, 0, MAX_DEPTH)
        self.candidates = checked_candidates(candidates)
        self.kinds = checked_kinds(kinds, self.n_codes)
        if not isinstance(temperature, int | float | np.number) or not 0.0 < temperature <= 1.0:
            raise ValueError(f"temperature must be a power above 0 and at most 1, but is {temperature!r}")
        self.temperature = float(temperature)
        self.n_chains = whole_number("n_chains", n_chains, 1)
        self.n_temperatures = whole_number("n_temperatures", n_temperatures, 1)
        if start not in ("prior", "worst"):
            raise ValueError(f"start must be 'prior' or 'worst', but is {start!r}")
        self.start = start
        self.random_state = random_state
        resolve_n_jobs(n_jobs)
        self.n_jobs = n_jobs
        self.split_prior = split_prior
        depths = MAX_DEPTH if self.max_depth is None else self.max_depth
        self._log_split, self._log_stop = log_split_stop(split_prior_of_depths(split_prior, depths))

    # ---- drawing ----------------------------------------------------------------------------------------------------

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        n_draws: int = 1000,
        burn_in: int | None = None,
        thin: int | Literal["auto"] = "auto",
        progress: bool = False,
        **row_data: Any,
    ) -> Self:
        """Draw structures given rows.

        Parameters
        ----------
        X : (n_rows, n_features) array_like of codes
        y : (n_rows,) array_like
        sample_weight : (n_rows,) array_like, optional
        n_draws : int
            Draws of each chain. A draw is made of some twenty proposals for single nodes and two for blocks, at each
            temperature, and an exchange.
        burn_in : int, optional
            Draws before them that are not used; the temperatures are adapted there. By default half of `n_draws`.
        thin : int or "auto"
            Every thin-th draw is kept as a structure; "auto" keeps about 200 of all chains.
        progress : bool
            Whether to show a progress bar.
        **row_data
            Row data of the family.

        Notes
        -----
        An interrupt (Ctrl-C) after the first draws ends the drawing; the draws that were made are kept, with a
        warning. Before that it changes nothing: an earlier fit stays as it was.
        """
        n_draws = whole_number("n_draws", n_draws, 1)
        burn_in = n_draws // 2 if burn_in is None else whole_number("burn_in", burn_in, 0)
        if isinstance(thin, str) and thin == "auto":
            thin = max(n_draws * self.n_chains // KEPT, 1)
        thin = whole_number("thin", thin, 1, n_draws)
        rows = DistinctRows.read(self.family, self.n_codes, X, y, sample_weight, row_data)
        powers = first_powers(self.n_temperatures, self.temperature)
        seeds = random_generator(self.random_state, "random_state").integers(0, 2**63, self.n_chains).tolist()
        engine = self._make(rows, powers, seeds)
        steps = TOP_STEPS * (burn_in + n_draws) * self.n_chains * self.n_temperatures
        self._sum_top(engine, steps if burn_in == 0 else steps * ADAPTING_SHARE)
        engine.begin(self.start == "worst", resolve_n_jobs(self.n_jobs))
        with Progress("sampling", burn_in + n_draws, progress) as bar:
            powers = self._burn_in(engine, powers, burn_in, steps, bar)
            records, was_interrupted = self._draw(engine, n_draws, thin, bar)
        if not records:
            raise KeyboardInterrupt
        fitted = {"_rows": rows, "_thin": thin, "powers": read_only(powers), "_top_steps": steps}
        self._keep(engine, records, fitted | {"_needs_sums": False, "_engine": engine})
        if was_interrupted:
            _tell_of_interrupt(records, n_draws)
        return self

    def run(self, n_draws: int, *, progress: bool = False) -> Self:
        """Continue the chains with this many more draws each."""
        self._check_fitted()
        n_draws = whole_number("n_draws", n_draws, 1)
        engine = self._running()
        with Progress("sampling", n_draws, progress) as bar:
            if self._needs_sums:
                self._sum_top(engine, self._top_steps)
                self._needs_sums = False
            records, was_interrupted = self._draw(engine, n_draws, self._thin, bar)
        self._keep(engine, records)
        if was_interrupted:
            _tell_of_interrupt(records, n_draws)
        return self

    def _make(self, rows: DistinctRows, powers: FloatArray, seeds: list[int]) -> _kernels.Sampler:
        family = self.family
        return _kernels.make_sampler(
            name=family.kernel, size=family.size, prior=family.kernel_prior, codes=rows.codes, n_codes=self.n_codes,
            kinds=[KINDS.index(kind) for kind in self.kinds], statistics=rows.statistics,
            log_split=self._log_split.tolist(), log_stop=self._log_stop.tolist(), summed_depth=SUMMED_DEPTH,
            only_nontrivial=self.candidates == "nontrivial",
            block_depth=BLOCK_DEPTH, max_block_cost=MAX_BLOCK_STEPS,
            powers=powers.tolist(), seeds=seeds,
        )  # fmt: skip

    def _sum_top(self, engine: _kernels.Sampler, steps: float) -> None:
        engine.sum_top(steps, TOP_BYTES, len(self._log_split), resolve_n_jobs(self.n_jobs))

    def _run(self, records: Records, engine: _kernels.Sampler, n_draws: int, thin: int, bar: Progress) -> None:
        """Draw, some draws at a time, so that progress is shown; `records` has what was drawn before an interrupt."""
        is_independent = engine.top_depth() >= len(self._log_split)
        n_single, n_blocks = PROPOSALS_IF_INDEPENDENT if is_independent else PROPOSALS
        jobs, n_next, done = resolve_n_jobs(self.n_jobs), 1, 0
        while done < n_draws:
            n_next = min(n_next, n_draws - done)
            begun = time.perf_counter()
            records.append(engine.run(n_draws=n_next, thin=thin, n_single=n_single, n_blocks=n_blocks, n_jobs=jobs))
            done += n_next
            bar.step(n_next)
            per_draw = (time.perf_counter() - begun) / n_next
            n_next = max(int(SECONDS_AT_ONCE / max(per_draw, 1e-9)), 1)

    def _burn_in(
        self, engine: _kernels.Sampler, powers: FloatArray, n_draws: int, steps: float, bar: Progress
    ) -> FloatArray:
        """Draw without keeping anything, and adapt the powers between rounds."""
        if n_draws == 0:
            return powers
        total = 2**N_ROUNDS - 1
        ends = [n_draws * (2 ** (i + 1) - 1) // total for i in range(N_ROUNDS)]
        done = 0
        for number, end in enumerate(ends):
            engine.forget_counts()
            self._run([], engine, end - done, 0, bar)
            done = end
            if number + 1 == N_ROUNDS:
                break
            counts = engine.counts()
            tried = counts["tried"].sum(axis=0)[:-1]
            before = powers
            if (tried > 0).all():
                powers = adapted_powers(powers, counts["exchanged"].sum(axis=0)[:-1] / tried)
            is_moved, is_last = not np.array_equal(powers, before), number + 2 == N_ROUNDS
            if is_moved:
                engine.set_powers(powers.tolist())
            if is_moved or (is_last and engine.top_lack() == "time"):  # otherwise the sums would be the same
                self._sum_top(engine, steps * (1.0 if is_last else ADAPTING_SHARE))
        engine.forget_counts()
        return powers

    def _draw(self, engine: _kernels.Sampler, n_draws: int, thin: int, bar: Progress) -> tuple[Records, bool]:
        """Draw; also return whether an interrupt by the user ended it."""
        records: Records = []
        try:
            self._run(records, engine, n_draws, thin, bar)
        except KeyboardInterrupt:
            return records, True
        return records, False

    def _keep(self, engine: _kernels.Sampler, records: Records, fitted: dict[str, Any] | None = None) -> None:
        """Keep draws, after the earlier ones or as those of a new fit, and what the engine knows beside them.

        All fields change in one step: an interrupt finds the sampler as it was or as it will be.
        """
        draws, kept = [Draws.of(each) for each in records], [Structures.of(each) for each in records]
        moves, best = engine.counts(), max(engine.best(), key=_log_joint)
        if fitted is None:
            draws, kept = [self._draws, *draws], [self._kept, *kept]
            moves = {name: self._moves[name] + moves[name] for name in moves}
            best = max(self._best, best, key=_log_joint)
        vars(self).update(
            fitted or {}, _draws=reduce(Draws.then, draws), _kept=reduce(Structures.then, kept), _moves=moves,
            _best=best, _state=engine.state(), _forest=None,
        )  # fmt: skip
        engine.forget_counts()

    def _running(self) -> _kernels.Sampler:
        """Return the engine, made anew from the state of the chains if need be."""
        if self._engine is None:
            engine = self._make(self._rows, self.powers, [0] * self.n_chains)
            for chain, state in enumerate(self._state):
                engine.restore(chain=chain, **state)
            self._engine, self._needs_sums = engine, True
        return self._engine

    # ---- answers -----------------------------------------------------------------------------------------------------

    def _check_fitted(self) -> None:
        if not hasattr(self, "_rows"):
            raise ValueError("this StructureSampler has no rows yet: call fit(X, y) first")

    @property
    def draws(self) -> Draws:
        """Numbers of every draw, by chain."""
        self._check_fitted()
        return self._draws

    @property
    def structures(self) -> Structures:
        """The structures that were kept."""
        self._check_fitted()
        return self._kept

    @property
    def n_rows(self) -> int:
        self._check_fitted()
        return self._rows.n_rows

    @property
    def posterior(self) -> Forest:
        """The kept structures with equal weights, each with the posterior over its prunings: a posterior average."""
        kept = self.structures
        if "one_against_rest" in self.kinds:
            raise ValueError("splits of one category against the rest are not thresholds: a forest cannot hold them")
        if self._forest is None:
            self._forest = Forest(
                [
                    self._rows.posterior(kept.tree(i, len(self.n_codes)), self.family, kept.one(i)["split_prior"])
                    for i in range(len(kept))
                ],
                n_codes=self.n_codes,
            )
        return self._forest

    def predictive(self, X: ArrayLike, **row_data: Any) -> Predictive:
        """One predictive distribution for each row, averaged over structures and their prunings."""
        return self.posterior.predictive(X, **row_data)

    def probs(self, X: ArrayLike) -> FloatArray:
        """(n_rows, n_classes) probability of each class, for families of classes."""
        return self.posterior.probs(X)

    @property
    def feature_prob(self) -> FloatArray:
        """(n_features,) probability that a region that holds rows is split on each column."""
        return np.asarray(self.draws.used.mean(axis=(0, 1)))

    @property
    def log_evidence(self) -> EvidenceEstimate:
        """Log p(y | X), to the power of the temperature, summed over all trees and splits, with its error."""
        if self.n_temperatures < 2:
            raise ValueError("the evidence is estimated from several temperatures: set n_temperatures to 2 or more")
        draws = self.draws
        return estimate_evidence(draws.own, draws.hotter, draws.colder)

    def map_tree(self) -> ExactTree:
        """The most probable tree that a chain visited, with its splits.

        Its `log_prob` is the log of its posterior probability, by the estimate of the evidence; NaN with one
        temperature.
        """
        self._check_fitted()
        best = self._best
        total = self.log_evidence.value if self.n_temperatures > 1 else float("nan")
        names = ("feature", "code", "first_child", "n_children")
        feature, code, first_child, n_children = (read_only(np.array(best[name])) for name in names)
        log_prob = float(best["log_joint"]) - total
        return ExactTree(feature, code, first_child, n_children, log_prob, tuple(self.kinds))

    @property
    def acceptance(self) -> dict[str, float]:
        """Share of accepted proposals of each move that was made at the target's temperature, and of exchanges of all.

        Where sums over all structures could be computed, each draw is one block, independent of the draw before.
        """
        self._check_fitted()
        moves = self._moves
        proposed, accepted = moves["proposed"].sum(axis=0)[-1], moves["accepted"].sum(axis=0)[-1]
        rates = {name: float(a / p) for name, a, p in zip(MOVES, accepted, proposed, strict=True) if p}
        tried, exchanged = moves["tried"].sum(axis=0)[:-1], moves["exchanged"].sum(axis=0)[:-1]
        if len(tried):
            rates["exchange"] = float((exchanged / np.maximum(tried, 1.0)).mean())
        return rates

    def to_arviz(self) -> Any:
        """The draws for ArviZ (`pip install everytree[arviz]`): its `InferenceData`, from ArviZ 1.0 on a `DataTree`.

        `arviz.summary` of it has R-hat, which tells whether chains agree, effective numbers of draws, and Monte Carlo
        errors of all means.

        Returns
        -------
        arviz.InferenceData or xarray.DataTree
            `posterior` holds the number of leaves, the use of each column and the column of the root;
            `sample_stats` the log evidence of the structures as `lp`, and the share of accepted proposals of each move.
        """
        return inference_data(self.draws, self.acceptance)

    # ---- state ------------------------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if "_engine" in state:
            state["_engine"] = None
        return state

    def __repr__(self) -> str:
        seen = f", n_rows={self.n_rows}, n_draws={self.draws.n_draws}" if hasattr(self, "_rows") else ""
        return f"StructureSampler({len(self.n_codes)} columns, {self.family}, max_depth={self.max_depth}{seen})"


def _log_joint(tree: dict[str, Any]) -> float:
    return float(tree["log_joint"])


def _tell_of_interrupt(records: Records, n_draws: int) -> None:
    n_done = sum(len(each[0]["log_evidence"]) for each in records)
    warnings.warn(f"interrupted after {n_done} of {n_draws} draws: they are kept", stacklevel=3)
