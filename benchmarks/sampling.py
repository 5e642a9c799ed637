"""The sampler of structures: proposals a second, agreement with the exact sum, and a planted deep tree.

`python benchmarks/sampling.py --quick` is a smoke run; `--out benchmarks/RESULTS.md` keeps the answers. The sampler
beside it makes moves of single nodes only, at one temperature: the same kernel without blocks and exchange.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import everytree as et
import markdown
from everytree import _kernels
from everytree.sampling.points import DistinctRows
from everytree.sampling.sampler import MAX_BLOCK_STEPS, SUMMED_DEPTH
from markdown import number, section, table

FAMILY = et.Bernoulli(0.5, 0.5)


def kernel(X: NDArray[np.int64], y: NDArray[np.int64], n_chains: int) -> _kernels.Sampler:
    """Chains at one temperature, without a limit of depth."""
    n_codes = (X.max(axis=0) + 1).tolist()
    rows = DistinctRows.read(FAMILY, n_codes, X, y, None, {})
    log_half = [float(np.log(0.5))] * 64
    return _kernels.make_sampler(
        name=FAMILY.kernel, size=FAMILY.size, prior=FAMILY.kernel_prior, codes=rows.codes, n_codes=n_codes,
        kinds=[0] * X.shape[1], statistics=rows.statistics, log_split=log_half, log_stop=log_half,
        summed_depth=SUMMED_DEPTH, only_nontrivial=False, block_depth=3, max_block_cost=MAX_BLOCK_STEPS,
        powers=[1.0], seeds=list(range(n_chains)),
    )  # fmt: skip


def speed(sizes: tuple[int, ...], n_draws: int) -> str:
    """Proposals of single nodes a second, on one thread."""
    rng, rows = np.random.default_rng(0), []
    for n in sizes:
        X = rng.integers(0, 16, (n, 20))
        engine = kernel(X, ((X[:, 0] > 7) ^ (X[:, 1] > 7) ^ (rng.random(n) < 0.2)).astype(int), 1)
        engine.begin(False, 1)
        engine.run(n_draws=20, thin=0, n_single=100, n_blocks=2, n_jobs=1)
        begun = time.perf_counter()
        engine.run(n_draws=n_draws, thin=0, n_single=1000, n_blocks=0, n_jobs=1)
        rows.append([f"{n:,} rows", number(1000 * n_draws / (time.perf_counter() - begun))])
    remark = "20 columns of 16 codes, no limit of depth, one thread."
    return section("Proposals of single nodes", remark, table(["table", "proposals a second"], rows))


COMPARED = ["largest error of a column's probability", "error of log evidence", "its own error", "R-hat"]


def largest_rhat(sampler: et.StructureSampler) -> float:
    """R-hat of the number of leaves and of the use of each column, the largest; NaN without ArviZ."""
    try:
        import arviz
    except ImportError:
        return float("nan")
    found = arviz.rhat(sampler.to_arviz().posterior[["n_leaves", "used"]])
    return float(np.nanmax([found["n_leaves"].item(), *found["used"].to_numpy()]))


def beside_exact(values: NDArray[np.int64], depth: int, start: Any, n_draws: int) -> list[str]:
    """What `COMPARED` names, for columns of 0 and 1, the label last."""
    X, y = values[:, :-1], values[:, -1]
    n_codes = [2] * X.shape[1]
    exact = et.ExactPosterior(n_codes, FAMILY, depth).fit(X, y)
    sampler = et.StructureSampler(n_codes, FAMILY, depth, random_state=0, start=start).fit(X, y, n_draws=n_draws)
    evidence = sampler.log_evidence
    return [
        f"{np.abs(sampler.feature_prob - exact.feature_prob).max():.4f}",
        f"{evidence.value - exact.log_evidence:.3f}", f"{evidence.error:.3f}", f"{largest_rhat(sampler):.3f}",
    ]  # fmt: skip


def agreement(n_rows: int, n_draws: int) -> str:
    """Probabilities of columns and the evidence beside the exact sum."""
    rng = np.random.default_rng(1)
    X = rng.integers(0, 2, (n_rows, 12))
    y = ((X[:, 0] & X[:, 1]) ^ (rng.random(n_rows) < 0.2)).astype(int)
    values = np.column_stack([X, y])
    rows = [
        [f"depth {depth}, from {start}", *beside_exact(values, depth, start, n_draws)]
        for depth in (3, 4)
        for start in ("prior", "worst")
    ]
    remark = f"{n_rows} rows, 12 columns, {n_draws} draws."
    return section("Beside the exact sum", remark, table(["chains", *COMPARED], rows))


def binary_tables(folder: Path, n_draws: int) -> str:
    """The same for CSV files of columns of 0 and 1, the label last."""
    rows = [
        [f"{path.name.split('.')[0]}, depth {depth}, from {start}", *beside_exact(values, depth, start, n_draws)]
        for path in sorted(folder.glob("*.csv*"))
        for values in [np.loadtxt(path, delimiter=",", dtype=np.int64)]
        for depth in (3, 4)
        for start in ("prior", "worst")
    ]
    return section("Binary tables", f"{n_draws} draws of each of four chains.", table(["chains", *COMPARED], rows))


def planted(seed: int, n: int, n_columns: int, depth: int) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Rows of a random tree whose splits all move the log odds by the same amount, and the column of its root."""
    rng = np.random.default_rng(seed)
    X, log_odds, root = rng.integers(0, 2, (n, n_columns)), np.zeros(n), -1
    parts = [(np.arange(n), list(range(n_columns)), 0)]
    while parts:
        rows, left, level = parts.pop()
        if level == depth:
            continue
        column = int(rng.choice(left))
        root = column if level == 0 else root
        log_odds[rows] += rng.choice([-0.9, 0.9]) * (2 * X[rows, column] - 1)
        below = [k for k in left if k != column]
        parts += [(rows[X[rows, column] == value], below, level + 1) for value in (0, 1)]
    return X, (rng.random(n) < 1.0 / (1.0 + np.exp(-log_odds))).astype(int), root


def deep(n: int, n_columns: int, n_draws: int, n_chains: int) -> str:
    """How many chains have the root of a planted tree at their end."""
    X, y, root = planted(0, n, n_columns, 6)
    begun = time.perf_counter()
    sampler = et.StructureSampler([2] * n_columns, FAMILY, n_chains=n_chains, random_state=0)
    sampler.fit(X, y, n_draws=n_draws, burn_in=n_draws)
    seconds = time.perf_counter() - begun
    found = int((sampler.draws.root_column[:, 0] == root).sum())
    plain = kernel(X, y, n_chains)
    plain.begin(False, 1)
    begun, last = time.perf_counter(), []
    while time.perf_counter() - begun < seconds:
        last = plain.run(n_draws=20, thin=0, n_single=500, n_blocks=0, n_jobs=1)
    by_plain = sum(int(each["root_column"][-1] == root) for each in last)
    rows = [["blocks and exchange", f"{found} of {n_chains}"], ["single moves, as long", f"{by_plain} of {n_chains}"]]
    remark = f"A tree of depth 6, {n} rows, {n_columns} binary columns; {seconds:.0f} s on one thread."
    return section("A planted deep tree", remark, table(["chains", "root found"], rows))


def main() -> None:
    """Print the tables, and keep them if asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small problems and few draws")
    parser.add_argument("--out", type=Path, help="results file whose section 'sampling' is replaced")
    parser.add_argument("--tables", type=Path, help="folder of CSV files of columns of 0 and 1, the label last")
    options = parser.parse_args()
    if options.quick:
        found = [speed((200,), 5), agreement(60, 50), deep(100, 8, 10, 2)]
    else:
        found = [speed((1000, 10_000), 100), agreement(300, 2000), deep(1000, 50, 300, 10)]
    if options.tables:
        found.append(binary_tables(options.tables, 100 if options.quick else 6000))
    text = "\n\n".join(found)
    print(text)
    if options.out:
        markdown.write_section(options.out, "sampling", text)


if __name__ == "__main__":
    main()
