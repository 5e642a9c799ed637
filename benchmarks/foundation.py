"""The foundation beside the reference library: speed, growth, memory, sharing, imports and threads.

`python benchmarks/foundation.py --quick` is a smoke run; `--out benchmarks/RESULTS.md` keeps the answers. One
thread unless a table says otherwise; competitors run in one process; answers are compared to 1e-10
before any clock starts; building models is outside the clock for both libraries.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import everytree as et
import markdown
import reference
from markdown import number, section, table, times
from timing import Setup, in_blocks, medians, started

Array = NDArray[Any]
Update = Callable[[Array, Array], object]
Batches = Sequence[tuple[Array, Array]]

HERE = Path(__file__).resolve().parent
HYPER = {"alpha": 0.5, "beta": 0.5}
TOLERANCE = 1e-10


@dataclass(frozen=True)
class Effort:
    """How much to measure: repetitions, and the largest problem."""

    repeats: int
    paper_repeats: int
    max_rows: int
    max_depth: int

    def rows(self, *sizes: int) -> list[int]:
        """Row counts, none above the largest allowed."""
        return sorted({min(n, self.max_rows) for n in sizes})

    def depths(self, *depths: int) -> list[int]:
        """Depths, none above the largest allowed."""
        return sorted({min(d, self.max_depth) for d in depths})


QUICK = Effort(repeats=3, paper_repeats=5, max_rows=10_000, max_depth=10)
FULL = Effort(repeats=7, paper_repeats=100, max_rows=10_000_000, max_depth=20)


def agree(ours: Any, theirs: Any, what: str) -> None:
    """Stop when two answers differ: a wrong answer has no speed."""
    difference = float(np.max(np.abs(np.asarray(ours) - np.asarray(theirs))))
    if not difference <= TOLERANCE:
        raise SystemExit(f"{what}: answers differ by {difference:.3g}, more than {TOLERANCE:g}")


def fresh_interpreter(code: str) -> str:
    """Run `code` in a process of its own, with this folder importable, and return what it prints."""
    done = subprocess.run([sys.executable, "-c", code], cwd=HERE, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


# --- problems, and each library on them


def distinct_levels(n_features: int, seeds: Sequence[Sequence[int]]) -> list[Array]:
    """Features of a complete binary tree level by level, none twice on a path; one seed for each level."""
    order = np.arange(n_features, dtype=np.int16)[None]
    levels = []
    for depth, seed in enumerate(seeds):
        order = np.repeat(order, 2 if depth else 1, axis=0)
        node = np.arange(len(order))
        pick = np.random.default_rng(seed).integers(depth, n_features, len(order))
        levels.append(order[node, pick])
        order[node, pick] = order[:, depth]
        order[:, depth] = levels[-1]
    return levels


def complete_tree(n_features: int, depth: int) -> et.MetaTree:
    """Complete binary tree that asks no feature twice on a path."""
    levels = distinct_levels(n_features, [(0, level) for level in range(depth)])
    return et.MetaTree.complete(np.concatenate(levels), n_features=n_features)


def binary_data(n_rows: int, n_features: int, seed: int = 0) -> tuple[Array, Array]:
    """Random two-valued codes, and a target that depends on three of them."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n_rows, n_features), dtype=np.uint8)
    rate = 0.2 + 0.5 * (X[:, 0] ^ X[:, 1]) + 0.2 * X[:, 2]
    return X, (rng.random(n_rows) < rate).astype(np.int64)


def fresh(tree: et.MetaTree) -> et.Posterior:
    """Make everytree's posterior before any row."""
    return et.Posterior(tree, et.Bernoulli(**HYPER), split_prior=0.5)


def fresh_reference(tree: et.MetaTree) -> Callable[[Array, Array], Any]:
    """Make BayesML's model before any row, and return its update."""
    return partial(reference.update, reference.bayesml_metatree(tree, "bernoulli", HYPER, 0.5))


def at_once(X: Array, y: Array) -> Batches:
    """All rows in one batch."""
    return [(X, y)]


def row_by_row(X: Array, y: Array) -> Batches:
    """The rows one at a time."""
    return [(X[i : i + 1], y[i : i + 1]) for i in range(len(y))]


def feed(update: Update, batches: Batches) -> None:
    """Feed the batches in order."""
    for X, y in batches:
        update(X, y)


def competitors(tree: et.MetaTree, batches: Batches) -> dict[str, Setup]:
    """Feed each library the same batches, from a fresh state."""
    return {
        "everytree": started(lambda: fresh(tree).update, lambda update: feed(update, batches)),
        "bayesml": started(lambda: fresh_reference(tree), lambda update: feed(update, batches)),
    }


def check_batch(tree: et.MetaTree, X: Array, y: Array) -> None:
    """Compare everytree's batch with BayesML's."""
    post, model = fresh(tree).update(X, y), fresh_reference(tree)(X, y)
    agree(post.split_prob, reference.split_prob(model, tree), f"split probabilities of {len(y)} rows")
    agree(post.log_evidence / reference.log_evidence(model), 1.0, f"log evidence of {len(y)} rows")


def check_row_by_row(tree: et.MetaTree, X: Array, y: Array) -> None:
    """Compare everytree's rows one at a time with its batch."""
    post = fresh(tree)
    feed(post.update, row_by_row(X, y))
    agree(post.split_prob, fresh(tree).update(X, y).split_prob, f"{len(y)} rows one at a time")


# --- the tables


def paper_table(effort: Effort) -> str:
    """The paper's Table 1, in batch and row by row."""
    tree, rows = complete_tree(5, 5), []
    for mode, cut, check in (("batch", at_once, check_batch), ("row by row", row_by_row, check_row_by_row)):
        for n in (50, 100, 200):
            X, y = binary_data(n, 5)
            check(tree, X, y)
            # Row by row BayesML drives split probabilities to 1 and then takes the log of 1 - 1.
            with np.errstate(divide="ignore"):
                ms = in_blocks(competitors(tree, cut(X, y)), effort.paper_repeats)
            spreads = [f"{number(each.mean())} ± {number(each.std(ddof=1), 2)}" for each in ms.values()]
            rows.append([f"{mode}, n = {n}", times(ms["bayesml"].mean(), ms["everytree"].mean()), *spreads])
    return section(
        "The paper's Table 1",
        f"M = 2, K = 5, depth 5, Bernoulli(0.5, 0.5), split prior 0.5; mean ± sd of {effort.paper_repeats} "
        "repetitions. Batch answers of the two libraries agree to 1e-10. Row by row BayesML counts earlier "
        "rows again, so its answer is not the posterior; there everytree is compared with its own batch.",
        table(["update", "bayesml / everytree", "everytree, ms", "bayesml, ms"], rows),
    )


def large_batches(effort: Effort) -> str:
    """Batches of many rows beside the reference library."""
    tree, rows = complete_tree(20, 10), []
    for n in effort.rows(10_000, 100_000, 1_000_000):
        X, y = binary_data(n, 20)
        check_batch(tree, X, y)
        wide = competitors(tree, at_once(X.astype(np.int64), y))
        setups = competitors(tree, at_once(X, y)) | {f"{name} int64": setup for name, setup in wide.items()}
        ms = medians(setups, effort.repeats)
        pairs = [("bayesml int64", "everytree"), ("bayesml int64", "everytree int64"), ("bayesml", "everytree")]
        rows.append([f"{n:,}", *(times(ms[slow], ms[fast]) for slow, fast in pairs), *map(number, ms.values())])
    names = ["everytree, ms", "bayesml, ms", "everytree int64, ms", "bayesml int64, ms"]
    return section(
        "Large batches",
        f"K = 20 binary features, complete tree of depth 10, median of {effort.repeats}. Codes are uint8 or, where it "
        "says so, int64, NumPy's own type; both libraries are faster on uint8. The first ratio has each library at "
        "home: everytree on uint8, BayesML on int64.",
        table(["rows", "bayesml int64 / everytree", "both int64", "both uint8", *names], rows),
    )


def growth(swept: str, unit: str, points: Iterable[tuple[int, int, float]]) -> str:
    """Tabulate the cost of a row over (value swept, depth, cost), the first point being the measure."""
    rows: list[list[str]] = []
    first = 0.0
    for value, depth, cost in points:
        first = first or cost
        rows.append([f"{value:,}", times(cost, first), number(cost), number(cost / depth)])
    return table([swept, "to the first", f"{unit} per row", f"{unit} per row and level"], rows)


def batch_growth(effort: Effort) -> str:
    """Time of a batch against rows, depth and number of features."""
    fixed = effort.rows(100_000)[0]
    sizes = effort.rows(1_000, 10_000, 100_000, 1_000_000, 10_000_000)
    depths = effort.depths(*range(2, 17, 2))

    def cost(n: int, n_features: int, depth: int) -> float:
        setups = competitors(complete_tree(n_features, depth), at_once(*binary_data(n, n_features)))
        return 1e6 / n * medians({"everytree": setups["everytree"]}, effort.repeats)["everytree"]

    return section(
        "Growth of a batch",
        f"everytree alone, median of {effort.repeats}.",
        growth("rows (K = 20, depth 10)", "ns", ((n, 10, cost(n, 20, 10)) for n in sizes)),
        growth(f"depth ({fixed:,} rows, K = 32)", "ns", ((d, d, cost(fixed, 32, d)) for d in depths)),
        growth(
            f"features ({fixed:,} rows, depth 5)",
            "ns",
            ((k, 5, cost(fixed, k, 5)) for k in (5, 10, 20, 50, 100, 200, 500)),
        ),
    )


def row_growth(effort: Effort) -> str:
    """Time of one more row against the rows already seen, and against the number of nodes."""
    batches = row_by_row(*binary_data(1_000, 40, seed=1))
    seen = [0, *effort.rows(100, 10_000, 1_000_000)]
    depths = effort.depths(5, 10, 15, 20)

    def cost(n_seen: int, depth: int) -> float:
        base = fresh(complete_tree(40, depth)).update(*binary_data(n_seen, 40))
        setup = started(base.copy, lambda post: feed(post.update, batches))
        return 1e3 / len(batches) * medians({"everytree": setup}, effort.repeats)["everytree"]

    return section(
        "Growth of one row at a time",
        f"everytree alone, K = 40; {len(batches):,} calls of `update`, one row each, median of {effort.repeats}.",
        growth("rows seen (depth 10)", "us", ((n, 10, cost(n, 10)) for n in seen)),
        growth("nodes (no row seen)", "us", ((2 ** (d + 1) - 1, d, cost(0, d)) for d in depths)),
    )


def memory(effort: Effort) -> str:
    """Peak memory of one update beyond its arguments, each library in a process of its own."""
    n, rows = effort.rows(1_000_000)[0], []
    for library in ("everytree", "bayesml"):
        probe = json.loads(fresh_interpreter(f"import foundation; foundation.memory_probe({library!r}, {n})"))
        shares = [times(probe[peak], probe["codes"]) for peak in ("resident", "traced")]
        rows.append([library, *shares, *(number(size / 2**20) for size in probe.values())])
    columns = ["resident / codes", "traced / codes", "resident, MiB", "traced, MiB", "codes, MiB"]
    return section(
        "Peak extra memory of an update",
        f"{n:,} rows, K = 20, depth 10. Resident: growth of the process's high-water mark (VmHWM). Traced: "
        "tracemalloc, which sees the blocks of Python and NumPy only.",
        table(["library", *columns], rows),
    )


def memory_probe(library: str, n_rows: int) -> None:
    """Print as JSON the bytes that one update takes at its peak."""
    tree, (X, y) = complete_tree(20, 10), binary_data(n_rows, 20)
    competitors(tree, at_once(X[:100], y[:100]))[library]()()
    resident_run, traced_run = (competitors(tree, at_once(X, y))[library]() for _ in range(2))
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the mark falls to what is resident now
    before = high_water_mark()
    resident_run()
    resident = high_water_mark() - before
    tracemalloc.start()
    traced_run()
    traced = tracemalloc.get_traced_memory()[1]
    print(json.dumps({"resident": resident, "traced": traced, "codes": X.nbytes}))


def high_water_mark() -> int:
    """Largest resident size of this process since the mark was last reset, in bytes (Linux)."""
    status = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))


def many_trees(effort: Effort) -> str:
    """32 meta-trees updated together against one after another."""
    columns = ["separately / together", "together, ms", "separately, ms", "nodes touched", "evaluated"]
    kinds = {
        "6 levels": related_trees(32, 10, 6),
        "0 levels": related_trees(32, 10, 0),
        "all terminals": reordered_trees(32, 10),
    }
    rows = [
        [f"{name}, n = {n:,}", *together_or_separately(trees, n, effort.repeats)]
        for name, trees in kinds.items()
        for n in effort.rows(1_000, 100_000)
    ]
    return section(
        "Many meta-trees at once",
        "32 complete meta-trees of depth 10 over 52 binary features, alike in so many of their top levels, below which "
        "no two have a node in common; and 32 that ask the same ten questions in other orders, so that their terminals "
        f"are the same sets of conditions. Median of {effort.repeats}.",
        table(["shared", *columns], rows),
    )


def related_trees(n_trees: int, depth: int, shared_levels: int) -> list[et.MetaTree]:
    """Trees whose top levels ask the same, and below which no two nodes stand for the same conditions.

    The first level that is not shared asks, in each tree, a feature that no other tree ever asks.
    """
    trees = []
    for own in range(n_trees):
        seeds = [(0 if level < shared_levels else own + 1, level) for level in range(depth)]
        levels = [n_trees + each for each in distinct_levels(20, seeds)]
        levels[shared_levels][:] = own
        trees.append(et.MetaTree.complete(np.concatenate(levels), n_features=n_trees + 20))
    return trees


def reordered_trees(n_trees: int, depth: int) -> list[et.MetaTree]:
    """Trees in which every path asks the same questions, each tree in an order of its own."""
    orders = [np.random.default_rng(own).permutation(depth) for own in range(n_trees)]
    features = [np.concatenate([np.full(2**d, order[d]) for d in range(depth)]) for order in orders]
    return [et.MetaTree.complete(each, n_features=n_trees + 20) for each in features]


def together_or_separately(trees: Sequence[et.MetaTree], n_rows: int, repeats: int) -> list[str]:
    """Update the trees both ways, compare the answers, then the times; the cells of one row."""
    X, y = binary_data(n_rows, trees[0].n_features)

    def posteriors() -> list[et.Posterior]:
        return [fresh(tree) for tree in trees]

    together = posteriors()
    counts = et.update_all(together, X, y)
    for ours, theirs in zip(together, posteriors(), strict=True):
        agree(ours.split_prob, theirs.update(X, y).split_prob, f"update_all of {n_rows} rows")
    ms = medians(
        {
            "together": started(posteriors, lambda posts: et.update_all(posts, X, y)),
            "separately": started(posteriors, lambda posts: [post.update(X, y) for post in posts]),
        },
        repeats,
    )
    nodes = [f"{count:,}" for count in (counts.nodes_touched, counts.nodes_evaluated)]
    return [times(ms["separately"], ms["together"]), *map(number, ms.values()), *nodes]


def import_time(_: Effort) -> str:
    """Import of everytree against scikit-learn's, in fresh interpreters."""
    code = "from time import perf_counter as now; start = now(); import {}; print(1e3 * (now() - start))"
    runs = [[float(fresh_interpreter(code.format(each))) for each in ("everytree", "sklearn")] for _ in range(8)]
    ours, theirs = np.median(runs[1:], axis=0)  # the first finds the files cold
    return section(
        "Import time",
        "Fresh interpreters in turn, files warm, median of 7.",
        table(
            ["", "sklearn / everytree", "everytree, ms", "sklearn, ms"],
            [["`import`", times(theirs, ours), number(ours), number(theirs)]],
        ),
    )


def threads(effort: Effort) -> str:
    """One thread against two."""
    tree = complete_tree(20, 10)

    def cells(n: int) -> list[str]:
        X, y = binary_data(n, 20)
        one, two = (fresh(tree).update(X, y, n_jobs=n_jobs) for n_jobs in (1, 2))
        agree(one.split_prob, two.split_prob, f"{n} rows, n_jobs 1 and 2")
        setups = {
            "one": started(lambda: fresh(tree), lambda post: post.update(X, y, n_jobs=1)),
            "two": started(lambda: fresh(tree), lambda post: post.update(X, y, n_jobs=2)),
        }
        ms = medians(setups, effort.repeats)
        return [f"{n:,}", times(ms["one"], ms["two"]), *map(number, ms.values())]

    return section(
        "Threads",
        f"K = 20, depth 10, median of {effort.repeats}; the answers are the same.",
        table(
            ["rows", "n_jobs=1 / n_jobs=2", "n_jobs=1, ms", "n_jobs=2, ms"],
            [cells(n) for n in effort.rows(1_000_000, 10_000_000)],
        ),
    )


TABLES: dict[str, Callable[[Effort], str]] = {
    each.__name__: each
    for each in (
        paper_table,
        large_batches,
        batch_growth,
        row_growth,
        memory,
        many_trees,
        import_time,
        threads,
    )
}


def main() -> None:
    """Print the chosen tables as they come, and keep them if asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small problems and few repetitions")
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=TABLES, help="default: all")
    parser.add_argument("--out", type=Path, help="results file whose section 'foundation' is replaced")
    options = parser.parse_args()
    if options.out and len(options.tables) < len(TABLES):
        parser.error("--out keeps whole runs only: leave out --tables")
    parts = ["## Foundation" + (" (quick run, not for quoting)" if options.quick else "")]
    for name in options.tables:
        parts.append(TABLES[name](QUICK if options.quick else FULL))
        print(parts[-1], end="\n\n", flush=True)
    if options.out:
        markdown.write_section(options.out, "foundation", "\n\n".join(parts))


if __name__ == "__main__":
    main()
