"""Errors with fields: which argument is wrong, where, and what would be right.

The text of such an error names Python arguments. The command line builds its own text from the same fields.
"""

from __future__ import annotations

from typing import Self


class RefusedError(Exception):
    """An argument is wrong. Raised as `ArgumentError`, which is a ValueError, or `ArgumentTypeError`, a TypeError.

    Parameters
    ----------
    argument : str
        Name of the argument.
    must : str
        The requirement, as the end of the sentence: "must be positive"; everything after the name if there is no value.
    column : str or None
        The column of the table `argument`, as messages name it: "column 'age'".
    row : int or None
    value : str or None
        The value that was found, as messages show it.
    part : (str, int) or None
        The part within which the row is counted, such as ("batch", 3).
    """

    def __init__(
        self,
        argument: str,
        must: str,
        column: str | None = None,
        row: int | None = None,
        value: str | None = None,
        part: tuple[str, int] | None = None,
    ) -> None:
        super().__init__(argument, must, column, row, value, part)  # pickle makes the copy from these
        self.argument, self.must = argument, must
        self.column, self.row, self.value, self.part = column, row, value, part

    def within(self, part: tuple[str, int]) -> Self:
        """Return the same error, located in one of many parts."""
        return type(self)(self.argument, self.must, self.column, self.row, self.value, part)

    @property
    def problem(self) -> str:
        """The sentence without its subject."""
        return self.must if self.value is None else f"is {self.value}, but {self.must}"

    def sentence(self, whole: str, row: str, cell: str) -> str:
        """Return the text, given how to name the argument or column as a whole, the row, and a single value."""
        if self.row is None:
            return f"{whole} {self.problem}"
        if self.column is None:
            return f"{cell} {self.problem}"
        return f"{whole}, {row}: {self.must if self.value is None else f'{self.value}, but {self.must}'}"

    def __str__(self) -> str:
        whole = self.argument if self.column is None else f"{self.argument}: {self.column}"
        message = self.sentence(whole, f"row {self.row}", f"{self.argument}[{self.row}]")
        return message if self.part is None else f"{self.part[0]} {self.part[1]}: {message}"


class ArgumentError(RefusedError, ValueError):
    """A value that is not allowed."""


class ArgumentTypeError(RefusedError, TypeError):
    """A value of a type that is not allowed."""


class ChangedColumnError(ArgumentError):
    """A column has another type of values than before; `row` and `value` are an example."""

    def sentence(self, whole: str, row: str, cell: str) -> str:
        return f"{whole} {self.must}: {row} holds {self.value}"


class MissingValueError(ArgumentError):
    """A row lacks a value that every row needs; `column` says which, and `value` is None."""

    def sentence(self, whole: str, row: str, cell: str) -> str:
        return f"{self.column} is missing in {row}: {self.must}"


class OverlapError(ValueError):
    """Rows that are counted already would count twice."""


class TooManyRegionsError(ValueError):
    """A depth of exact trees that can have more regions than are allowed.

    Parameters
    ----------
    max_depth, regions, n_bytes : int
        The depth asked for, the number of regions it can have, and the memory they take.
    max_regions, possible_depth : int
        The number of regions that is allowed, and the largest depth that has no more.
    """

    def __init__(self, max_depth: int, regions: int, n_bytes: int, max_regions: int, possible_depth: int) -> None:
        super().__init__(max_depth, regions, n_bytes, max_regions, possible_depth)
        self.max_depth, self.possible_depth, self.max_regions = max_depth, possible_depth, max_regions
        self.size = f"{regions:.3g} regions (about {n_bytes / 2**30:.3g} GiB)"

    def __str__(self) -> str:
        return (
            f"max_depth={self.max_depth} on these columns can have {self.size}, but max_regions is {self.max_regions}; "
            f"max_depth={self.possible_depth} fits, or fewer columns or codes, or give a budget"
        )
