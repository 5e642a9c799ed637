"""The draws of all chains: numbers of every draw, and the structures that were kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from inspect import signature
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.trees.metatree import MetaTree


@dataclass(frozen=True)
class Recorded:
    """Arrays that a kernel has recorded, in the order of time."""

    time_axis: ClassVar[int] = 0

    @classmethod
    def names(cls) -> list[str]:
        return [field.name for field in fields(cls)]

    def then(self, other: Self) -> Self:
        """These and those after them."""
        pairs = {name: (getattr(self, name), getattr(other, name)) for name in self.names()}
        return type(self)(**{name: np.concatenate(both, axis=self.time_axis) for name, both in pairs.items()})


@dataclass(frozen=True)
class Draws(Recorded):
    """Numbers of every draw, by chain."""

    time_axis: ClassVar[int] = 1

    log_evidence: FloatArray  # (n_chains, n_draws): log evidence of the structure, its prunings and leaves summed out
    n_leaves: FloatArray  # (n_chains, n_draws): expected number of leaves, over the prunings of the structure
    # (n_chains, n_draws, n_features): probability that each column is used, over the prunings of the structure
    used: FloatArray
    root_column: NDArray[np.int32]  # (n_chains, n_draws) int32: the split of the root; -1 where it has none
    root_code: NDArray[np.int32]
    # (n_chains, n_draws, n_temperatures): log evidence of the structure at each power of the evidence, at that power
    # and at the ones before and after
    own: FloatArray
    hotter: FloatArray
    colder: FloatArray

    @classmethod
    def of(cls, records: Sequence[Mapping[str, NDArray[Any]]]) -> Self:
        """From the records of a kernel, one per chain."""
        return cls(**{name: np.stack([record[name] for record in records]) for name in cls.names()})

    @property
    def n_chains(self) -> int:
        return len(self.log_evidence)

    @property
    def n_draws(self) -> int:
        return int(self.log_evidence.shape[1])


@dataclass(frozen=True)
class Structures(Recorded):
    """Structures in level order, one after another."""

    sizes: NDArray[np.int64]  # (n_structures,)
    # (n_nodes,) int32: as in `MetaTree`; the code is the threshold, the single category, or -1 for a split into all
    # categories
    feature: NDArray[np.int32]
    code: NDArray[np.int32]
    first_child: NDArray[np.int32]
    n_children: NDArray[np.int32]
    # (n_nodes,): prior and posterior probability that a node is split, given that it is in the tree; 0 at terminals
    split_prior: FloatArray
    split_prob: FloatArray

    @classmethod
    def of(cls, records: Sequence[Mapping[str, NDArray[Any]]]) -> Self:
        """From the records of a kernel, one per chain."""
        return cls(**{name: np.concatenate([record[name] for record in records]) for name in cls.names()})

    def __len__(self) -> int:
        return len(self.sizes)

    def one(self, number: int) -> dict[str, NDArray[Any]]:
        """The arrays of one structure."""
        start = int(self.sizes[:number].sum())
        own = slice(start, start + int(self.sizes[number]))
        return {name: getattr(self, name)[own] for name in self.names()[1:]}

    def tree(self, number: int, n_features: int) -> MetaTree:
        """One structure as a meta-tree."""
        own = self.one(number)
        return MetaTree.from_arrays(
            own["feature"], own["first_child"], own["n_children"], own["code"], n_features=n_features
        )


def inference_data(draws: Draws, acceptance: Mapping[str, float]) -> Any:
    """Make ArviZ's `InferenceData`, from ArviZ 1.0 on a `DataTree`, of draws and the shares of accepted proposals."""
    try:
        import arviz
    except ImportError as error:
        raise ImportError("to_arviz() needs ArviZ: pip install everytree[arviz]") from error
    shape = draws.log_evidence.shape
    groups = {
        "posterior": {"n_leaves": draws.n_leaves, "used": draws.used, "root_column": draws.root_column},
        "sample_stats": {
            "lp": draws.log_evidence,
            **{f"acceptance_{name}": np.full(shape, rate) for name, rate in acceptance.items()},
        },
    }
    if "posterior" in signature(arviz.from_dict).parameters:  # before ArviZ 1.0
        return arviz.from_dict(**groups, dims={"used": ["column"]})
    return arviz.from_dict(groups, dims={"used": ["column"]})
