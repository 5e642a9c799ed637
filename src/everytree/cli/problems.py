"""What a user can put right, said in one sentence."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """Something wrong with a file, a column or an option; the message names it and says what would be right."""


def nearest(name: str, names: Iterable[str]) -> str:
    """The names that are most like one that is not there; nothing where none is like it."""
    folded = {other.casefold(): other for other in reversed(list(names))}
    like = [folded[match] for match in difflib.get_close_matches(name.casefold(), folded, n=3, cutoff=0.5)]
    if not like:
        return ""
    return f"the nearest are {_listed(like)}" if len(like) > 1 else f"the nearest is {like[0]!r}"


def one_of(name: str, names: Iterable[str]) -> str:
    """The names that are most like one that is not there, or all names where none is like it."""
    known = list(names)
    like = nearest(name, known)
    if like:
        return like
    more = f" and {len(known) - 20} more" if len(known) > 20 else ""
    return f"there are {_listed(known[:20])}{more}"


def no_column(source: str, name: str, columns: Iterable[str], purpose: str) -> UserError:
    """The error for a name in a list that is no column; names with commas are cut where they are not in quotes."""
    known = list(columns)
    with_comma = next((other for other in known if "," in other), None)
    hint = "" if with_comma is None else f"; a name with a comma needs quotes of its own, as in '\"{with_comma}\"'"
    return UserError(f"{source}: there is no column {name!r} to {purpose}; {one_of(name, known)}{hint}")


def _listed(names: list[str]) -> str:
    return ", ".join(map(repr, names))


class StoppedError(UserError):
    """The user has had enough."""

    def __init__(self) -> None:
        super().__init__("interrupted; nothing was written")
