"""From a table to codes: the schema beside `numpy.searchsorted`, column by column.

`python benchmarks/schema.py --quick` is a smoke run; `--out benchmarks/RESULTS.md` keeps the answers. One thread,
everything in one process, codes compared before any clock starts.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import everytree as et
import markdown
from markdown import number, section, table, times
from timing import medians, started


def searchsorted(schema: et.Schema, X: NDArray[Any]) -> NDArray[Any]:
    """The codes of numbers by NumPy alone."""
    codes = np.empty(X.shape, dtype=schema.dtype)
    for k, column in enumerate(schema.columns):
        codes[:, k] = np.searchsorted(column.cuts, X[:, k], side="left")
    return codes


def numbers(n_rows: int, repeats: int) -> str:
    """Encoding and fitting of numbers, for several layouts and numbers of cuts."""
    rng = np.random.default_rng(0)
    normal = rng.normal(size=(n_rows, 20))
    tables = {
        "float64, by rows, 254 cuts": (normal, 255),
        "float64, by columns, 254 cuts": (np.asfortranarray(normal), 255),
        "float32, by rows, 254 cuts": (normal.astype(np.float32), 255),
        "int64, by rows, 99 cuts": (rng.integers(0, 100, normal.shape), 255),
        "float64, by rows, 15 cuts": (normal, 16),
        "float64, by rows, 4095 cuts": (normal, 4096),
    }
    rows = []
    for name, (X, max_bins) in tables.items():
        schema = et.Schema.fit(X, max_bins=max_bins)
        np.testing.assert_array_equal(schema.encode(X), searchsorted(schema, X), name)
        ms = medians(
            {
                "encode": started(lambda s=schema: s, lambda s, X=X: s.encode(X)),
                "searchsorted": started(lambda s=schema: s, lambda s, X=X: searchsorted(s, X)),
                "fit": started(lambda: None, lambda _, X=X, b=max_bins: et.Schema.fit(X, max_bins=b)),
            },
            repeats,
        )
        rows.append([name, times(ms["searchsorted"], ms["encode"]), *map(number, ms.values())])
    return section(
        "Numbers",
        f"`schema.encode(X)` of {n_rows:,} rows and 20 columns beside `np.searchsorted`; median of {repeats}.",
        table(["table", "searchsorted / encode", "encode, ms", "searchsorted, ms", "fit, ms"], rows),
    )


def main() -> None:
    """Print the tables as they come, and keep them if asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small problems and few repetitions")
    parser.add_argument("--out", type=Path, help="results file whose section 'schema' is replaced")
    options = parser.parse_args()
    quick = options.quick
    parts = ["## Schema" + (" (quick run, not for quoting)" if quick else "")]
    parts.append(numbers(20_000 if quick else 1_000_000, 3 if quick else 5))
    print(parts[-1], end="\n\n", flush=True)
    if options.out:
        markdown.write_section(options.out, "schema", "\n\n".join(parts))


if __name__ == "__main__":
    main()
