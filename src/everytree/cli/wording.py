"""What the library refuses, in the words of files and options."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from everytree.base.errors import RefusedError
from everytree.exact.regions import TooManyRegionsError

ROLES = {"y": "target", "sample_weight": "weight", "exposure": "exposure", "censored": "censored", "groups": "groups"}
"""Arguments that are columns of the table, and what options call them."""
OPTIONS = {"max_depth": "--depth", "n_estimators": "--trees", "n_jobs": "--jobs", "random_state": "--seed"}
"""Arguments that are options."""


def in_words_of_files(error: Exception, roles: Mapping[str, str | None], place: Callable[[int], str]) -> str:
    """An error with lines for rows, columns and options for arguments.

    Parameters
    ----------
    error : Exception
        Of the library; one without fields says what it says.
    roles : mapping of str to str or None
        The columns of `y` and the like.
    place : callable
        What errors call a row.
    """
    if isinstance(error, TooManyRegionsError):
        return (
            f"--depth {error.max_depth} on these columns can have {error.size}, but the most are {error.max_regions}; "
            f"--depth {error.possible_depth} fits, or fewer columns or codes"
        )
    if not isinstance(error, RefusedError):
        return str(error)
    column = roles.get(error.argument)
    row = "" if error.row is None else place(error.row)
    return error.sentence(_whole(error, column), row, f"{column or error.argument!r}, {row},")


def _whole(error: RefusedError, column: str | None) -> str:
    """The argument as a whole, or one of its columns."""
    if error.column is not None:
        return error.column
    if error.argument in ROLES:
        return ROLES[error.argument] if column is None else f"the {ROLES[error.argument]} {column!r}"
    return OPTIONS.get(error.argument, error.argument)
