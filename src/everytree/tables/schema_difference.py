"""Where two schemas differ, in a few words."""

from __future__ import annotations

from everytree.base.words import number_of
from everytree.tables.column import Column
from everytree.tables.reading import column_label
from everytree.tables.schema import Schema


def schema_difference(mine: Schema, theirs: Schema) -> str:
    """Return the first difference, as it goes on from "other ..."; nothing if there is none."""
    if mine == theirs:
        return ""
    return _of_names(mine, theirs) or _of_columns(mine, theirs)


def _of_names(mine: Schema, theirs: Schema) -> str:
    if mine.input_names is None or theirs.input_names is None:
        if mine.n_inputs != theirs.n_inputs:
            return f"has {number_of(theirs.n_inputs, 'column')}, this one {mine.n_inputs}"
        if mine.input_names != theirs.input_names:
            has, lacks = ("this one", "other") if theirs.input_names is None else ("it", "this one")
            return f"finds columns in a different way: {has} by name, {lacks} by position"
        return ""
    for name in mine.input_names:
        if name not in theirs.input_names:
            return f"has no column {name!r}, which this one has"
    for name in theirs.input_names:
        if name not in mine.input_names:
            return f"has a column {name!r}, which this one has not"
    for k, (own, other) in enumerate(zip(mine.input_names, theirs.input_names, strict=True)):
        if own != other:
            return f"has the columns in another order: column {k} is {other!r}, here {own!r}"
    return ""


def _of_columns(mine: Schema, theirs: Schema) -> str:
    for k, (own, other) in enumerate(zip(mine.columns, theirs.columns, strict=False)):
        if own != other:
            return _of_column(own, other, column_label(own.name, k))
    return f"makes {theirs.n_features} columns of codes of its table, this one {mine.n_features}"


def _of_column(own: Column, other: Column, label: str) -> str:
    if own.kind != other.kind:
        return f"reads {label} as {other.kind}, this one as {own.kind}"
    if own.categories != other.categories:
        news = [value for value in other.categories if value not in own.categories]
        gone = [value for value in own.categories if value not in other.categories]
        what = f"such as {news[0]!r}" if news else f"without {gone[0]!r}" if gone else "in another order"
        return f"knows other categories of {label}, {what}"
    if len(own.cuts) != len(other.cuts) or (own.cuts != other.cuts).any():
        return f"has other cut points of {label}"
    return f"codes {label} in another way"
