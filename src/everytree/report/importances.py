"""Importances of the columns, and their uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from everytree.base.arrays import FloatArray
from everytree.posterior.posterior import Posterior
from everytree.report.charts import ranges
from everytree.report.subject import Subject

MAX_IMPORTANCES = 30
"""Number of columns, at most, that have a bar."""

DRAWS = 200
"""Number of trees drawn from the posterior to measure the spread."""

SPLIT_ON = "“Split on”: the probability that a tree splits on the column at all."


@dataclass(frozen=True)
class Importances:
    """One number per input column, and the range of 90% of the trees."""

    middle: FloatArray  # (n_inputs,)
    low: FloatArray
    high: FloatArray
    # (n_inputs,): probability that a tree splits on the column; None where that and the range are not known
    asked: FloatArray | None
    meaning: str  # meaning of the numbers and their spread, in words


def importances(subject: Subject) -> Importances:
    """Importances by the expected gain in evidence, or by the expected number of splits for exact models."""
    if not subject.is_drawn:
        return _of_boosted(subject.model)
    return _of_trees(subject.model) if subject.parts.exact is None else _of_exact(subject.model)


def _of_boosted(model: Any) -> Importances:
    middle = model.feature_importances_
    both = model.model_.parts.forest is not None
    where = "the forest and the boosted trees, by their weights" if both else "the boosted trees"
    meaning = f"Share of the expected gain in log evidence that splits on the column bring in {where}."
    return Importances(middle, middle, middle, None, meaning)


def _of_trees(model: Any) -> Importances:
    posts, weights = model.forest_.posteriors, model.forest_.weights
    by_tree = np.stack([model.schema_.by_input(post.feature_importances()) for post in posts])
    asked = weights @ np.stack([model.schema_.by_input(post.feature_inclusion_prob()) for post in posts])
    if len(posts) == 1:
        spread = np.stack([model.schema_.by_input(gains) for gains in _drawn_gains(posts[0])])
        whose = f"{DRAWS} trees drawn from the posterior"
    else:
        spread, whose = by_tree, f"the {len(posts)} trees of the forest"
    low, high = np.quantile(spread, [0.05, 0.95], axis=0)
    return Importances(
        model.feature_importances_, low, high, np.minimum(asked, 1.0),
        "Share of the expected gain in log evidence that splits on the column bring. Whiskers: where 90% of "
        f"{whose} are. {SPLIT_ON}",
    )  # fmt: skip


def _drawn_gains(post: Posterior) -> FloatArray:
    """(DRAWS, n_features) share of each feature in the gain of trees drawn from the posterior."""
    tree, leaf = post.tree, post.leaf_log_evidence
    gains = np.zeros((DRAWS, tree.n_features))
    for gain, drawn in zip(gains, post.sample_trees(DRAWS, rng=0), strict=True):
        inner = drawn.inner
        if len(inner):
            ends = tree.first_child[inner] + tree.n_children[inner]
            below = np.array([leaf[a:b].sum() for a, b in zip(tree.first_child[inner], ends, strict=True)])
            np.add.at(gain, tree.feature[inner], below - leaf[inner])
    positive = np.maximum(gains, 0.0)
    total = positive.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(positive, total, out=np.zeros_like(positive), where=total > 0.0))


def _of_exact(model: Any) -> Importances:
    posterior: Any = model.model_.parts.exact
    counts = np.zeros((DRAWS, len(posterior.n_codes)))
    for count, drawn in zip(counts, posterior.sample_trees(DRAWS, rng=0), strict=True):
        np.add.at(count, drawn.feature[drawn.feature >= 0], 1.0)
    low, high = np.quantile(np.stack([model.schema_.by_input(count) for count in counts]), [0.05, 0.95], axis=0)
    return Importances(
        model.schema_.by_input(posterior.expected_splits), low, high,
        np.minimum(model.schema_.by_input(posterior.feature_prob), 1.0),
        f"Expected number of splits on the column. Whiskers: where 90% of {DRAWS} trees drawn from the posterior are. "
        f"{SPLIT_ON}",
    )  # fmt: skip


def importances_html(found: Importances, names: Sequence[str]) -> str:
    """Bars of the most important columns, each with its number."""
    order = (-found.middle).argsort(kind="stable")[:MAX_IMPORTANCES]
    texts = [f"{found.middle[k]:.3f}" for k in order]
    if found.asked is not None:
        numbers = [(found.middle[k], found.low[k], found.high[k], found.asked[k]) for k in order]
        texts = [f"{m:.3f} ({a:.3f} to {b:.3f}), split on with probability {asked:.2f}" for m, a, b, asked in numbers]
    chart = ranges([names[k] for k in order], found.middle[order], found.low[order], found.high[order], texts)
    left = len(names) - len(order)
    rest = f"<p>{left} more columns matter less than these.</p>" if left else ""
    return f"<p>{escape(found.meaning)}</p>{chart}{rest}"
