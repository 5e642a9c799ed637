"""Facts about the fit, as pairs of words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from everytree.base.words import number_of
from everytree.boosting.mixed import boosted_trees
from everytree.report.subject import Subject
from everytree.tables.code_names import one_line
from everytree.view.describe import amount, number


def lead(subject: Subject) -> str:
    """The model in two or three sentences."""
    n_trees = len(subject.posts)
    if subject.is_boosted:
        return f"{_fitted_to(subject)} {_boosted_lead(subject)}"
    if subject.is_exact:
        how = "every decision tree to a depth, and every choice of its splits"
    elif n_trees == 1:
        how = "every pruning of one decision tree"
    else:
        how = f"every pruning of each of {n_trees} decision trees"
    said = f"It predicts by averaging {how}, each weighted by its posterior probability."
    return f"{_fitted_to(subject)} {said}"


def _fitted_to(subject: Subject) -> str:
    return f"Fitted to {number_of(subject.n_rows, 'row')} of {number_of(subject.model.schema_.n_inputs, 'column')}."


def _boosted_lead(subject: Subject) -> str:
    n_trees = len(boosted_trees(subject.model.forest_))
    each = "each averaged over all its prunings"
    if hasattr(subject.model, "boost_weight_"):
        return f"It mixes a forest with the sum of {n_trees:,} boosted trees, {each}."
    return f"It predicts by the sum of {n_trees:,} boosted trees, {each}."


def facts(subject: Subject, target_name: str | None) -> Iterator[tuple[str, str]]:
    """Target, rows, columns and kind of model."""
    schema = subject.model.schema_
    kinds = [column.kind for column in schema.columns]
    kind_counts = [f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds)]
    if target_name is not None:
        yield "Target", one_line(target_name)
    yield "Model", type(subject.model).__name__
    yield "Rows", amount(float(subject.n_rows))
    yield "Columns", f"{schema.n_inputs} ({', '.join(kind_counts)})"
    if subject.words.classes:
        yield "Classes", ", ".join(subject.words.classes)


def expert_facts(subject: Subject) -> Iterator[tuple[str, str]]:
    """Evidence, size and leaf model."""
    posts = subject.posts
    if subject.is_boosted:
        yield from _boosted_facts(subject)
        return
    yield "Log evidence", f"{number(subject.model.log_evidence_, 8)} nats"
    if subject.is_exact:
        posterior = subject.average
        yield "Averaged over", f"every tree to depth {posterior.max_depth} and every choice of its splits"
        yield "Expected leaves", number(posterior.expected_leaves())
        yield "Posterior mass left out", f"{posterior.truncation:.1e} at most"
    else:
        n_nodes = sum(post.tree.n_nodes for post in posts)
        what = "every pruning of 1 tree" if len(posts) == 1 else f"every pruning of {len(posts)} trees"
        yield "Averaged over", f"{what} ({n_nodes:,} nodes)"
        yield "Expected leaves", number(float(np.mean([post.expected_leaves() for post in posts]))) + " a tree"
    yield "Leaf model", re.sub(r"\d+\.\d+", lambda digits: number(float(digits[0])), one_line(subject.family))


def _boosted_facts(subject: Subject) -> Iterator[tuple[str, str]]:
    """Size of the trees, and what they are mixed with."""
    model, trees = subject.model, boosted_trees(subject.model.forest_)
    yield "Boosted trees", f"{len(trees):,} in {len(model.forest_.n_steps)} chains ({int(trees.n_nodes.sum()):,} nodes)"
    yield "Steps of the longest chain", f"{model.n_iter_:,}"
    if hasattr(model, "boost_weight_"):
        yield "Weight of boosting", number(model.boost_weight_)
    if not subject.words.classes:
        yield "Family", model.family


def priors(subject: Subject) -> Iterator[tuple[str, str]]:
    """Priors that were chosen on rows unseen by the trees, or given."""
    choice: Any = getattr(subject.model, "choice_", None)
    if subject.is_boosted:
        forest: Any = getattr(subject.model.forest_, "boosted", subject.model.forest_)
        yield "split_prior", number(forest.split_prior)
        if subject.words.classes:
            yield "sharpness of the average", number(subject.model.forest_.sharpness)
        return
    if choice is None:
        yield "split_prior", one_line(subject.model.split_prior)
        return
    for name, value in choice.parameters.items():
        yield name, number(value, 4) if isinstance(value, float) else one_line(value)
    yield "sharpness of the average", number(choice.sharpness)
    if np.isfinite(choice.score):
        yield "mean log probability of unseen rows", number(choice.score)


def parameters(subject: Subject) -> Iterator[tuple[str, str]]:
    """The estimator's own parameters."""
    return ((name, one_line(repr(value))) for name, value in subject.model.get_params(deep=False).items())
