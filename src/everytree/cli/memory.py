"""Memory limit of tables, given or half of what is free, and sampling of tables that take more."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import typer

from everytree.batches.text_types import SeenTypes
from everytree.cli.rows import Stretch, TableRows
from everytree.cli.tables import OpenTable

UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
SHARE = 0.5
"""Of the memory that is free, for a table as it is in its file; its codes and the trees need the rest."""
LIMIT, USED = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
"""Files with the memory limit of a container, and its use."""
MEMORY = Path("/proc/meminfo")
LEAST_ROWS = 1000
"""Of a sample: these are never too many."""


def memory_limit(text: str | None) -> int:
    """Bytes that a table may take: as `--memory` says, or half of the memory that is free."""
    return default_size() if text is None else parse_size("--memory", text)


def too_long(table: OpenTable) -> str:
    """That a table takes more memory than it may, and how much; nothing where it fits."""
    size = table.bytes_in_memory()
    if table.limit is None or size <= table.limit:
        return ""
    return f"{table.name}: its rows take about {shown(size)} in memory, more than --memory {shown(table.limit)}"


def rows_that_fit(table: OpenTable, say: Callable[[str], object]) -> TableRows:
    """All rows of a table, or, with a note, a random sample of as many as fit in memory."""
    found = too_long(table)
    if not found or table.limit is None:
        return table.read()
    rows = _sample(table, table.limit / table.bytes_in_memory())
    n_rows, of_all = rows.n_rows, rows.n_rows_in_all
    say(f"{found}: {n_rows:,} of its {of_all:,} rows are used, drawn at random; a larger --memory takes more")
    return rows


def _sample(table: OpenTable, share: float) -> TableRows:
    """This share of all rows, each as likely as the others, in their order."""
    import pyarrow as pa

    types, n_rows = _scan(table)
    size = min(max(int(share * n_rows), LEAST_ROWS), n_rows)
    drawn = np.sort(np.random.default_rng(0).choice(n_rows, size, replace=False, shuffle=False))
    stretches: list[Stretch] = []
    taken, first = [], 0
    for part in table.parts(types=types):
        begin, end = np.searchsorted(drawn, [first, first + part.n_rows])
        taken.append(part.table.take(drawn[begin:end] - first))
        stretches += part.stretches
        first += part.n_rows
    return TableRows(table.name, pa.concat_tables(taken), tuple(stretches), table.is_text, drawn)


def _scan(table: OpenTable) -> tuple[dict[str, Any], int]:
    """Types that hold all rows, of text, and how many rows there are."""
    n_rows, seen = table.count_rows(), SeenTypes()
    if n_rows is not None:
        return {}, n_rows
    n_rows = 0
    for part in table.parts():
        seen.add(part.table)
        n_rows += part.n_rows
    return seen.types, n_rows


# ---- sizes ----------------------------------------------------------------------------------------------------------


def parse_size(option: str, text: str) -> int:
    """Bytes from a number and a unit, such as 2G, 500M or 1.5GiB."""
    plain = text.strip().upper().removesuffix("IB").removesuffix("B")
    number, unit = (plain[:-1], plain[-1:]) if plain[-1:] in UNITS else (plain, "")
    try:
        size = float(number) * UNITS[unit]
        if 0.0 < size < 2.0**63:
            return int(size)
    except ValueError:
        pass
    raise typer.BadParameter(f"{text!r} is not an amount of memory such as 500M, 2G or 1.5G", param_hint=option)


def default_size() -> int:
    """Half of the memory that is free."""
    return int(SHARE * min(_free_of_machine(), _free_of_container()))


def shown(size: int) -> str:
    """Bytes for people."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.3g} {unit}"
        size /= 1024  # type: ignore[assignment]
    return f"{size:,.3g} TiB"


def _free_of_machine() -> float:
    try:
        lines = MEMORY.read_text().splitlines()
        (kibibytes,) = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
        return 1024.0 * int(kibibytes)
    except (OSError, ValueError):
        pass
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):  # a system that does not say
        return 2.0**33


def _free_of_container() -> float:
    try:
        return float(int(LIMIT.read_text()) - int(USED.read_text()))
    except (OSError, ValueError):  # no container, or one without a limit
        return float("inf")
