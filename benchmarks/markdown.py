"""Markdown tables, and a results file of which each benchmark script replaces only its own section."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

TITLE = "# Benchmarks\n\nWritten by the scripts in this folder; ratios are of times measured in one run.\n"


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Format a Markdown table; the first column is text, the others are aligned right."""
    lines = [columns, ["---", *["---:"] * (len(columns) - 1)], *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def section(title: str, remark: str, *tables: str) -> str:
    """Put a heading and a remark above the tables."""
    return "\n\n".join([f"### {title}", remark, *tables])


def number(value: float, digits: int = 3) -> str:
    """Write a measured quantity to so many significant digits, never in scientific notation."""
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{decimals}f}"


def times(numerator: float, denominator: float) -> str:
    """Write a ratio as so many times."""
    return f"{number(numerator / denominator)}x"


def machine() -> str:
    """Describe the machine in general terms: cores, CPU vendor and family, Python and NumPy."""
    cpu = _cpu_fields()
    maker = f"{cpu.get('vendor_id', platform.machine())} family {cpu.get('cpu family', 'unknown')}"
    return (
        f"{os.cpu_count()} cores, {maker}, {platform.system()}, "
        f"Python {platform.python_version()}, NumPy {np.__version__}."
    )


def write_section(path: Path, name: str, body: str) -> None:
    """Replace section `name` of the file, or append it; the other sections stay, the machine is renewed."""
    text = path.read_text(encoding="utf-8") if path.exists() else TITLE
    text = _with_section(text, "machine", machine())
    path.write_text(_with_section(text, name, body), encoding="utf-8")


def _with_section(text: str, name: str, body: str) -> str:
    """Return `text` with the part between the marks of `name` replaced by `body`."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    section = f"{begin}\n{body.strip()}\n{end}"
    if (begin in text) != (end in text):
        raise ValueError(f"results file: only one of the marks {begin!r} and {end!r} is there")
    if begin not in text:
        return f"{text.rstrip()}\n\n{section}\n"
    head, rest = text.split(begin, 1)
    return head + section + rest.split(end, 1)[1]


def _cpu_fields() -> dict[str, str]:
    """Read the first processor's fields where the system lists them."""
    listing = Path("/proc/cpuinfo")
    if not listing.exists():
        return {}
    first = listing.read_text(encoding="utf-8").split("\n\n")[0]
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in first.split("\n"))}
