"""Boosting written literally: every pruning of every tree one by one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from naive_grower import NodeRandom


def derivatives(loss: str, score: np.ndarray, y: float, exposure: float) -> list[tuple[float, float]]:
    """First and second derivative of the loss of one row in each of its scores."""
    if loss == "squared":
        return [(float(score[0] - y), 1.0)]
    if loss == "rate":
        expected = exposure * math.exp(score[0])
        return [(expected - y, max(expected, 1e-6))]
    if loss == "logit":
        p = 1.0 / (1.0 + math.exp(-score[0]))
        return [(p - y, max(p * (1.0 - p), 1e-6))]
    probs = np.exp(score - score.max()) / np.exp(score - score.max()).sum()
    return [(float(p - (k == y)), max(float(p * (1.0 - p)), 1e-6)) for k, p in enumerate(probs)]


def loss_of(loss: str, score: np.ndarray, y: float, exposure: float) -> float:
    if loss == "squared":
        return 0.5 * float(score[0] - y) ** 2
    if loss == "rate":
        return exposure * math.exp(score[0]) - y * float(score[0])
    scores = np.array([0.0, score[0]]) if loss == "logit" else score
    return math.log(np.exp(scores).sum()) - float(scores[int(y)])


def prunings(tree: dict[str, np.ndarray], node: int = 0) -> Iterator[tuple[list[int], list[int]]]:
    """Leaves and split nodes of every pruning below a node."""
    yield [node], []
    if tree["feature"][node] >= 0:
        left = int(tree["first_child"][node])
        for (leaves, splits), (more, also) in itertools.product(prunings(tree, left), prunings(tree, left + 1)):
            yield leaves + more, [node, *splits, *also]


def path(tree: dict[str, np.ndarray], row: np.ndarray) -> list[int]:
    """Nodes from the root to the terminal of a row."""
    nodes = [0]
    while tree["feature"][nodes[-1]] >= 0:
        node = nodes[-1]
        code = int(row[tree["feature"][node]])
        is_missing = code == np.iinfo(row.dtype).max
        right = int(tree["missing_child"][node]) if is_missing else int(code > tree["threshold"][node])
        nodes.append(int(tree["first_child"][node]) + right)
    return nodes


def values(
    tree: dict[str, np.ndarray], sums: np.ndarray, tau: float, split_prior: float, dispersion: float
) -> np.ndarray:
    """The posterior mean of the value of a row at each terminal, NaN elsewhere, from (G, H) of each node."""
    is_split = tree["feature"] >= 0
    weights, means = [], []
    for leaves, splits in prunings(tree):
        log_prior = len(splits) * math.log(split_prior) + sum(
            math.log(1.0 - split_prior) for s in leaves if is_split[s]
        )
        evidence = sum(
            0.5 * math.log(tau / (tau + sums[s, 1])) + 0.5 * sums[s, 0] ** 2 / (tau + sums[s, 1]) / dispersion
            for s in leaves
        )
        weights.append(log_prior + evidence)
        means.append({s: -sums[s, 0] / (tau + sums[s, 1]) for s in leaves})
    probs = np.exp(np.array(weights) - max(weights))
    probs /= probs.sum()
    parent = {int(tree["first_child"][s]) + c: s for s in np.flatnonzero(is_split) for c in (0, 1)}
    out = np.full(len(is_split), np.nan)
    for terminal in np.flatnonzero(~is_split):
        above = [int(terminal)]
        while above[-1] in parent:
            above.append(int(parent[above[-1]]))
        out[terminal] = sum(p * next(mean[s] for s in above if s in mean) for p, mean in zip(probs, means, strict=True))
    return out


def trees_of(run: dict[str, Any]) -> list[dict[str, np.ndarray]]:
    """Each tree; its values have two dimensions where a node has several."""
    ends, value = np.cumsum(run["n_nodes"]), run["value"]
    arrays = {name: run[name] for name in ("feature", "first_child", "threshold", "missing_child")}
    arrays["value"] = value[:, 0] if value.shape[1] == 1 else value
    return [
        {name: array[end - n : end] for name, array in arrays.items()}
        for n, end in zip(run["n_nodes"], ends, strict=True)
    ]


def add_value(score: np.ndarray, t: int, value: Any) -> None:
    """Add the value, or the values, of a node of tree t to the scores of a row."""
    if np.ndim(value):
        score += value
    else:
        score[t % len(score)] += value


def project(probs: np.ndarray, labels: np.ndarray, weight: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """(n_rows, 7) the first derivatives of each row along six directions, and the mean of the second ones, rounded."""
    is_label = np.eye(probs.shape[1])[labels]
    first = weight[:, None] * (probs - is_label)
    second = weight[:, None] * np.maximum(probs * (1.0 - probs), 1e-6)
    return np.column_stack([first @ directions, second.mean(axis=1)]).astype(np.float32).astype(float)


def directions_of(seed: int, step: int, n_classes: int) -> np.ndarray:
    """(n_classes, 6) standard normals over the root of six, drawn for one step."""
    random = NodeRandom(seed + step).child(1)
    drawn = []
    for _ in range(6 * n_classes):
        radius, angle = ((random.below(2**32) + 0.5) / 2**32 for _ in range(2))
        drawn.append(math.sqrt(-2.0 / 6.0 * math.log(radius)) * math.cos(2.0 * math.pi * angle))
    return np.array(drawn).reshape(n_classes, 6)


SLOPE_PRECISIONS = (1e-4, 0.01, 1.0, 30.0)


def kinds_of_node(
    points: np.ndarray, slopes: np.ndarray, tau: float, dispersion: float
) -> list[tuple[float, np.ndarray]]:
    """Log of the prior times the evidence of each kind of a node, and its mean as (constant, slopes).

    By the normal distribution of the residuals -g / h of its rows, whose variances are the dispersion over h; relative
    to that of residuals alone.
    """
    first, second = slopes.T
    n_points = points.shape[1]
    mean = (second @ points) / second.sum() if len(second) else np.zeros(n_points)
    found = []
    for precision in (None, *SLOPE_PRECISIONS):
        # Columns about the node's mean, so that the constant and the slopes have independent posteriors.
        design = np.column_stack([np.ones(len(points)), points - mean])[:, : 1 if precision is None else None]
        prior = np.array([tau] + [precision] * (design.shape[1] - 1), dtype=float)
        inner = design.T @ (second[:, None] * design) + np.diag(prior)
        target = -design.T @ first
        weights = np.linalg.solve(inner, target)
        log_evidence = 0.5 * (np.log(prior).sum() - np.linalg.slogdet(inner)[1] + target @ weights / dispersion)
        line = np.zeros(1 + n_points)
        line[: len(weights)] = weights
        line[0] -= line[1:] @ mean
        log_prior = math.log(0.5) if precision is None else math.log(0.5 / len(SLOPE_PRECISIONS))
        found.append((log_prior + log_evidence, line))
    return found


def lines_of_terminals(
    tree: dict[str, np.ndarray], points: np.ndarray, slopes: np.ndarray, paths: list[list[int]], tau: float,
    split_prior: float, dispersion: float,
) -> tuple[np.ndarray, float]:  # fmt: skip
    """The posterior mean line of each terminal, over all prunings and the kinds of all their leaves; and its evidence.

    Every pruning stands with every choice of kinds: leaf after leaf, these are independent.
    """
    n, is_split = len(tree["feature"]), tree["feature"] >= 0
    rows_of = [np.array([s in nodes for nodes in paths]) for s in range(n)]
    kinds = [kinds_of_node(points[rows], slopes[rows], tau, dispersion) for rows in rows_of]
    weights, lines = [], []
    for leaves, splits in prunings(tree):
        log_prior = len(splits) * math.log(split_prior) + sum(
            math.log(1.0 - split_prior) for s in leaves if is_split[s]
        )
        for chosen in itertools.product(*(kinds[s] for s in leaves)):
            weights.append(log_prior + sum(weight for weight, _ in chosen))
            lines.append(dict(zip(leaves, (line for _, line in chosen), strict=True)))
    probs = np.exp(np.array(weights) - max(weights))
    total = probs.sum()
    parent = {int(tree["first_child"][s]) + c: s for s in np.flatnonzero(is_split) for c in (0, 1)}
    out = np.full((n, 1 + points.shape[1]), np.nan)
    for terminal in np.flatnonzero(~is_split):
        above = [int(terminal)]
        while above[-1] in parent:
            above.append(int(parent[above[-1]]))
        out[terminal] = sum(
            p / total * next(line[s] for s in above if s in line) for p, line in zip(probs, lines, strict=True)
        )
    return out, max(weights) + math.log(total)
