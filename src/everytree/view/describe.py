"""The common part of all pictures of a posterior: which nodes to draw, and their texts.

`describe` picks the nodes and words once; text, html and plot only arrange them. Nothing here needs a library for
drawing.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import LARGEST_CODE, FloatArray
from everytree.base.checks import whole_number
from everytree.base.errors import ArgumentError
from everytree.base.words import number_of, short_number
from everytree.families.base import NativeFamily
from everytree.predictive.restricted import restricted_mean, time_text
from everytree.tables.code_names import NOTHING, Codes, CodeWords, one_line
from everytree.trees.metatree import MetaTree
from everytree.view.colours import CLASS_COLOURS as CLASS_COLOURS

if TYPE_CHECKING:
    from everytree.posterior.posterior import Posterior

CodeNames = Sequence[Sequence[Any] | None] | Mapping[int, Sequence[Any] | None]

MIN_HELPS = 0.5
"""By default, trees are drawn without splits that are less likely than this to help rows they were not chosen on."""

SHOW_ALL = "min_helps=0"
"""The option of all pictures with which no split is left out."""

MAX_CLASSES = 8
"""Number of colours that can be told apart; if there are more classes, the less frequent ones are drawn together."""


@dataclass(frozen=True)
class Outcome:
    """The predictive distribution of a node that is a leaf; fields that the family does not have are empty or NaN."""

    probs: tuple[float, ...] = ()  # one for each of `Drawing.classes`
    mean: float = math.nan
    std: float = math.nan
    coefficients: tuple[float, ...] = ()  # posterior mean of a linear regression, if no inputs were given to predict at
    # Of times, some of which were cut short: the median, and the longest time that was seen. The mean is then that of
    # times up to it, and has no standard deviation.
    median: float = math.nan
    last_time: float = math.nan


@dataclass(frozen=True)
class DrawnNode:
    """One node of a drawing; `parent` and `children` are positions in `Drawing.nodes`."""

    number: int  # its number in the meta-tree
    parent: int  # -1 at the root
    children: tuple[int, ...]
    depth: int
    is_terminal: bool  # whether it is drawn as a leaf: its split may be left out
    answer: str  # the condition that leads here; empty at the root
    question: str  # the name of the feature it splits on; empty where it is drawn as a leaf
    split_prob: float  # 0 at a terminal of the meta-tree
    helps: float  # probability that the split helps rows on which it was not chosen; NaN where it is not known
    node_prob: float  # p(s in T), the product of `split_prob` above
    weight: float | None  # weight of the rows it has seen, in units of `Drawing.unit`
    n_hidden: int  # nodes below that are not drawn here nor below a drawn child
    outcome: Outcome

    @property
    def shown_prob(self) -> float:
        """The probability that pictures show: that the split helps other rows, or where that is not known, that of the
        split given the rows."""
        return self.split_prob if math.isnan(self.helps) else self.helps


@dataclass(frozen=True)
class Drawing:
    """The nodes to draw, parents before children and siblings in order (depth first)."""

    nodes: tuple[DrawnNode, ...]
    classes: tuple[str, ...]  # names of the classes, empty for families without
    unit: str  # the unit of `DrawnNode.weight`: "rows", or what the family keeps instead
    # ends of a scale for means and standard deviations, the same for all nodes; None where there are none
    scale: tuple[float, float] | None
    has_helps: bool = False  # whether it is known which splits help other rows
    n_left_out: int = 0  # splits of the meta-tree that are left out, since they or one above do not help other rows

    @property
    def left_out(self) -> str:
        """How many splits are left out, and how to see them; empty if there are none."""
        if not self.n_left_out:
            return ""
        many = number_of(self.n_left_out, "split")
        does, is_are, them = ("does", "is", "it") if self.n_left_out == 1 else ("do", "are", "them")
        return f"{many} that {does} not help other rows {is_are} left out; {SHOW_ALL} shows {them}"

    @property
    def shown_words(self) -> str:
        """Meaning of the numbers on splits."""
        if self.has_helps:
            return "probability that the split helps rows it was not grown on"
        return "probability that the node is split"

    def on_scale(self, value: float) -> float:
        """Position of a value between the ends of the scale, from 0 to 1."""
        low, high = self.scale or (0.0, 0.0)
        if high <= low:
            return 0.5
        return min(max((value - low) / (high - low), 0.0), 1.0)


def describe(
    post: Posterior,
    *,
    feature_names: Sequence[Any] | None = None,
    code_names: CodeNames | None = None,
    class_names: Sequence[Any] | None = None,
    max_depth: int = 4,
    max_nodes: int = 60,
    helps: FloatArray | None = None,
    min_helps: float = MIN_HELPS,
    last_time: float | None = None,
    baseline: Any = None,
    **row_data: Any,
) -> Drawing:
    """Choose the part of a posterior's meta-tree that is worth drawing.

    Nodes are taken in the order of their probability of being in the tree, in a tie those with smaller numbers first,
    down to `max_depth` and up to `max_nodes`. Splits that are known to help other rows with a probability below
    `min_helps` are drawn as leaves.
    """
    tree, names = post.tree, Names(post.tree, feature_names, code_names)
    max_depth, max_nodes = whole_number("max_depth", max_depth, 0), whole_number("max_nodes", max_nodes, 1)
    split_prob = post.split_prob
    is_leaf = _drawn_as_leaves(tree, helps, min_helps)
    node_prob = _likeliest(tree, split_prob, is_leaf, max_depth, max_nodes)
    order = _depth_first(tree, node_prob)
    place = {node: i for i, node in enumerate(order)}
    sizes = _subtree_sizes(tree, is_leaf)
    seen = post.family.at(np.array(order)).seen(post.statistics[order])
    weights, unit = (None, "") if seen is None else seen
    outcomes, classes = _outcomes(post, np.array(order), class_names, row_data, last_time, baseline)
    nodes = []
    for i, s in enumerate(order):
        first, last = int(tree.first_child[s]), int(tree.first_child[s] + tree.n_children[s])
        children = tuple(place[c] for c in range(first, last) if c in place)
        above = int(tree.parent[s])
        shown = sum(int(sizes[order[c]]) for c in children)
        nodes.append(
            DrawnNode(
                number=s,
                parent=place.get(above, -1),
                children=children,
                depth=int(tree.depth[s]),
                is_terminal=bool(is_leaf[s]),
                answer=names.answer(above, s - int(tree.first_child[above])) if above >= 0 else "",
                question="" if is_leaf[s] else names.feature(int(tree.feature[s])),
                split_prob=float(split_prob[s]),
                helps=math.nan if helps is None else float(helps[s]),
                node_prob=node_prob[s],
                weight=None if weights is None else float(weights[i]),
                n_hidden=int(sizes[s]) - 1 - shown,
                outcome=outcomes[i],
            )
        )
    scale = _scale(outcomes, post.family.support.lowest)
    n_left_out = int(np.sum(~tree.is_terminal)) - _n_splits(tree, is_leaf)
    return Drawing(tuple(nodes), classes, unit, scale, helps is not None, n_left_out)


def with_rows_of(
    drawing: Drawing,
    post: Posterior,
    *,
    class_names: Sequence[Any] | None = None,
    last_time: float | None = None,
    baseline: Any = None,
    **row_data: Any,
) -> Drawing:
    """The same nodes, with the weights and predictions of another posterior over the same meta-tree."""
    order = np.array([node.number for node in drawing.nodes])
    seen = post.family.at(order).seen(post.statistics[order])
    outcomes, classes = _outcomes(post, order, class_names, row_data, last_time, baseline)
    weights = [None] * len(order) if seen is None else list(map(float, seen[0]))
    each = zip(drawing.nodes, weights, outcomes, strict=True)
    nodes = tuple(replace(node, weight=weight, outcome=outcome) for node, weight, outcome in each)
    return replace(drawing, nodes=nodes, classes=classes)


# ---- choice of nodes ------------------------------------------------------------------------------------------------


def walk(drawing: Drawing) -> Iterator[tuple[Literal["open", "hidden", "close"], DrawnNode]]:
    """Yield each node opened, the nodes below it, the hidden ones if there are some, and the node closed."""
    waiting: list[tuple[Literal["open", "hidden", "close"], DrawnNode]] = [("open", drawing.nodes[0])]
    while waiting:
        step, node = waiting.pop()
        yield step, node
        if step == "open":
            waiting.append(("close", node))
            if node.n_hidden:
                waiting.append(("hidden", node))
            waiting += [("open", drawing.nodes[child]) for child in reversed(node.children)]


def _drawn_as_leaves(tree: MetaTree, helps: FloatArray | None, min_helps: float) -> NDArray[np.bool_]:
    """(n_nodes,) terminals, and nodes whose splits are known not to help other rows."""
    if not 0.0 <= min_helps <= 1.0:
        raise ArgumentError("min_helps", f"must be a probability from 0 to 1, but is {min_helps!r}")
    return tree.is_terminal if helps is None else np.asarray(tree.is_terminal | (helps < min_helps))


def _n_splits(tree: MetaTree, is_leaf: NDArray[np.bool_]) -> int:
    """Number of splits of the tree with these leaves."""
    is_split = ~is_leaf
    for s in range(1, tree.n_nodes):  # parents before children
        is_split[s] &= is_split[tree.parent[s]]
    return int(is_split.sum())


def _likeliest(
    tree: MetaTree, split_prob: FloatArray, is_leaf: NDArray[np.bool_], max_depth: int, max_nodes: int
) -> dict[int, float]:
    """P(s in T) of the nodes to draw."""
    chosen: dict[int, float] = {}
    waiting = [(-1.0, 0)]
    while waiting and len(chosen) < max_nodes:
        minus_prob, s = heapq.heappop(waiting)
        chosen[s] = -minus_prob
        if tree.depth[s] < max_depth and not is_leaf[s]:
            for c in range(int(tree.n_children[s])):
                heapq.heappush(waiting, (minus_prob * float(split_prob[s]), int(tree.first_child[s]) + c))
    return chosen


def _depth_first(tree: MetaTree, chosen: Mapping[int, float]) -> list[int]:
    order, waiting = [], [0]
    while waiting:
        s = waiting.pop()
        order.append(s)
        children = range(int(tree.first_child[s]), int(tree.first_child[s] + tree.n_children[s]))
        waiting += [c for c in reversed(children) if c in chosen]
    return order


def _subtree_sizes(tree: MetaTree, is_leaf: NDArray[np.bool_]) -> NDArray[np.int64]:
    """(n_nodes,) number of nodes from each node down to these leaves, itself included."""
    sizes = np.ones(tree.n_nodes, dtype=np.int64)
    starts = np.searchsorted(tree.depth, np.arange(int(tree.depth[-1]) + 2))
    for level in range(len(starts) - 2, 0, -1):
        nodes = np.arange(starts[level], starts[level + 1])
        nodes = nodes[~is_leaf[tree.parent[nodes]]]
        np.add.at(sizes, tree.parent[nodes], sizes[nodes])
    return sizes


# ---- words ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Names:
    """Names of features and codes: given by the user, or x0, x1, ... and the codes themselves."""

    tree: MetaTree
    feature_names: Sequence[Any] | None = None
    code_names: CodeNames | None = None

    def feature(self, feature: int) -> str:
        if self.feature_names is None:
            return f"x{feature}"
        if len(self.feature_names) <= feature:
            raise ValueError(
                f"feature_names has {len(self.feature_names)} entries, but the tree splits on feature {feature}"
            )
        return one_line(self.feature_names[feature])

    def of_codes(self, feature: int) -> Sequence[Any] | None:
        """The names of a feature's codes, if there are any."""
        if self.code_names is None:
            return None
        if isinstance(self.code_names, Mapping):
            return self.code_names.get(feature)
        if len(self.code_names) <= feature:
            raise ValueError(f"code_names has {len(self.code_names)} entries, but the tree splits on feature {feature}")
        return self.code_names[feature]

    def code(self, feature: int, code: int) -> str:
        names = self.of_codes(feature)
        if names is None:
            return str(code)
        if len(names) <= code:
            raise ValueError(f"code_names[{feature}] has {len(names)} entries, but the tree has code {code}")
        return one_line(names[code])

    def answer(self, node: int, child: int) -> str:
        """Condition of the branch from a node to its child of this number, as far as it is not that of the path."""
        tree, feature = self.tree, int(self.tree.feature[node])
        above = self._reaching(node, feature)
        threshold = int(tree.threshold[node])
        codes = above.child(threshold, child, int(tree.missing_child[node]))
        words = self.of_codes(feature)
        if not isinstance(words, CodeWords):
            return self._plain(feature, codes, threshold)
        return words.answer(codes, above, self._beside(node, feature, words))

    def _beside(self, node: int, feature: int, words: CodeWords) -> list[tuple[CodeWords, Codes]]:
        """Other columns above a node that code the same input, and the codes with which a row can reach the node."""
        found = {}
        for above, _ in self._path(node):
            other = int(self.tree.feature[above])
            labels = self.of_codes(other)
            if other != feature and isinstance(labels, CodeWords) and words.codes_same_input(labels):
                found[other] = labels, self._reaching(node, other)
        return list(found.values())

    def _reaching(self, node: int, feature: int) -> Codes:
        """The codes of a feature with which a row can reach a node."""
        tree, codes = self.tree, Codes()
        for above, child in self._path(node):
            if tree.feature[above] == feature:
                codes = codes.child(int(tree.threshold[above]), child, int(tree.missing_child[above]))
        return codes

    def _path(self, node: int) -> list[tuple[int, int]]:
        """The nodes from the root down to this one, without it, and which child of each the path goes on to."""
        path = []
        while node > 0:
            above = int(self.tree.parent[node])
            path.append((above, node - int(self.tree.first_child[above])))
            node = above
        return path[::-1]

    def _plain(self, feature: int, codes: Codes, threshold: int) -> str:
        """Like the answers of `CodeWords`, for codes that have an order."""
        if codes.low > codes.high:
            return "missing" if codes.missing else NOTHING
        or_missing = " or missing" if codes.missing else ""
        if threshold < 0:
            return f"= {self.code(feature, codes.low)}{or_missing}"
        lower = [f"> {self.code(feature, codes.low - 1)}"] if codes.low > 0 else []
        upper = [f"≤ {self.code(feature, codes.high)}"] if codes.high < LARGEST_CODE else []
        return (", ".join(lower + upper) or "known") + or_missing


def number(value: float, digits: int = 4) -> str:
    """A number in a few characters."""
    if math.isnan(value):
        return "?"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return short_number(value, digits)


def amount(value: float) -> str:
    """A weight as text: a count of rows, most of the time."""
    return f"{round(value):,}" if abs(value - round(value)) < 1e-9 * max(1.0, abs(value)) else f"{value:,.1f}"


def weight_text(node: DrawnNode, unit: str) -> str:
    """The weight of a node and its unit; empty if the family has none."""
    if node.weight is None:
        return ""
    words = {"rows": "row", "events": "event"} if node.weight == 1.0 else {}
    return f"{amount(node.weight)} {words.get(unit, unit)}"


def more(n_hidden: int) -> str:
    """Text for nodes that are not drawn."""
    return f"… {n_hidden:,} node{'s' if n_hidden != 1 else ''}"


def outcome_text(outcome: Outcome, classes: Sequence[str]) -> str:
    """The predictive distribution of a leaf in a few words."""
    if outcome.probs:
        # The second of two classes is the event.
        best = 1 if len(classes) == 2 else max(range(len(classes)), key=outcome.probs.__getitem__)
        return f"P({classes[best]}) = {outcome.probs[best]:.3f}"
    if outcome.coefficients:
        return "w = " + ", ".join(number(w, 3) for w in outcome.coefficients)
    if not math.isnan(outcome.last_time):
        return f"median {time_text(outcome.median, outcome.last_time)}, {mean_words(outcome)} {number(outcome.mean)}"
    return f"{number(outcome.mean)} ± {number(outcome.std, 3)}"


def mean_words(outcome: Outcome) -> str:
    """Legend of the bars of numbers."""
    return "mean ± sd" if math.isnan(outcome.last_time) else f"mean up to {number(outcome.last_time)}"


# ---- statistics -----------------------------------------------------------------------------------------------------


def _outcomes(
    post: Posterior,
    nodes: NDArray[np.int64],
    class_names: Sequence[Any] | None,
    row_data: Mapping[str, Any],
    last_time: float | None,
    baseline: Any,
) -> tuple[list[Outcome], tuple[str, ...]]:
    family, statistics = post.family.at(nodes), post.statistics[nodes]
    if "inputs" in family.row_data and isinstance(family, NativeFamily) and not row_data:
        coefficients = family.posterior_parameters(statistics)["mean"]
        return [Outcome(coefficients=tuple(row)) for row in coefficients.tolist()], ()
    components: Any = family.predictive(statistics, **repeated(row_data, len(nodes)))
    if hasattr(components, "probs"):
        probs, classes = grouped(components.probs(), class_names)
        return [Outcome(probs=tuple(row)) for row in probs.tolist()], classes
    if baseline is not None:
        return _outcomes_of_curves(components, len(nodes), baseline), ()
    if last_time is not None:
        n = len(nodes)
        mean = restricted_mean(lambda time: components.sf(np.full(n, time)), last_time).tolist()
        median = components.quantile(np.full(n, 0.5)).tolist()
        each = zip(mean, median, strict=True)
        return [Outcome(mean=m, std=0.0, median=half, last_time=last_time) for m, half in each], ()
    std = np.sqrt(components.variance())
    return [Outcome(mean=m, std=d) for m, d in zip(components.mean().tolist(), std.tolist(), strict=True)], ()


def _outcomes_of_curves(components: Any, n: int, baseline: Any) -> list[Outcome]:
    """Medians and means of times that are cut off where the baseline ends, from curves of positions."""
    positions, times = (np.append(0.0, part) for part in (baseline.positions, baseline.times))
    curves = np.stack([components.sf(np.full(n, position)) for position in positions], axis=1)
    mean = np.trapezoid(curves, times, axis=1)
    medians = [
        float(np.interp(-0.5, -curve, times)) if curve[-1] <= 0.5 else math.inf
        for curve in np.minimum.accumulate(curves, 1)
    ]
    last = float(times[-1])
    return [
        Outcome(mean=m, std=0.0, median=half, last_time=last) for m, half in zip(mean.tolist(), medians, strict=True)
    ]


def _scale(outcomes: Sequence[Outcome], lowest: float) -> tuple[float, float] | None:
    """Ends from the lowest mean - std to the highest mean + std, but at most 3 std of the root from its mean."""
    root = outcomes[0]
    has_limit = math.isfinite(root.mean) and math.isfinite(root.std)
    low, high = [], []
    for outcome in outcomes:
        if math.isfinite(outcome.mean):
            std = outcome.std if math.isfinite(outcome.std) else 0.0
            limit = 3.0 * root.std if has_limit else math.inf
            low.append(min(outcome.mean, max(outcome.mean - std, root.mean - limit, lowest)))
            high.append(max(outcome.mean, min(outcome.mean + std, root.mean + limit)))
    return (min(low), max(high)) if low else None


def repeated(row_data: Mapping[str, Any], n_rows: int) -> dict[str, NDArray[Any]]:
    """Repeat the row data of one row."""
    return {name: np.repeat(np.asarray(value)[None], n_rows, axis=0) for name, value in row_data.items()}


def leaf_classes(names: Sequence[str]) -> list[str]:
    """Names of the classes of a leaf: at least two, also if only one class occurred."""
    return [*names, "any other"] if len(names) == 1 else list(names)


def grouped(probs: FloatArray, class_names: Sequence[Any] | None) -> tuple[FloatArray, tuple[str, ...]]:
    """Class probabilities and names; the classes with the smallest probability in the first row become "others"."""
    n_classes = probs.shape[1]
    if class_names is not None and len(class_names) != n_classes:
        raise ValueError(f"class_names has {len(class_names)} entries, but there are {n_classes} classes")
    names = [f"y = {c}" for c in range(n_classes)] if class_names is None else [one_line(c) for c in class_names]
    if n_classes <= MAX_CLASSES:
        return probs, tuple(names)
    kept = np.sort(np.argsort(-probs[0], kind="stable")[: MAX_CLASSES - 1])
    others = 1.0 - probs[:, kept].sum(axis=1, keepdims=True)
    return np.column_stack([probs[:, kept], np.maximum(others, 0.0)]), (*(names[c] for c in kept), "others")
