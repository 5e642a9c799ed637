"""Errors that a user can correct, in one sentence, in terms of files and options instead of Python's arguments."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping

from everytree.base.errors import RefusedError, TooManyRegionsError
from everytree.base.words import listed, nearest

ROLES = {
    "y": "target",
    "sample_weight": "weight",
    "exposure": "exposure",
    "censored": "censored",
    "event": "event",
    "groups": "groups",
}
"""Arguments that are columns of the table, and what options call them."""
OPTIONS = {"max_depth": "--depth", "n_estimators": "--trees", "n_jobs": "--jobs", "random_state": "--seed"}
"""Arguments that are options."""


class UserError(Exception):
    """An error of a file, a column or an option; the message names it and what would be right."""


def one_of(name: str, names: Iterable[str]) -> str:
    """The names that are most like one that is not there, or all names where none is like it."""
    known = list(names)
    like = nearest(name, known)
    if like:
        return like
    more = f" and {len(known) - 20} more" if len(known) > 20 else ""
    return f"there are {listed(known[:20])}{more}"


def no_column(source: str, name: str, columns: Iterable[str], purpose: str) -> UserError:
    """The error for a name in a list that is no column; names with commas are cut where they are not in quotes."""
    known = list(columns)
    with_comma = next((other for other in known if "," in other), None)
    hint = "" if with_comma is None else f"; a name with a comma needs quotes of its own, as in '\"{with_comma}\"'"
    return UserError(f"{source}: there is no column {name!r} to {purpose}; {one_of(name, known)}{hint}")


def warn(sentence: str) -> None:
    """Print a warning; `--quiet` does not silence it."""
    print("everytree:", sentence, file=sys.stderr)


class StoppedError(UserError):
    """The user has interrupted the command."""

    def __init__(self) -> None:
        super().__init__("interrupted; nothing was written")


# ---- what the library refuses ---------------------------------------------------------------------------------------


def in_words_of_files(error: Exception, roles: Mapping[str, str | None], place: Callable[[int], str]) -> str:
    """An error of the library with lines for rows, columns and options for arguments; one without fields as it is.

    `roles` are the columns of `y` and the like, `place` says what errors call a row.
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
