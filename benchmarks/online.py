"""Rows that never stop: online forests beside river's, row by row; what decay leaves between refreshes; memory.

`python benchmarks/online.py --quick` is a smoke run; `--out benchmarks/RESULTS.md` keeps the answers. Every row is
first predicted and then learned. The models take turns, some hundred rows each, so that they share whatever else the
machine does meanwhile and yet find their caches warm; times are those that the process was running.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import pickle
import resource
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import thread_time
from typing import Any

import numpy as np
from river import datasets, forest, metrics, preprocessing, tree

import everytree as et
import markdown
from markdown import number, section, table, times

Stream = Iterable[tuple[dict[str, Any], Any]]
N_TREES = 10
ROWS_A_TURN = 250


@dataclass
class Entrant:
    """A model, what it scored and what it cost."""

    model: Any
    scores: list[Any]
    seconds: float = 0.0

    def meet(self, x: dict[str, Any], y: Any, classes: bool) -> None:
        """Predict, then learn."""
        start = thread_time()
        said = self.model.predict_proba_one(x) if classes else self.model.predict_one(x)
        self.model.learn_one(x, y)
        self.seconds += thread_time() - start
        if said is None or said == {}:
            return
        self.scores[0].update(y, max(said, key=said.get) if classes else said)
        if classes:
            self.scores[1].update(y, said)


def classifiers(seed: int) -> dict[str, Any]:
    """Models of classes; AMF wants its features between 0 and 1."""
    return {
        "everytree": et.OnlineForestClassifier(N_TREES, seed=seed),
        "AMF": preprocessing.MinMaxScaler() | forest.AMFClassifier(N_TREES, seed=seed),
        "ARF": forest.ARFClassifier(N_TREES, seed=seed),
        "Hoeffding tree": tree.HoeffdingTreeClassifier(),
    }


def regressors(seed: int) -> dict[str, Any]:
    """Models of numbers."""
    return {
        "everytree": et.OnlineForestRegressor(N_TREES, seed=seed),
        "AMF": preprocessing.MinMaxScaler() | forest.AMFRegressor(N_TREES, seed=seed),
        "ARF": forest.ARFRegressor(N_TREES, seed=seed),
        "Hoeffding tree": tree.HoeffdingTreeRegressor(),
    }


def dated(stream: Stream) -> Iterator[tuple[dict[str, Any], Any]]:
    """Dates as days: river's trees take numbers only."""
    for x, y in stream:
        yield {k: v.timestamp() / 86400 if isinstance(v, datetime.datetime) else v for k, v in x.items()}, y


def race(stream: Stream, models: dict[str, Any], classes: bool) -> dict[str, Entrant]:
    """All models over one stream."""
    kinds = [metrics.Accuracy, metrics.CrossEntropy] if classes else [metrics.MAE]
    entrants = {name: Entrant(model, [kind() for kind in kinds]) for name, model in models.items()}
    rows = list(stream)
    for start in range(0, len(rows), ROWS_A_TURN):
        for entrant in entrants.values():
            for x, y in rows[start : start + ROWS_A_TURN]:
                entrant.meet(x, y, classes)
    return entrants


def streams(quick: bool) -> list[tuple[str, Callable[[], Stream], bool]]:
    """The streams that come with river."""
    names = ["Phishing", "Bananas", "ImageSegments"], ["TrumpApproval", "ChickWeights", "WaterFlow"]
    return [
        (name, lambda name=name: itertools.islice(dated(getattr(datasets, name)()), 200 if quick else None), classes)
        for names_of_kind, classes in zip(names, (True, False), strict=True)
        for name in names_of_kind
    ]


def progressive(quick: bool, n_seeds: int) -> str:
    """Accuracy, time and size of each model on each stream, averaged over seeds."""
    tables: dict[bool, list[list[str]]] = {True: [], False: []}
    for name, stream, classes in streams(quick):
        runs = [race(stream(), (classifiers if classes else regressors)(seed), classes) for seed in range(n_seeds)]
        n_rows = sum(1 for _ in stream())
        spent = {who: 1e6 * sum(run[who].seconds for run in runs) / n_seeds / n_rows for who in runs[0]}
        for who in runs[0]:
            scores = np.mean([[score.get() for score in run[who].scores] for run in runs], axis=0)
            size = np.mean([len(pickle.dumps(run[who].model)) for run in runs]) / 2**20
            shown = [f"{scores[0]:.4f}", f"{scores[1]:.4f}"] if classes else [number(scores[0])]
            ratio = times(spent[who], spent["everytree"])
            tables[classes].append([f"{name}, {who}", *shown, ratio, number(spent[who]), number(size)])
    costs = ["time / everytree", "us a row", "pickle, MB"]
    return section(
        "Progressive validation",
        f"Each row predicted, then learned; {N_TREES} trees, defaults otherwise, mean of {n_seeds} seeds. "
        "River's forests and trees are written in Python and Rust.",
        table(["stream, model", "accuracy", "log-loss", *costs], tables[True]),
        table(["stream, model", "MAE", *costs], tables[False]),
    )


def moving(n_rows: int, rng: np.random.Generator) -> Iterator[tuple[dict[str, float], bool]]:
    """A boundary that turns once in 20,000 rows, and rows that come from one place after another."""
    for i in range(n_rows):
        angle = 2 * np.pi * i / 20_000
        x = rng.normal(size=2) + 2 * np.array([np.sin(i / 700), np.cos(i / 1100)])
        side = x @ [np.cos(angle), np.sin(angle)] + 0.5 * rng.normal()
        yield {"a": float(x[0]), "b": float(x[1])}, bool(side > 0)


def between_refreshes(n_rows: int) -> str:
    """How far predicted probabilities are from those after `refresh()`."""
    rows = []
    for half_life in (100.0, 1000.0, 10_000.0):
        rng = np.random.default_rng(0)
        model, apart = et.OnlineForestClassifier(N_TREES, half_life=half_life), []
        probes = [{"a": float(a), "b": float(b)} for a, b in 3 * rng.normal(size=(200, 2))]
        for i, (x, y) in enumerate(moving(n_rows, rng), start=1):
            model.learn_one(x, y)
            if i % (n_rows // 20) == 0:
                exact = pickle.loads(pickle.dumps(model))
                exact.refresh()
                said, meant = ([m.predict_proba_one(p)[True] for p in probes] for m in (model, exact))
                apart.append(np.abs(np.subtract(said, meant)))
        each = np.concatenate(apart)
        rows.append(
            [f"{half_life:,.0f} rows", f"{each.max():.1e}", f"{np.quantile(each, 0.99):.1e}", f"{each.mean():.1e}"]
        )
    return section(
        "What decay leaves between refreshes",
        f"Difference of predicted probabilities to those after `refresh()`, at 20 moments of {n_rows:,} drifting rows "
        "for 200 places each, most of them far from the latest rows; 10 trees of at most 20,000 nodes together.",
        table(["half-life", "largest", "99%", "mean"], rows),
    )


def memory(n_rows: int) -> str:
    """A long stream under a bound."""
    model, rng, rows = et.OnlineForestClassifier(N_TREES, half_life=50_000.0), np.random.default_rng(0), []
    marks = {n_rows // 100, n_rows // 10, n_rows // 2, n_rows}
    start = thread_time()
    for i, (x, y) in enumerate(moving(n_rows, rng), start=1):
        model.learn_one(x, y)
        if i in marks:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            each = 1e6 * (thread_time() - start) / i
            rows.append(
                [f"{i:,}", f"{model.n_nodes:,}", number(model.trees.n_bytes / 2**20), number(peak), number(each)]
            )
    return section(
        "Memory of a long stream",
        "10 trees of at most 20,000 nodes together, half-life 50,000 rows; the making of the rows is in the time.",
        table(["rows", "nodes", "arrays, MB", "peak of the process, MB", "us a row"], rows),
    )


def main() -> None:
    """Print the tables as they come, and keep them if asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="short streams and one seed")
    parser.add_argument("--out", type=Path, help="results file whose section 'online' is replaced")
    options = parser.parse_args()
    quick = options.quick
    parts = ["## Online" + (" (quick run, not for quoting)" if quick else "")]
    works = [
        lambda: progressive(quick, 1 if quick else 3),
        lambda: between_refreshes(2000 if quick else 40_000),
        lambda: memory(10_000 if quick else 1_000_000),
    ]
    for work in works:
        parts.append(work())
        print(parts[-1], end="\n\n", flush=True)
    if options.out:
        markdown.write_section(options.out, "online", "\n\n".join(parts))


if __name__ == "__main__":
    main()
