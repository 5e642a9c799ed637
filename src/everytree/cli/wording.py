"""What the library says of its arguments, in the words of files and options."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

ROLES = {"y": "target", "sample_weight": "weight", "exposure": "exposure", "censored": "censored"}
"""Arguments that are columns of the table, and what options call them."""
OPTIONS = {
    r"\bmax_depth=": "--depth ",
    r"\bmax_depth\b": "--depth",
    r"\bn_estimators\b": "--trees",
    r"\bn_jobs\b": "--jobs",
    r"\bbut max_regions is\b": "but the most are",
    r", or give a budget$": "",
    r"\bhas (<U\d+|object) such as\b": "has text such as",
}
"""Arguments that are options, and types of NumPy; the command line has no limit of regions and no budget to give."""


def in_words_of_files(message: str, roles: Mapping[str, str | None], place: Callable[[int], str]) -> str:
    """The same with lines for rows, columns and options for arguments.

    Parameters
    ----------
    message : str
    roles : mapping of str to str or None
        The columns of `y` and the like.
    place : callable
        What errors call a row.
    """

    def cell(argument: str) -> str:
        return repr(roles.get(argument) or argument)

    def column(argument: str) -> str:
        return f"the {ROLES[argument]} {roles[argument]!r}" if roles.get(argument) else ROLES[argument]

    arguments = "|".join(ROLES)
    said = re.sub(rf"\b({arguments})\[(\d+)\]", lambda at: f"{cell(at[1])}, {place(int(at[2]))},", message)
    said = re.sub(rf"^({arguments})(?=:? )", lambda at: column(at[1]), said)
    said = re.sub(r"\brow (\d+)", lambda at: place(int(at[1])), said)
    for argument, option in OPTIONS.items():
        said = re.sub(argument, option, said)
    return said.removeprefix("X: ").replace("\n", " ")
