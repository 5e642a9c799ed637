"""Sums of the values of many small trees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree import _kernels
from everytree.base.arrays import FloatArray, as_codes
from everytree.base.checks import resolve_n_jobs
from everytree.trees.metatree import MetaTree, read_only

NODE_ARRAYS = ("feature", "first_child", "threshold", "missing_child")


class AdditiveTrees:
    """Trees whose values add up to scores.

    A tree has a value for each output in every node, or one value, which tree t adds to output t % n_outputs.

    Parameters
    ----------
    n_nodes : (n_trees,) int32
    nodes : mapping of str to (n nodes of all trees,) int32
        `feature`, `first_child`, `threshold` and `missing_child` of each tree as in `MetaTree`, one after another.
    value : (n nodes of all trees, n_values) float64
        Of each output, or one number, which may be given as (n nodes of all trees,). Added to the scores of a row that
        ends in the node: a terminal, or a node above that splits on a value which it has not seen.
    base : (n_outputs,) float64
        Score without any tree.
    n_codes : (n_features,) int
        Codes of a column that are known.
    mass : (n nodes of all trees,) float64 or None
        Weight of the rows of fit in each node; None where it is not known.
    """

    def __init__(
        self,
        n_nodes: NDArray[np.int32],
        nodes: dict[str, NDArray[np.int32]],
        value: FloatArray,
        base: FloatArray,
        n_codes: NDArray[Any],
        mass: FloatArray | None = None,
    ) -> None:
        self.mass = None if mass is None else read_only(mass)
        self.n_nodes, self.base = read_only(n_nodes), read_only(base)
        self.value = read_only(value if value.ndim == 2 else value[:, None])
        self.nodes = {name: read_only(nodes[name]) for name in NODE_ARRAYS}
        self.n_codes = read_only(np.asarray(n_codes, dtype=np.uint16))
        self._kernel = _kernels.additive_trees(
            n_nodes=self.n_nodes, value=self.value, n_outputs=len(base), known=self.n_codes, **self.nodes
        )

    @classmethod
    def average(
        cls, every: Sequence[AdditiveTrees], factor: float = 1.0, *, unit: float = 1.0, shift: float = 0.0
    ) -> AdditiveTrees:
        """The trees whose scores are the mean of the scores of these, in a unit and after a shift.

        By a factor they go farther, or less far, from the scores without any tree; with factor 0 no tree is left.
        """
        base = shift + unit * np.mean([one.base for one in every], axis=0)
        if factor == 0.0:
            none = np.empty(0, dtype=np.int32)
            return cls(none, dict.fromkeys(NODE_ARRAYS, none), np.empty(0), base, every[0].n_codes, np.empty(0))
        share = unit * factor / len(every)
        known = [one.mass for one in every if one.mass is not None]
        return cls(
            np.concatenate([one.n_nodes for one in every]),
            {name: np.concatenate([one.nodes[name] for one in every]) for name in NODE_ARRAYS},
            np.concatenate([one.value * share for one in every]),
            base,
            every[0].n_codes,
            np.concatenate(known) if len(known) == len(every) else None,
        )

    def __len__(self) -> int:
        return len(self.n_nodes)

    @property
    def n_outputs(self) -> int:
        return len(self.base)

    @property
    def n_values(self) -> int:
        """Values of a node: one, or one for each output."""
        return int(self.value.shape[1])

    @property
    def first_output(self) -> NDArray[np.int32]:
        """(n_trees,) the output to which the first value of each tree is added."""
        return (np.arange(len(self)) * self.n_values % self.n_outputs).astype(np.int32)

    def scores(self, X: Any, *, n_jobs: int | None = None) -> FloatArray:
        """(n_rows, n_outputs) for a table of codes."""
        jobs = resolve_n_jobs(n_jobs)
        scores = self._kernel.scores(X, jobs)
        if scores is None:
            scores = self._kernel.scores(as_codes(X), jobs)
        assert scores is not None, "as_codes promises arrays that the kernels read"
        return np.asarray(scores + self.base)

    def mass_of(self, X: Any, weight: FloatArray | None = None, *, n_jobs: int | None = None) -> FloatArray:
        """(n nodes of all trees,) weight of the rows of a table of codes in each node; 1 for each row by default.

        Rows that stop at a split, since it has no branch for their value, are not counted.
        """
        jobs = resolve_n_jobs(n_jobs)
        mass = self._kernel.count(X, weight, jobs)
        if mass is None:
            mass = self._kernel.count(as_codes(X), weight, jobs)
        assert mass is not None, "as_codes promises arrays that the kernels read"
        return mass

    def metatrees(self) -> list[tuple[MetaTree, FloatArray]]:
        """Each tree, and the (n_nodes, n_values) values of its nodes."""
        ends = np.cumsum(self.n_nodes)
        found = []
        for start, end in zip(ends - self.n_nodes, ends, strict=True):
            arrays = {name: array[start:end] for name, array in self.nodes.items()}
            arrays["n_children"] = np.where(arrays["feature"] >= 0, 2, 0).astype(np.int32)
            tree = MetaTree.from_checked_arrays(arrays, len(self.n_codes))
            found.append((tree, self.value[start:end]))
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_kernel"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]
