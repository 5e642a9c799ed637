"""What a model's columns, codes and classes are called on the page."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from everytree.columns import Column
from everytree.drawing import one_line
from everytree.estimators.base import MetaEstimator

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
