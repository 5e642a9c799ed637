"""Facts about the fit, as pairs of words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from everytree.base.words import number_of
from everytree.report.subject import Subject
from everytree.tables.code_names import one_line
from everytree.view.describe import amount, number


def lead(subject: Subject) -> str:
    """The model in two sentences."""
    n_columns = number_of(subject.model.schema_.n_inputs, "column")
    return f"Fitted to {number_of(subject.n_rows, 'row')} of {n_columns}. {subject.model.model_.sentence}"


def facts(subject: Subject, target_name: str | None) -> Iterator[tuple[str, str]]:
    """Target, rows, columns and kind of model."""
    schema = subject.model.schema_
    kinds = ["generated" if column.formula is not None else column.kind for column in schema.columns]
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
    yield from subject.model.model_.facts()
    if subject.is_drawn:
        yield "Leaf model", re.sub(r"\d+\.\d+", lambda digits: number(float(digits[0])), one_line(subject.family))


def priors(subject: Subject) -> Iterator[tuple[str, str]]:
    """Priors that were chosen on rows unseen by the trees, or given."""
    choice: Any = getattr(subject.model, "choice_", None)
    if not subject.is_drawn:
        yield "split_prior", number(subject.model.model_.chains.split_prior)
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
