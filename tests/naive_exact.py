"""The slow, obvious twin of `ExactPosterior`: every tree with every choice of splits, written down one by one.

A tree is a nested tuple: `()` is a leaf, `(column, code, children)` a split; the code is the threshold, the category
set apart, or -1 where every category has a child. A region is one tuple of codes a column: those still possible.

`Enumeration` lists all trees, so every answer is a sum over a list. `Recursion` answers the same questions with one
formula a region; it reaches tables that no list would hold, and is itself tested against the list.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import product
from typing import Any

import numpy as np

from naive import take
from naive_families import Family, exact, mp

Codes = tuple[int, ...]
Region = tuple[Codes, ...]
Tree = tuple[Any, ...]
LEAF: Tree = ()


@dataclass(frozen=True)
class Split:
    """One candidate of a region."""

    column: int
    code: int
    children: tuple[Region, ...]


def splits_of_codes(kind: str, codes: Codes) -> list[tuple[int, list[Codes]]]:
    """(code, codes of each child) of every split of one column's codes."""
    if len(codes) < 2:
        return []
    if kind == "ordered":
        return [(t, [tuple(c for c in codes if c <= t), tuple(c for c in codes if c > t)]) for t in codes[:-1]]
    if kind == "one_against_rest":
        apart = codes[:1] if len(codes) == 2 else codes  # of two, the other one set apart is the same split
        return [(c, [(c,), tuple(other for other in codes if other != c)]) for c in apart]
    if kind == "multiway":
        return [(-1, [(c,) for c in codes])]
    raise ValueError(f"kind {kind!r}")


def whole_region(n_codes: Sequence[int]) -> Region:
    """The root: everything is possible."""
    return tuple(tuple(range(m)) for m in n_codes)


def kinds_of(kinds: str | Sequence[str], n_columns: int) -> tuple[str, ...]:
    """One kind a column."""
    return (kinds,) * n_columns if isinstance(kinds, str) else tuple(kinds)


def all_splits(region: Region, kinds: Sequence[str]) -> list[Split]:
    """Every split of a region's codes, rows or not."""
    return [
        Split(k, code, tuple((*region[:k], part, *region[k + 1 :]) for part in parts))
        for k, codes in enumerate(region)
        for code, parts in splits_of_codes(kinds[k], codes)
    ]


def regions_by_depth(n_codes: Sequence[int], max_depth: int, kinds: str | Sequence[str] = "ordered") -> list[int]:
    """How many different regions d splits can lead to, for d = 0 .. max_depth - 1."""
    kind_of = kinds_of(kinds, len(n_codes))
    level, counts = {whole_region(n_codes)}, []
    for _ in range(max_depth):
        counts.append(len(level))
        level = {child for region in level for split in all_splits(region, kind_of) for child in split.children}
    return counts


def n_trees(n_codes: Sequence[int], max_depth: int, kinds: str | Sequence[str] = "ordered") -> int:
    """How many trees there are with candidates="all"."""
    kind_of = kinds_of(kinds, len(n_codes))

    @cache
    def below(region: Region, depth: int) -> int:
        if depth == max_depth:
            return 1
        splits = all_splits(region, kind_of)
        return 1 + sum(math.prod(below(child, depth + 1) for child in split.children) for split in splits)

    return below(whole_region(n_codes), 0)


def nested(tree: Any, node: int = 0) -> Tree:
    """A tree in flat arrays, level order, as a nested tuple."""
    if tree.n_children[node] == 0:
        return LEAF
    first = int(tree.first_child[node])
    children = tuple(nested(tree, first + i) for i in range(int(tree.n_children[node])))
    return int(tree.feature[node]), int(tree.code[node]), children


class Model:
    """Rows and prior: what the list and the recursion have in common.

    Parameters
    ----------
    n_codes : codes of each column;  X : (n_rows, n_columns) codes
    max_depth, split_prior, candidates, kinds : as `ExactPosterior` takes them
    """

    def __init__(
        self,
        n_codes: Sequence[int],
        X: Any,
        max_depth: int,
        split_prior: Any = 0.5,
        *,
        candidates: str = "all",
        kinds: str | Sequence[str] = "ordered",
    ) -> None:
        self.root = whole_region(n_codes)
        self.X = [tuple(map(int, row)) for row in X]
        self.max_depth = max_depth
        self.kinds = kinds_of(kinds, len(n_codes))
        self.only_nontrivial = candidates == "nontrivial"
        self.split_prior: Callable[[int], Any] = split_prior if callable(split_prior) else lambda depth: split_prior
        self.rows: Callable[[Region], list[int]] = cache(self._rows)

    def _rows(self, region: Region) -> list[int]:
        """Numbers of the rows in a region."""
        return [i for i, x in enumerate(self.X) if all(map(tuple.__contains__, region, x))]

    def candidates(self, region: Region, depth: int) -> list[Split]:
        """The splits that a region at this depth chooses from."""
        if depth >= self.max_depth:
            return []
        splits = all_splits(region, self.kinds)
        if self.only_nontrivial:
            splits = [s for s in splits if sum(bool(self.rows(child)) for child in s.children) > 1]
        return splits

    def child_of(self, region: Region, column: int, code: int) -> tuple[Region, ...]:
        """The children that a split of a tree stands for."""
        return next(s.children for s in all_splits(region, self.kinds) if (s.column, s.code) == (column, code))

    def nodes(self, tree: Tree, region: Region | None = None) -> Iterator[tuple[Tree, Region]]:
        """Each subtree with its region."""
        region = self.root if region is None else region
        yield tree, region
        if tree:
            for child, part in zip(tree[2], self.child_of(region, *tree[:2]), strict=True):
                yield from self.nodes(child, part)


class Enumeration(Model):
    """Every (T, k) with its probability.

    Parameters
    ----------
    family : a family of `naive_families`;  y, weights, row_data : its rows
    rational : work with fractions throughout; families and priors that are rational only
    """

    def __init__(
        self,
        n_codes: Sequence[int],
        family: Family,
        X: Any,
        y: Any,
        max_depth: int,
        split_prior: Any = 0.5,
        weights: Any = None,
        *,
        candidates: str = "all",
        kinds: str | Sequence[str] = "ordered",
        rational: bool = False,
        **row_data: Any,
    ) -> None:
        super().__init__(n_codes, X, max_depth, split_prior, candidates=candidates, kinds=kinds)
        self.family, self.columns = family, (y, weights, row_data)
        self.number = Fraction if rational else exact
        self.evidence: Callable[[Region], Any] = cache(self._fraction if rational else self._evidence)
        self.below: Callable[[Region, int], list[tuple[Tree, Any, Any]]] = cache(self._below)
        joint = [(tree, prior * likelihood) for tree, prior, likelihood in self.below(self.root, 0)]
        self.evidence_of_all = sum(weight for _, weight in joint)
        self.prob = {tree: weight / self.evidence_of_all for tree, weight in joint if weight != 0}

    def _evidence(self, region: Region) -> Any:
        """The evidence of a region's rows, were it a leaf."""
        return mp.exp(self.family.exact_log_evidence(**take(self.rows(region), *self.columns)))

    def _fraction(self, region: Region) -> Fraction:
        """The same as an exact rational."""
        return self.family.evidence_fraction(**take(self.rows(region), *self.columns))

    def _below(self, region: Region, depth: int) -> list[tuple[Tree, Any, Any]]:
        """(tree, prior, likelihood) of every tree at a region."""
        splits = self.candidates(region, depth)
        g = self.number(self.split_prior(depth)) if splits else self.number(0)
        trees = [(LEAF, 1 - g, self.evidence(region))]
        for split in splits:
            for parts in product(*(self.below(child, depth + 1) for child in split.children)):
                children, priors, likelihoods = zip(*parts, strict=True)
                prior = g / len(splits) * math.prod(priors)
                trees.append(((split.column, split.code, children), prior, math.prod(likelihoods)))
        return trees

    # The trees

    def n_leaves(self, tree: Tree) -> int:
        return sum(map(self.n_leaves, tree[2])) if tree else 1

    def splits_with_rows(self, tree: Tree) -> list[int]:
        """The column of each split of a region that holds rows."""
        return [node[0] for node, region in self.nodes(tree) if node and self.rows(region)]

    def leaf_of(self, tree: Tree, x: Sequence[int]) -> Region:
        """The leaf that a row ends in; a row that does not know the answer ends where it is asked."""
        region = self.root
        while tree and x[tree[0]] in self.root[tree[0]]:
            parts = self.child_of(region, *tree[:2])
            at = next(i for i, part in enumerate(parts) if x[tree[0]] in part[tree[0]])
            tree, region = tree[2][at], parts[at]
        return region

    # Sums over all of them

    def mean_of(self, value: Callable[[Tree], Any]) -> float:
        """Expectation over p(T, k | data)."""
        return float(sum(p * value(tree) for tree, p in self.prob.items()))

    @property
    def n_columns(self) -> int:
        return len(self.root)

    @property
    def log_evidence(self) -> float:
        return float(mp.log(exact(self.evidence_of_all)))

    @cached_property
    def log_prob(self) -> dict[Tree, float]:
        """log p(T, k | data) of every tree."""
        return {tree: float(mp.log(exact(p))) for tree, p in self.prob.items()}

    @property
    def split_prob_root(self) -> float:
        return self.mean_of(bool)

    @property
    def root_feature_prob(self) -> np.ndarray:
        return np.array([self.mean_of(lambda tree, k=k: bool(tree) and tree[0] == k) for k in range(self.n_columns)])

    @cached_property
    def _used(self) -> dict[Tree, list[int]]:
        return {tree: self.splits_with_rows(tree) for tree in self.prob}

    @property
    def feature_prob(self) -> np.ndarray:
        return np.array([self.mean_of(lambda tree, k=k: k in self._used[tree]) for k in range(self.n_columns)])

    @property
    def expected_splits(self) -> np.ndarray:
        return np.array([self.mean_of(lambda tree, k=k: self._used[tree].count(k)) for k in range(self.n_columns)])

    def expected_leaves(self) -> float:
        return self.mean_of(self.n_leaves)

    def entropy(self) -> float:
        """Of p(T, k | data), in nats."""
        return float(-mp.fsum(exact(p) * mp.log(exact(p)) for p in self.prob.values()))

    # Prediction

    def leaf_prob(self, x: Sequence[int]) -> dict[Region, Any]:
        """For each region that may be the leaf of a row, the probability that it is."""
        prob: dict[Region, Any] = {}
        for tree, p in self.prob.items():
            leaf = self.leaf_of(tree, x)
            prob[leaf] = prob.get(leaf, 0) + p
        return prob

    def _leaves(self, x: Sequence[int]) -> list[tuple[Any, dict[str, Any]]]:
        """(probability, rows) of each of them."""
        return [(exact(p), take(self.rows(region), *self.columns)) for region, p in self.leaf_prob(x).items()]

    def log_predictive(self, x: Sequence[int], y_new: Any, row_data_new: dict[str, Any] | None = None) -> float:
        """log p(y_new | x, data)."""
        logs = [
            (p, self.family.exact_log_predictive(y_new, row_data_new=row_data_new, **rows))
            for p, rows in self._leaves(x)
        ]
        return float(mp.log(mp.fsum(p * mp.exp(value) for p, value in logs)))

    def moments(self, x: Sequence[int], row_data_new: dict[str, Any] | None = None) -> tuple[float, float]:
        """Mean and variance of p(y_new | x, data)."""
        parts = [(p, *self.family.exact_moments(row_data_new=row_data_new, **rows)) for p, rows in self._leaves(x)]
        mean = mp.fsum(p * m for p, m, _ in parts)
        if mean == mp.inf:
            return math.inf, math.inf
        return float(mean), float(mp.fsum(p * (v + (m - mean) ** 2) for p, m, v in parts))

    def probs(self, x: Sequence[int]) -> np.ndarray:
        """P(y_new = c | x, data) of each class."""
        weighted = [[p * q for q in self.family.exact_probs(**rows)] for p, rows in self._leaves(x)]
        return np.array([float(mp.fsum(of_class)) for of_class in zip(*weighted, strict=True)])


@dataclass(frozen=True)
class Fate:
    """What the posterior says about one region at one depth, and about everything below it.

    Attributes
    ----------
    log_evidence : log Q
    log_best : log of the largest p(T, k) p(y | T, k) of one tree
    log_stop, log_split : log posterior probability of being a leaf, and of each candidate
    splits : expected number of splits of regions with rows, by column
    unused : probability that there is none, by column
    """

    log_evidence: float
    log_best: float
    log_stop: float
    log_split: list[float]
    candidates: list[Split]
    leaves: float
    entropy: float
    splits: np.ndarray
    unused: np.ndarray


class Recursion(Model):
    """The same answers by Q(S) = (1 - g) leaf(S) + g * mean over candidates of prod over children Q(child).

    Parameters
    ----------
    family : the library's own family;  y, weights, row_data : its rows
    """

    def __init__(
        self,
        n_codes: Sequence[int],
        family: Any,
        X: Any,
        y: Any,
        max_depth: int,
        split_prior: Any = 0.5,
        weights: Any = None,
        *,
        candidates: str = "all",
        kinds: str | Sequence[str] = "ordered",
        **row_data: Any,
    ) -> None:
        super().__init__(n_codes, X, max_depth, split_prior, candidates=candidates, kinds=kinds)
        self.family = family
        weight = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=float)
        self._statistics = family.statistics(np.asarray(y), weight, **row_data)
        self.statistics: Callable[[Region], np.ndarray] = cache(lambda r: self._statistics[self.rows(r)].sum(axis=0))
        self.leaf: Callable[[Region], float] = cache(
            lambda region: float(family.log_evidence(self.statistics(region)[None])[0])
        )
        self.fate: Callable[[Region, int], Fate] = cache(self._fate)

    def _fate(self, region: Region, depth: int) -> Fate:
        n_columns, leaf, here = len(self.root), self.leaf(region), bool(self.rows(region))
        candidates = self.candidates(region, depth)
        none, ones = np.zeros(n_columns), np.ones(n_columns)
        if not candidates:
            return Fate(leaf, leaf, 0.0, [], [], 1.0, 0.0, none, ones)
        log_g, log_not_g = (_log(g) for g in (self.split_prior(depth), 1 - self.split_prior(depth)))
        below = [[self.fate(child, depth + 1) for child in split.children] for split in candidates]
        each = log_g - math.log(len(candidates))
        log_split = [each + sum(child.log_evidence for child in children) for children in below]
        log_best = [each + sum(child.log_best for child in children) for children in below]
        total = _log_sum([log_not_g + leaf, *log_split])
        log_stop, log_split = log_not_g + leaf - total, [term - total for term in log_split]
        leaves, entropy = math.exp(log_stop), _minus_p_log_p(log_stop)
        splits, unused = none.copy(), ones * math.exp(log_stop)
        for split, log_p, children in zip(candidates, log_split, below, strict=True):
            p, is_asked = math.exp(log_p), (np.arange(n_columns) == split.column) & here
            leaves += p * sum(child.leaves for child in children)
            entropy += _minus_p_log_p(log_p) + p * sum(child.entropy for child in children)
            splits += p * (is_asked + sum(child.splits for child in children))
            unused += p * ~is_asked * math.prod(child.unused for child in children)
        best = max(log_not_g + leaf, *log_best)
        return Fate(total, best, log_stop, log_split, candidates, leaves, entropy, splits, unused)

    @property
    def top(self) -> Fate:
        """At the root."""
        return self.fate(self.root, 0)

    def leaf_prob(self, x: Sequence[int]) -> dict[Region, float]:
        """For each region that may be the leaf of a row, the probability that it is."""
        prob: dict[Region, float] = {}
        level = {self.root: 1.0}
        for depth in range(self.max_depth + 1):
            below: dict[Region, float] = {}
            for region, mass in level.items():
                fate = self.fate(region, depth)
                prob[region] = prob.get(region, 0.0) + mass * math.exp(fate.log_stop)
                for split, log_p in zip(fate.candidates, fate.log_split, strict=True):
                    if x[split.column] not in self.root[split.column]:
                        prob[region] += mass * math.exp(log_p)
                        continue
                    child = next(part for part in split.children if x[split.column] in part[split.column])
                    below[child] = below.get(child, 0.0) + mass * math.exp(log_p)
            level = below
        return {region: p for region, p in prob.items() if p > 0.0}

    def log_predictive(self, x: Sequence[int], y_new: Any, row_data_new: dict[str, Any] | None = None) -> float:
        """log p(y_new | x, data)."""
        prob = self.leaf_prob(x)
        data = {name: np.array([value] * len(prob)) for name, value in (row_data_new or {}).items()}
        leaves = self.family.predictive(np.stack([self.statistics(region) for region in prob]), **data)
        return _log_sum(list(np.log(list(prob.values())) + leaves.log_prob(np.full(len(prob), y_new))))


def _log(g: float) -> float:
    return math.log(g) if g > 0 else -math.inf


def _log_sum(terms: list[float]) -> float:
    return float(np.logaddexp.reduce(terms))


def _minus_p_log_p(log_p: float) -> float:
    return 0.0 if log_p == -math.inf else -math.exp(log_p) * log_p
