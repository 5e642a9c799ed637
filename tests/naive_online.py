"""The slow twin of an online forest: recursion over a recorded structure, with all rows at hand."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import naive_families
from naive_families import mp

WORD = 2**64 - 1


@dataclass(frozen=True)
class Cell:
    """A node: what it asks, when it is split, and its number in the arrays of the model."""

    number: int
    time: float
    feature: Any = None
    threshold: float = 0.0
    missing_right: bool = False
    left: Cell | None = None
    right: Cell | None = None

    @property
    def children(self) -> list[Cell]:
        return [] if self.left is None or self.right is None else [self.left, self.right]


def recorded(model: Any, tree: int) -> Cell:
    """The present structure of one tree."""
    nodes = model.trees.arrays["nodes"]
    names = {column: name for name, column in model.trees.features.index.items()}

    def cell(s: int) -> Cell:
        node = nodes[s]
        if node["left"] < 0:
            return Cell(s, np.inf)
        below = cell(int(node["left"])), cell(int(node["right"]))
        asked = names[int(node["feature"])], float(node["threshold"]), bool(node["missing_right"])
        return Cell(s, float(node["time"]), *asked, *below)

    return cell(int(model.trees.roots[tree, 0]))


def every_cell(cell: Cell) -> list[Cell]:
    return [cell, *(below for child in cell.children for below in every_cell(child))]


# ---- rows ----------------------------------------------------------------------------------------------------


def scramble(x: int) -> int:
    x = (x + 0x9E3779B97F4A7C15) & WORD
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & WORD
    return x ^ (x >> 31)


def place_of_category(text: str, seed: int, tree: int) -> float:
    """Texts are scrambled byte by byte, and once more in each tree."""
    data = text.encode()
    word = len(data)
    for byte in data:
        word = scramble(word ^ byte)
    (bits,) = struct.unpack("<Q", struct.pack("<d", (word >> 11) * 2.0**-53))
    return (scramble(bits ^ scramble((scramble(seed) + tree) & WORD)) >> 11) * 2.0**-53


def goes_right(cell: Cell, row: dict[Any, Any], seed: int, tree: int) -> bool:
    """Missing values go where the split says, numbers above the threshold go right."""
    value = row.get(cell.feature)
    if value is None or value != value:
        return cell.missing_right
    if isinstance(value, str):
        value = place_of_category(value, seed, tree)
    return bool(float(value) > cell.threshold)


def divided(cell: Cell, rows: Sequence[Any], seed: int, tree: int) -> tuple[list[int], list[int]]:
    """Numbers of the rows that go left and right."""
    right = [goes_right(cell, row, seed, tree) for row in rows]
    return [i for i, r in enumerate(right) if not r], [i for i, r in enumerate(right) if r]


# ---- evidence ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Model:
    """What a tree is, beside its structure."""

    family: naive_families.Family
    split_prior: float
    seed: int
    tree: int

    def goes_on(self, above: float, time: float) -> Any:
        """Prior probability that detail goes on from one time to another: split_prior each time 1 + time doubles."""
        return mp.mpf(self.split_prior) ** mp.log((1 + mp.mpf(time)) / (1 + mp.mpf(above)), 2)

    def evidence(
        self, cell: Cell, rows: Sequence[Any], ys: Sequence[float], weights: Sequence[float], above: float = 0.0
    ) -> Any:
        """Theorem 1 on all rows, in plain numbers of 60 digits."""
        leaf = mp.exp(self.family.exact_log_evidence(list(ys), list(weights))) if ys else mp.mpf(1)
        if not cell.children:
            return leaf
        split = self.goes_on(above, cell.time)
        product = mp.mpf(1)
        for child, mine in zip(cell.children, divided(cell, rows, self.seed, self.tree), strict=True):
            some = [[column[i] for i in mine] for column in (rows, ys, weights)]
            product *= self.evidence(child, *some, cell.time)
        return (1 - split) * leaf + split * product

    def log_evidence(self, cell: Cell, rows: Sequence[Any], ys: Sequence[float], weights: Any = None) -> float:
        return float(mp.log(self.evidence(cell, rows, ys, [1.0] * len(ys) if weights is None else weights)))

    def predictive(self, cell: Cell, rows: list[Any], ys: list[float], weights: list[float], x: Any, y: float) -> float:
        """Probability or density of one more row, by the chain rule."""
        more = self.evidence(cell, [*rows, x], [*ys, y], [*weights, 1.0])
        return float(more / self.evidence(cell, rows, ys, weights))
