"""More rows than memory: fits from a Parquet file beside merely reading it, and what a second thread brings.

`python benchmarks/batches.py --quick` is a smoke run; `--out benchmarks/RESULTS.md` keeps the answers. The file is
written to a temporary folder, or where `--data` says, and removed again. Every fit runs in a process of its own, whose
peak memory is its own; statistics are compared with those of the whole table in memory.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet

import everytree as et
import markdown
from everytree.posterior.counts import ForestCounts
from markdown import number, section, table, times
from timing import medians, started

CONFIGURATIONS: dict[str, tuple[str, dict[str, Any], int]] = {
    "one tree, depth 5, sample of 20,000": ("MetaTreeClassifier", {"max_depth": 5}, 20_000),
    "one tree, as it comes": ("MetaTreeClassifier", {}, 100_000),
    "10 trees, depth 10, sample of 20,000": ("MetaForestClassifier", {"n_estimators": 10, "max_depth": 10}, 20_000),
    "10 trees, as they come": ("MetaForestClassifier", {"n_estimators": 10}, 100_000),
}
LARGE = {"100 trees, as they come": ("MetaForestClassifier", {}, 100_000)}

PART_ROWS = 1_000_000


# ---- the table ------------------------------------------------------------------------------------------------------


def part_of_table(n_rows: int, seed: int) -> pa.Table:
    """Nineteen columns such as a business has them, and a target of two classes."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((12, n_rows), dtype=np.float32)
    age = rng.integers(18, 90, n_rows).astype(np.int16)
    logit = X[0] + X[1] * X[2] + 0.02 * (age - 50)
    return pa.table(
        {f"x{k}": X[k] for k in range(12)}
        | {
            "age": age,
            "orders": rng.poisson(3, n_rows).astype(np.int32),
            "amount": np.round(rng.lognormal(3, 1, n_rows), 2),
            "gap": pa.array(rng.standard_normal(n_rows, dtype=np.float32), mask=rng.random(n_rows) < 0.05),
            "city": _text(rng, n_rows, [f"city {i:03d}" for i in range(200)]),
            "colour": _text(rng, n_rows, ["red", "green", "blue", "black", "white", "grey"]),
            "member": rng.random(n_rows) < 0.3,
            "y": (rng.random(n_rows) < 1.0 / (1.0 + np.exp(-logit))).astype(np.int8),
        }
    )


def _text(rng: np.random.Generator, n_rows: int, labels: list[str]) -> pa.Array:
    index = pa.array(rng.integers(0, len(labels), n_rows).astype(np.int32))
    return pa.DictionaryArray.from_arrays(index, pa.array(labels)).cast(pa.string())


def write_file(path: Path, n_rows: int) -> None:
    """A Parquet file as pyarrow writes it unless told otherwise, row groups of a million."""
    writer = None
    for seed, start in enumerate(range(0, n_rows, PART_ROWS)):
        part = part_of_table(min(PART_ROWS, n_rows - start), seed)
        writer = writer or pyarrow.parquet.ParquetWriter(path, part.schema)
        writer.write_table(part)
    assert writer is not None
    writer.close()


# ---- one process each -----------------------------------------------------------------------------------------------


def spent(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds by the clock, and of processors."""
    start, of_processors = perf_counter(), process_time()
    work()
    return perf_counter() - start, process_time() - of_processors


def read_once(path: str, pre_buffer: bool) -> None:
    """Read the file with pyarrow, batch by batch, and do nothing with it."""
    options = pyarrow.dataset.ParquetFragmentScanOptions(pre_buffer=pre_buffer)
    for batch in pyarrow.dataset.dataset(path).to_batches(fragment_scan_options=options):
        del batch


def child(path: str, name: str) -> dict[str, Any]:
    """One configuration: seconds of fitting and reading, memory above import, and how far statistics are apart."""
    kind, options, sample_rows = (CONFIGURATIONS | LARGE)[name]
    model = getattr(et, kind)(**options, n_jobs=-1, random_state=0)
    before = _resident()
    memory, fits, reads = 0, [], []
    for _ in range(3):
        fits.append(spent(lambda: model.fit_batches(path, target="y", sample_rows=sample_rows)))
        memory = memory or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
        reads += [spent(lambda ahead=ahead: read_once(path, ahead)) for ahead in (True, False)]
    fit, read = ([min(each) for each in zip(*runs, strict=True)] for runs in (fits, reads))
    return {"fit": fit, "memory": memory, "read": read, "apart": farthest(model, path)}


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
    return pages * resource.getpagesize()


def farthest(model: Any, path: str) -> float:
    """Largest relative deviation from posteriors of the same structures updated with the whole table at once."""
    whole = pyarrow.parquet.read_table(path)
    codes = model.schema_.encode(whole.drop(["y"]), n_jobs=-1)
    y = whole["y"].to_numpy()
    apart = 0.0
    for post in model.posteriors_:
        other = et.Posterior(post.tree, post.family, post.split_prior).update(codes, y, n_jobs=-1)
        for name in ("statistics", "subtree_log_evidence", "split_prob"):
            mine, theirs = getattr(post, name), getattr(other, name)
            apart = max(apart, float(np.max(np.abs(mine - theirs) / np.maximum(1.0, np.abs(theirs)))))
    return apart


def in_process(path: Path, name: str) -> dict[str, Any]:
    """What `child` says, from a new process."""
    run = subprocess.run(
        [sys.executable, __file__, "--data", str(path), "--only", name], capture_output=True, text=True, check=True
    )
    answer: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return answer


def beside_reading(path: Path, n_rows: int, names: list[str]) -> str:
    """Every configuration beside merely reading the file."""
    rows = []
    for name in names:
        one = in_process(path, name)
        (fit, fit_work), (read, read_work) = one["fit"], one["read"]
        speed, memory = number(n_rows / fit / 1e6), number(one["memory"] / 1e9)
        ratios = times(fit, read), times(fit_work, read_work)
        rows.append([name, *ratios, number(fit), number(read), speed, memory, f"{one['apart']:.1e}"])
        print(rows[-1], flush=True)
    columns = ["model", "fit / read", "in processor time", "fit, s", "read, s", "million rows a second"]
    columns += ["memory, GB", "apart"]
    size = number(path.stat().st_size / 1e9)
    return section(
        "A file",
        f"`fit_batches` on a Parquet file of {n_rows:,} rows and 20 columns, {size} GB, all cores, beside pyarrow "
        "reading it once with its own threads and doing nothing, with and without its buffer ahead of need, whichever "
        "is faster; the best of three each. Both passes, growing and choosing priors included. Memory is the peak of "
        "the first fit above what is resident after import; apart is the largest relative deviation from the same "
        "structures updated with the whole table in memory.",
        table(columns, rows),
    )


# ---- threads --------------------------------------------------------------------------------------------------------


def two_threads(n_rows: int, repeats: int) -> str:
    """Encoding, statistics and prediction with one thread and with two."""
    parts = [part_of_table(min(PART_ROWS, n_rows - start), i) for i, start in enumerate(range(0, n_rows, PART_ROWS))]
    whole = pa.concat_tables(parts).combine_chunks()
    X, y = whole.select([f"x{k}" for k in range(12)]), whole["y"].to_numpy()
    model = et.MetaForestClassifier(10, max_depth=10, random_state=0).fit(X.slice(0, 20_000), y[:20_000])
    codes = model.schema_.encode(X)
    post = model.posteriors_[0]
    work = {
        "encode": lambda n_jobs: model.schema_.encode(X, n_jobs=n_jobs),
        "statistics of one tree": lambda n_jobs: post.copy().update(codes, y, n_jobs=n_jobs),
        "statistics of 10 trees": lambda n_jobs: ForestCounts(model.forest_).update(codes, y, n_jobs=n_jobs),
        "prediction by 10 trees": lambda n_jobs: model.forest_.probs(codes, n_jobs=n_jobs),
    }
    rows = []
    for name, run in work.items():
        ms = medians({str(j): started(lambda j=j: j, lambda j, run=run: run(j)) for j in (1, 2)}, repeats)
        rows.append([name, times(ms["1"], ms["2"]), number(ms["1"]), number(ms["2"])])
    return section(
        "Two threads",
        f"{n_rows:,} rows, 12 columns of numbers; median of {repeats}. The same bits come out.",
        table(["work", "one / two", "one thread, ms", "two, ms"], rows),
    )


def main() -> None:
    """Print the tables as they come, and keep them if asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small problems and few repetitions")
    parser.add_argument("--large", action="store_true", help="100 trees too, which takes minutes")
    parser.add_argument("--data", type=Path, help="folder for the file, or such a file that is there already")
    parser.add_argument("--only", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help="results file whose section 'batches' is replaced")
    options = parser.parse_args()
    if options.only:
        print(json.dumps(child(str(options.data), options.only)))
        return
    quick = options.quick
    parts = ["## Batches" + (" (quick run, not for quoting)" if quick else "")]
    n_rows = 100_000 if quick else 20_000_000
    names = [*CONFIGURATIONS, *(LARGE if options.large else ())]
    names = names[:2] if quick else names
    if options.data and options.data.is_file():
        parts.append(beside_reading(options.data, pyarrow.parquet.read_metadata(options.data).num_rows, names))
    else:
        with tempfile.TemporaryDirectory(dir=options.data) as folder:
            path = Path(folder) / "rows.parquet"
            write_file(path, n_rows)
            parts.append(beside_reading(path, n_rows, names))
    print(parts[-1], end="\n\n", flush=True)
    parts.append(two_threads(50_000 if quick else 10_000_000, 3))
    print(parts[-1], end="\n\n", flush=True)
    if options.out:
        markdown.write_section(options.out, "batches", "\n\n".join(parts))


if __name__ == "__main__":
    main()
