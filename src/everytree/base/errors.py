"""Errors that carry what they say: which argument is wrong, where, and what would be right.

The text of such an error speaks of arguments of Python. Others, such as the command line, word the same fields anew.
"""

from __future__ import annotations

from typing import Self


class RefusedError(Exception):
    """An argument is wrong. Raised as `ArgumentError`, which is a ValueError, or `ArgumentTypeError`, a TypeError.

    Parameters
    ----------
    argument : str
        Its name.
    must : str
        What would be right, as the end of the sentence: "must be positive". Where there is no value, all of it.
    column : str or None
        Which column of the table `argument`, as messages name it: "column 'age'".
    row : int or None
    value : str or None
        What was found there, as messages show it.
    part : (str, int) or None
        In which part of many the row is counted, such as ("batch", 3).
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
        super().__init__(argument, must, column, row, value, part)  # what a copy in another process is made from
        self.argument, self.must = argument, must
        self.column, self.row, self.value, self.part = column, row, value, part

    def within(self, part: tuple[str, int]) -> Self:
        """The same error, found in one of many parts."""
        return type(self)(self.argument, self.must, self.column, self.row, self.value, part)

    @property
    def problem(self) -> str:
        """The sentence without its subject."""
        return self.must if self.value is None else f"is {self.value}, but {self.must}"

    def sentence(self, whole: str, row: str, cell: str) -> str:
        """The text in the words of the caller: for the argument or its column as a whole, for the row, for one cell."""
        if self.row is None:
            return f"{whole} {self.problem}"
        if self.column is None:
            return f"{cell} {self.problem}"
        return f"{whole}, {row}: {self.must if self.value is None else f'{self.value}, but {self.must}'}"

    def __str__(self) -> str:
        whole = self.argument if self.column is None else f"{self.argument}: {self.column}"
        said = self.sentence(whole, f"row {self.row}", f"{self.argument}[{self.row}]")
        return said if self.part is None else f"{self.part[0]} {self.part[1]}: {said}"


class ArgumentError(RefusedError, ValueError):
    """A value that is not allowed."""


class ArgumentTypeError(RefusedError, TypeError):
    """A value of a type that is not allowed."""


class ChangedColumnError(ArgumentError):
    """A column is of another kind than it was; `row` and `value` are an example."""

    def sentence(self, whole: str, row: str, cell: str) -> str:
        return f"{whole} {self.must}: {row} holds {self.value}"


class MissingValueError(ArgumentError):
    """A row lacks what every row needs; `column` says what, and there is no value."""

    def sentence(self, whole: str, row: str, cell: str) -> str:
        return f"{self.column} is missing in {row}: {self.must}"


class TooManyRegionsError(ValueError):
    """A depth of exact trees that can have more regions than are allowed.

    Parameters
    ----------
    max_depth, regions, n_bytes : int
        What was asked for, how many regions it can have, and what memory they take.
    max_regions, possible_depth : int
        How many regions are allowed, and the largest depth that has no more.
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
