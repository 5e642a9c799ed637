"""Saving and restoring a sampler, chains included, as plain values and arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from everytree import _kernels
from everytree.base.checks import whole_number
from everytree.base.randomness import RandomSource
from everytree.exact.posterior import read_codes
from everytree.families.base import NativeFamily
from everytree.posterior.split_prior import SplitPriorLike
from everytree.sampling.answers import MOVE_COUNTS, TREE_ARRAYS, SamplerSummaries
from everytree.sampling.draws import Draws, Structures
from everytree.sampling.points import DistinctRows
from everytree.trees.metatree import read_only


class StoredSampler(SamplerSummaries):
    """State of a `StructureSampler`."""

    max_depth: int | None
    split_prior: SplitPriorLike
    candidates: str
    temperature: float
    n_chains: int
    block_depth: int | Literal["auto"]
    start: str
    random_state: RandomSource
    n_jobs: int | None
    _thin: int
    _top_steps: float = 0.0
    _needs_sums: bool
    _state: list[dict[str, Any]]
    _engine: _kernels.Sampler | None

    if TYPE_CHECKING:  # of the sampler itself

        def __init__(self, *, family: NativeFamily, **plain: Any) -> None: ...
        def _running(self) -> _kernels.Sampler: ...

    def to_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Plain values and arrays from which `from_state` makes the same sampler, chains included."""
        seed = self.random_state
        plain: dict[str, Any] = {
            "n_codes": self.n_codes, "max_depth": self.max_depth, "split_prior": self.split_prior,
            "candidates": self.candidates, "kinds": list(self.kinds), "temperature": self.temperature,
            "n_chains": self.n_chains, "n_temperatures": self.n_temperatures, "block_depth": self.block_depth,
            "start": self.start, "n_jobs": self.n_jobs,
            "random_state": int(seed) if isinstance(seed, int | np.integer) else None,
        }  # fmt: skip
        if not hasattr(self, "_rows"):
            return plain, {}
        return plain | self._fitted_values(), self._fitted_arrays()

    def _fitted_values(self) -> dict[str, Any]:
        return {
            "thin": self._thin, "top_steps": self._top_steps, "n_rows": self._rows.n_rows,
            "log_joint": float(self._best["log_joint"]),
            "random": [int(state["random"]) for state in self._state],
            "n_before": [int(state["n_draws"]) for state in self._state],
        }  # fmt: skip

    def _fitted_arrays(self) -> dict[str, NDArray[Any]]:
        return {
            "codes": self._rows.codes, "statistics": self._rows.statistics, "powers": self.powers,
            **{f"draws_{name}": getattr(self.draws, name) for name in Draws.names()},
            **{f"kept_{name}": getattr(self.structures, name) for name in Structures.names()},
            **{f"moves_{name}": self._moves[name] for name in MOVE_COUNTS},
            **{f"best_{name}": np.asarray(self._best[name]) for name in TREE_ARRAYS},
            "chain_sizes": np.stack([state["sizes"] for state in self._state]),
            "chain_columns": np.concatenate([state["columns"] for state in self._state]),
            "chain_codes": np.concatenate([state["codes"] for state in self._state]),
        }  # fmt: skip

    @classmethod
    def from_state(cls, family: NativeFamily, plain: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Rebuild a sampler; rows, structures and the state of the chains are checked."""
        names = ("thin", "top_steps", "n_rows", "log_joint", "random", "n_before")
        fitted = {name: plain.pop(name) for name in names if name in plain}
        sampler = cls(family=family, **plain)
        if not fitted:
            return sampler
        codes = read_codes(arrays["codes"], sampler.n_codes)
        statistics = family.checked_statistics(arrays["statistics"])
        if len(codes) != len(statistics):
            raise ValueError(f"there are {len(codes)} rows of codes, but {len(statistics)} of statistics")
        sampler._rows = DistinctRows(codes, statistics, whole_number("n_rows", fitted["n_rows"], len(codes)))
        sampler._thin, sampler.powers = whole_number("thin", fitted["thin"], 1), read_only(arrays["powers"])
        sampler._top_steps = _checked_steps(fitted.get("top_steps", 0.0))
        sampler._draws = Draws(**{name: arrays[f"draws_{name}"] for name in Draws.names()})
        sampler._kept = Structures(**{name: arrays[f"kept_{name}"] for name in Structures.names()})
        sampler._draws.check(sampler.n_chains, len(sampler.n_codes), sampler.n_temperatures)
        sampler._kept.check(len(sampler.n_codes))
        sampler._best = {name: arrays[f"best_{name}"] for name in TREE_ARRAYS} | {"log_joint": fitted["log_joint"]}
        sampler._moves = {name: arrays[f"moves_{name}"] for name in MOVE_COUNTS}
        sampler._state = _chain_states(fitted["random"], fitted["n_before"], arrays)
        sampler._forest, sampler._engine = None, None
        sampler._running()
        return sampler


_WHOLE = {"root_column", "root_code", "feature", "code", "first_child", "n_children"}

ARRAY_TYPES: dict[str, type[np.generic]] = {
    "codes": np.uint16, "powers": np.float64,
    **{f"draws_{name}": np.int32 if name in _WHOLE else np.float64 for name in Draws.names()},
    **{f"kept_{name}": np.int32 if name in _WHOLE else np.float64 for name in Structures.names()},
    "kept_sizes": np.int64,
    "moves_proposed": np.int64, "moves_accepted": np.int64, "moves_exchanged": np.float64, "moves_tried": np.float64,
    **{f"best_{name}": np.int32 for name in TREE_ARRAYS},
    "chain_sizes": np.int64, "chain_columns": np.int32, "chain_codes": np.int32,
}  # fmt: skip
"""Arrays of `StoredSampler.to_state` except the statistics, and their types."""


def _checked_steps(steps: Any) -> float:
    if isinstance(steps, bool) or not isinstance(steps, int | float) or not 0.0 <= steps < float("inf"):
        raise ValueError(f"top_steps must be a number from 0 on, but is {steps!r}")
    return float(steps)


def _chain_states(random: list[int], n_before: list[int], arrays: dict[str, NDArray[Any]]) -> list[dict[str, Any]]:
    """The state of each chain, as the kernel takes it."""
    sizes = arrays["chain_sizes"]
    if sizes.ndim != 2 or not len(sizes) == len(random) == len(n_before) or (sizes < 0).any():
        raise ValueError("chain_sizes must have one row for each chain")
    ends = np.cumsum(sizes.sum(axis=1))
    if len(arrays["chain_columns"]) != ends[-1] or len(arrays["chain_codes"]) != ends[-1]:
        raise ValueError(f"chain_columns and chain_codes must have {ends[-1]} entries")
    return [
        {
            "random": random[i], "n_draws": n_before[i], "sizes": np.ascontiguousarray(sizes[i]),
            "columns": np.ascontiguousarray(arrays["chain_columns"][ends[i] - sizes[i].sum() : ends[i]]),
            "codes": np.ascontiguousarray(arrays["chain_codes"][ends[i] - sizes[i].sum() : ends[i]]),
        }
        for i in range(len(sizes))
    ]  # fmt: skip
