"""What a model's columns, codes and classes are called on the page, and plain facts about it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from everytree.columns import Column
from everytree.drawing import amount, number, one_line
from everytree.estimators.base import MetaEstimator
from everytree.posterior import Posterior

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Words:
    """Names, as text on one line.

    Attributes
    ----------
    inputs : list of str
        Of the columns that a row has.
    features : list of str
        Of the columns of codes; an imported model may read one input in several ways.
    codes : list of list of str
        Of each column's codes: a category, or the largest number that has the code; "missing" last.
    classes : list of str
        Empty for numbers.
    """

    inputs: list[str]
    features: list[str]
    codes: list[list[str]]
    classes: list[str]

    @classmethod
    def of(cls, model: MetaEstimator) -> Words:
        schema = model.schema_
        inputs = [one_line(name) for name in schema.input_names or [f"x{k}" for k in range(schema.n_inputs)]]
        return cls(
            inputs,
            [inputs[k] for k in schema.input_of],
            [code_names(column) for column in schema.columns],
            [one_line(label) for label in getattr(model, "classes_", ())],
        )

    def options(self) -> dict[str, Any]:
        """As pictures of posteriors take them."""
        classes = self.classes if len(self.classes) != 1 else [*self.classes, "any other"]
        return {"feature_names": self.features, "code_names": self.codes, "class_names": classes or None}


def code_names(column: Column) -> list[str]:
    """What each code stands for; groups of categories share one."""
    if column.kind == "boolean":
        return ["no", "yes", "missing"]
    if column.kind == "categorical":
        own = [one_line(value) for value in column.categories]
    else:
        own = [cut_name(column, float(cut)) for cut in column.cuts] + ["more"]
    if column.groups:
        own = [
            ", ".join(name for name, group in zip(own, column.groups, strict=True) if group == code)
            if column.kind == "categorical"
            else own[max(place for place, group in enumerate(column.groups) if group == code)]
            for code in range(column.n_codes)
        ]
    return [*own, "missing"]


def cut_name(column: Column, cut: float) -> str:
    """A cut point in a few characters; dates as dates."""
    if column.kind != "datetime":
        return f"{cut:.6g}"
    try:
        return (EPOCH + timedelta(microseconds=cut)).strftime("%Y-%m-%d %H:%M").removesuffix(" 00:00")
    except OverflowError:
        return f"{cut:.6g}"


# ---- which model it is ----------------------------------------------------------------------------------------------


def check_model(model: Any) -> None:
    """Fitted, and one of the estimators that keep whole trees."""
    if not isinstance(model, MetaEstimator):
        raise TypeError(
            "model must be a fitted MetaForest, MetaTree or ExactTree classifier or regressor, "
            f"not {type(model).__name__}"
        )
    check_is_fitted(model, "forest_")


def is_exact(model: MetaEstimator) -> bool:
    """Whether the average is over every choice of splits too."""
    return hasattr(model, "truncation_")


def posteriors(model: MetaEstimator) -> tuple[list[Posterior], list[float]]:
    """The meta-trees to draw and their weights; of an exact model the prunings of its most probable tree."""
    if is_exact(model):
        return [model.map_posterior_], [1.0]
    return list(model.forest_.posteriors), model.forest_.weights.tolist()


def heaviest(model: MetaEstimator) -> int:
    """The tree with the largest weight, and among equals the largest evidence."""
    posts, weights = posteriors(model)
    return max(range(len(posts)), key=lambda i: (weights[i], posts[i].log_evidence))


# ---- facts ----------------------------------------------------------------------------------------------------------


def facts(model: MetaEstimator) -> Iterator[tuple[str, str]]:
    """What was fitted on what, as pairs of words."""
    schema, posts = model.schema_, posteriors(model)[0]
    kinds = [column.kind for column in schema.columns]
    kind_counts = [f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds)]
    yield "Rows", amount(float(_n_rows(model)))
    yield "Columns", f"{schema.n_inputs} ({', '.join(kind_counts)})"
    if hasattr(model, "classes_"):
        yield "Classes", ", ".join(Words.of(model).classes)
    yield "Log evidence", f"{number(model.log_evidence_, 8)} nats"
    if is_exact(model):
        posterior: Any = model.forest_.posterior
        yield "Averaged over", f"every tree to depth {posterior.max_depth} and every choice of its splits"
        yield "Expected leaves", number(posterior.expected_leaves())
        yield "Posterior mass left out", f"{posterior.truncation:.1e} at most"
    else:
        n_nodes = sum(post.tree.n_nodes for post in posts)
        what = "every pruning of 1 tree" if len(posts) == 1 else f"every pruning of {len(posts)} trees"
        yield "Averaged over", f"{what} ({n_nodes:,} nodes)"
        yield "Expected leaves", number(float(np.mean([post.expected_leaves() for post in posts]))) + " a tree"
    yield "Leaf model", _leaf_model(model)


def _n_rows(model: MetaEstimator) -> int:
    return int(model.forest_.posterior.n_rows if is_exact(model) else model.forest_.n_rows)


def _leaf_model(model: MetaEstimator) -> str:
    family = model.forest_.posterior.family if is_exact(model) else model.forest_.family
    return re.sub(r"\d+\.\d+", lambda digits: number(float(digits[0])), one_line(family))


def priors(model: MetaEstimator) -> Iterator[tuple[str, str]]:
    """What was chosen by rows that trees had not seen, or given."""
    choice: Any = getattr(model, "choice_", None)
    if choice is None:
        yield "split_prior", one_line(model.split_prior)
        return
    for name, value in choice.parameters.items():
        yield name, number(value, 4) if isinstance(value, float) else one_line(value)
    yield "sharpness of the average", number(choice.sharpness)
    if np.isfinite(choice.score):
        yield "mean log probability of unseen rows", number(choice.score)


def parameters(model: MetaEstimator) -> Iterator[tuple[str, str]]:
    """The estimator's own parameters."""
    return ((name, one_line(repr(value))) for name, value in model.get_params(deep=False).items())
