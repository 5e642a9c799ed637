"""Accuracy and calibration beside other libraries, each at its defaults, on tables of real and made-up data.

`python benchmarks/accuracy.py --data DIR` prints the tables, `--out benchmarks/RESULTS.md` keeps them. Five folds,
seed 0, one thread; scores are of the held-out predictions of all folds together. With `--cache FILE.json` a score is
computed once.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from scipy.stats import rankdata
from sklearn.model_selection import KFold, StratifiedKFold
from threadpoolctl import threadpool_limits

import markdown
from markdown import number, section
from peers import Peer, peers
from scores import CLASS_SCORES, NUMBER_SCORES, Score, class_scores, number_rows, number_scores
from tables import Kind, Table, tables

Result = dict[str, float | str | None]
Results = dict[tuple[str, str], Result]  # by model and table
TITLES: dict[Kind, str] = {"classes": "Classification", "numbers": "Regression"}
SCORES: dict[Kind, Sequence[Score]] = {"classes": CLASS_SCORES, "numbers": NUMBER_SCORES}


class Cache:
    """Results kept in a JSON file, by model, table and version of the library."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._kept: dict[str, Result] = json.loads(path.read_text()) if path and path.exists() else {}

    def get(self, peer: Peer, table: Table) -> Result | None:
        """Return what is kept, if anything is."""
        return self._kept.get(self._key(peer, table))

    def put(self, peer: Peer, table: Table, result: Result) -> None:
        """Keep a result, in the file too."""
        self._kept[self._key(peer, table)] = result
        if self._path:
            fresh = self._path.with_suffix(".new")
            fresh.write_text(json.dumps(self._kept, indent=1))
            fresh.replace(self._path)

    @staticmethod
    def _key(peer: Peer, table: Table) -> str:
        return f"{peer.name} | {table.name} | {peer.version()}"


def folds(table: Table) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Split the rows in five; training rows come in random order, as some tables are sorted by their target."""
    split = StratifiedKFold if table.kind == "classes" else KFold
    rng = np.random.default_rng(0)
    for train, test in split(5, shuffle=True, random_state=0).split(table.X, table.y):
        yield rng.permutation(train), test


def evaluate(peer: Peer, table: Table) -> Result:
    """Score the held-out predictions of a model, or say why there are none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _of_classes(peer, table) if table.kind == "classes" else _of_numbers(peer, table)
    except Exception as error:  # whatever a library may raise: its cell stays empty, the run goes on
        return {"failed": f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"}


def _of_classes(peer: Peer, table: Table) -> Result:
    """Score class probabilities."""
    probs = np.full((len(table.y), table.y.max() + 1), np.nan)
    for train, test in folds(table):
        probs[test] = peer.classify(table.X.iloc[train], table.y[train], table.X.iloc[test])
    if not np.isfinite(probs).all():
        raise ValueError(f"{(~np.isfinite(probs)).any(axis=1).sum()} rows with probabilities that are not finite")
    return class_scores(table.y, probs)


def _of_numbers(peer: Peer, table: Table) -> Result:
    """Score forecasts of a number."""
    rows = []
    for train, test in folds(table):
        forecast = peer.regress(table.X.iloc[train], table.y[train], table.X.iloc[test])
        rows.append(number_rows(table.y[test], forecast))
    return number_scores(rows)


def able(peer: Peer, kind: Kind) -> bool:
    """Tell whether a model is for this kind of target."""
    return (peer.classify if kind == "classes" else peer.regress) is not None


def run(models: Sequence[Peer], data: Sequence[Table], cache: Cache, only: Sequence[str]) -> Results:
    """Take results from the cache or compute them; with `only`, compute for the named models and no others."""
    results: Results = {}
    for table in data:
        for peer in models:
            if not able(peer, table.kind):
                continue
            kept = cache.get(peer, table)
            if peer.name in only or (kept is None and not only):
                start = time.perf_counter()
                kept = evaluate(peer, table)
                cache.put(peer, table, kept)
                shown = ", ".join(f"{name} {_cell(value)}" for name, value in kept.items())
                print(f"{table.name}, {peer.name}: {shown} ({time.perf_counter() - start:.0f} s)", file=sys.stderr)
            if kept is not None:
                results[peer.name, table.name] = kept
    return results


def ranks(score: Score, models: Sequence[str], names: Sequence[str], results: Results) -> dict[str, float]:
    """Rank the models on each table among those that have the score, and average over the tables."""
    of: dict[str, list[float]] = {}
    for name in names:
        have = [model for model in models if _value(results, model, name, score) is not None]
        places = rankdata([score.distance(_value(results, model, name, score)) for model in have])
        for model, place in zip(have, places, strict=True):
            of.setdefault(model, []).append(place)
    return {model: float(np.mean(places)) for model, places in of.items()}


def score_table(score: Score, models: Sequence[str], names: Sequence[str], results: Results) -> str:
    """Write a score of all models on all tables, the best of a table in bold, and the mean rank."""
    columns = [_column(score, models, name, results) for name in names]
    if score.distance:
        mean_rank = ranks(score, models, names, results)
        columns.append([f"{mean_rank[model]:.2f}" if model in mean_rank else "" for model in models])
    having = {model for model in models for name in names if _value(results, model, name, score) is not None}
    rows = [row for row in zip(models, *columns, strict=True) if row[0] in having]
    head = ["model", *names, *(["mean rank"] if score.distance else [])]
    return section(score.name, score.remark, markdown.table(head, rows))


def _column(score: Score, models: Sequence[str], name: str, results: Results) -> list[str]:
    """Write one table's column of a score."""
    values = [_value(results, model, name, score) for model in models]
    away = [score.distance(value) for value in values if value is not None] if score.distance else []
    best = [bool(away) and value is not None and score.distance(value) == min(away) for value in values]
    failed = ["failed" in results.get((model, name), {}) for model in models]
    cells = ["failed" if bad else _cell(value) for bad, value in zip(failed, values, strict=True)]
    return [f"**{cell}**" if is_best else cell for cell, is_best in zip(cells, best, strict=True)]


def _value(results: Results, model: str, name: str, score: Score) -> float | None:
    """Look a score up; none where the model does not have it."""
    return results.get((model, name), {}).get(score.name)


def _cell(value: float | str | None) -> str:
    """Write a value, or nothing."""
    if value is None or isinstance(value, str):
        return value or ""
    return number(value) if np.isfinite(value) else str(value)


def summary(scores: Sequence[Score], models: Sequence[str], names: Sequence[str], results: Results) -> str:
    """Write the mean ranks of all scores side by side."""
    ranked = [score for score in scores if score.distance]
    columns = [ranks(score, models, names, results) for score in ranked]
    rows = [[model, *(f"{of[model]:.2f}" if model in of else "" for of in columns)] for model in models]
    head = ["model", *(score.name for score in ranked)]
    remark = f"Mean over the tables ({len(names)}) of the rank among the models that have the score; 1 is best."
    return section("Mean rank", remark, markdown.table(head, [row for row in rows if any(row[1:])]))


def report(models: Sequence[Peer], data: Sequence[Table], results: Results, absent: Sequence[str]) -> str:
    """Put together everything that is known about the results."""
    parts = ["## Accuracy", _remark(models)]
    for kind, title in TITLES.items():
        names = [table.name for table in data if table.kind == kind]
        if not names:
            continue
        rows = [peer.name for peer in models if able(peer, kind)]
        parts.append(f"## Accuracy: {title.lower()}")
        parts.append("Tables: " + ", ".join(_shape(table) for table in data if table.kind == kind) + ".")
        parts.append(summary(SCORES[kind], rows, names, results))
        parts.extend(score_table(score, rows, names, results) for score in SCORES[kind])
    failures = [f"{model} on {name}: {each['failed']}" for (model, name), each in results.items() if "failed" in each]
    notes = [f"* {line}" for line in (*(f"Left out: {line}" for line in absent), *failures)]
    return "\n\n".join([*parts, *(["\n".join(notes)] if notes else [])])


def _remark(models: Sequence[Peer]) -> str:
    """Say what was compared and how."""
    versions = ", ".join(f"{peer.name} ({peer.module} {peer.version()})" for peer in models)
    return (
        "Every model at its defaults, seed 0, five folds with shuffled rows; each score is of the held-out predictions "
        "of all folds together. Models that take categories and missing values get them as they are, the others get "
        "zeros and ones for categories (missing is one of them) and medians for missing numbers. Defaults matter: "
        "BayesML's trees are two splits deep and its prior of a number is of unit scale around 0, HSTree is one tree "
        f"of 20 leaves, WildWood has 10 trees, the others 100 to 1,000. {versions}."
    )


def _shape(table: Table) -> str:
    """Say how large a table is, and how many of its rows repeat another: those are in training and test folds alike."""
    repeated = table.X.assign(target=table.y).duplicated().sum()
    return f"{table.name} ({table.X.shape[0]:,} x {table.X.shape[1]}" + (f", {repeated} repeated)" if repeated else ")")


def main() -> None:
    """Compute what is missing, then print or keep the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of CSV files without header, target last")
    parser.add_argument("--out", type=Path, help="results file whose section 'accuracy' is replaced")
    parser.add_argument("--cache", type=Path, help="JSON file of scores, so that only missing ones are computed")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="models to compute anew, and no others")
    parser.add_argument("--tables", nargs="+", default=[], metavar="NAME", help="tables to use")
    options = parser.parse_args()
    models, absent = _present(options.only)
    data = list(tables(options.data, options.tables))
    with threadpool_limits(1):
        results = run(models, data, Cache(options.cache), options.only)
    text = report(models, data, results, absent)
    if options.out:
        markdown.write_section(options.out, "accuracy", text)
    else:
        print(text)


def _present(only: Sequence[str]) -> tuple[list[Peer], list[str]]:
    """Part the models that can be used from those that cannot, and say why not."""
    everyone = peers()
    unknown = set(only) - {peer.name for peer in everyone}
    if unknown:
        raise SystemExit(
            f"--only: {', '.join(sorted(unknown))} unknown; there are {', '.join(p.name for p in everyone)}"
        )
    problems = {peer.name: peer.problem() for peer in everyone}
    absent = [f"{name}: {problem}" for name, problem in problems.items() if problem]
    for line in absent:
        print(f"left out: {line}", file=sys.stderr)
    return [peer for peer in everyone if problems[peer.name] is None], absent


if __name__ == "__main__":
    main()
