"""How much memory a table may take: as told, or as the machine has it."""

from __future__ import annotations

import os
from pathlib import Path

import typer

UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
SHARE = 0.5
"""Of the memory that is free, for a table as it is in its file; its codes and the trees need the rest."""
LIMIT, USED = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
"""What a container may use, and what it uses."""
MEMORY = Path("/proc/meminfo")


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
    raise typer.BadParameter(f"{text!r} is no amount of memory such as 500M, 2G or 1.5G", param_hint=option)


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
