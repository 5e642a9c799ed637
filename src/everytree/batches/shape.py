"""The layout that all batches of a table share: names of columns, and which row data they have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from everytree.tables.reading import Table


@dataclass(frozen=True)
class Shape:
    """The shape of one batch."""

    names: tuple[str, ...] | None  # of the columns
    n_columns: int
    besides: frozenset[str]  # what is known of each row besides its features: "y", "sample_weight", "exposure", ...

    @classmethod
    def of(cls, table: Table, besides: Iterable[str]) -> Shape:
        """The shape of a table and what comes with it."""
        return cls(table.names, table.n_columns, frozenset(besides))

    def places(self, other: Shape) -> Sequence[int]:
        """Where another batch has each column of this one; an error where it has others, or more or less besides."""
        for which, what in ((self.besides - other.besides, "has no"), (other.besides - self.besides, "has")):
            if which:
                raise ValueError(f"it {what} {' and '.join(sorted(which))}, unlike those before")
        if self.names is None or other.names is None:
            if (self.names is None) != (other.names is None) or other.n_columns != self.n_columns:
                raise ValueError(f"it has {other}, but those before had {self}")
            return range(self.n_columns)
        index_of = {name: k for k, name in enumerate(other.names)}
        absent, new = [n for n in self.names if n not in index_of], sorted(index_of.keys() - set(self.names))
        if absent or new:
            differences = [f"lacks the columns {absent}"] * bool(absent) + [f"has the columns {new}"] * bool(new)
            raise ValueError(f"it {' and '.join(differences)}, unlike those before, which had {self}")
        return [index_of[name] for name in self.names]

    def __str__(self) -> str:
        return f"{self.n_columns} columns without names" if self.names is None else str([*self.names])
