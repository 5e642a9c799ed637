"""The tables on which accuracy is measured: those of scikit-learn, those of a folder, and three made up."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
from sklearn import datasets

Kind = Literal["classes", "numbers"]


@dataclass(frozen=True)
class Table:
    """Inputs with their real dtypes, and a target: class numbers 0, 1, ... or real numbers."""

    name: str
    kind: Kind
    X: pd.DataFrame
    y: np.ndarray


def tables(folder: Path, wanted: Collection[str] = ()) -> Iterator[Table]:
    """Yield the wanted tables (all, if none is named) in the order they are reported; say which are not there."""
    unknown = set(wanted) - {name for name, _, _ in SOURCES}
    if unknown:
        raise SystemExit(
            f"--tables: {', '.join(sorted(unknown))} unknown; there are {', '.join(n for n, *_ in SOURCES)}"
        )
    for name, kind, load in SOURCES:
        if wanted and name not in wanted:
            continue
        loaded = load(folder)
        if loaded is None:
            print(f"{name}: not in {folder}, skipped", file=sys.stderr)
            continue
        X, y = loaded
        yield Table(name, kind, X, _class_numbers(y) if kind == "classes" else y.to_numpy(dtype=float))


Loaded = tuple[pd.DataFrame, pd.Series]


def _bundled(load: Callable[..., object], _: Path) -> Loaded:
    """Load a table that comes with scikit-learn."""
    bunch = load(as_frame=True)
    return _named(bunch.data), bunch.target


def _file(name: str, folder: Path) -> Loaded | None:
    """Load a CSV file without header whose last column is the target, or nothing where there is no such file."""
    path = next((path for path in (folder / f"{name}.csv", folder / f"{name}.csv.gz") if path.exists()), None)
    if path is None:
        return None
    frame = pd.read_csv(path, header=None, sep=_separator(path), na_values=["?"], skipinitialspace=True)
    return _named(frame.iloc[:, :-1].apply(_typed)), frame.iloc[:, -1]


def _separator(path: Path) -> str:
    """Tell which of the two usual separators the file has."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        return ";" if ";" in lines.readline() else ","


def _typed(column: pd.Series) -> pd.Series:
    """Leave numbers as they are; make text, also quoted numbers, a category."""
    if pd.api.types.is_numeric_dtype(column):
        return column
    return column.str.strip("'\"").astype("category")


def _named(frame: pd.DataFrame) -> pd.DataFrame:
    """Give the columns plain names that every library accepts."""
    return frame.set_axis([f"x{i}" for i in range(frame.shape[1])], axis=1)


def _class_numbers(labels: pd.Series) -> np.ndarray:
    """Number the classes in the order of their labels."""
    return pd.factorize(labels, sort=True)[0].astype(np.int64)


def _friedman(make: Callable[..., tuple[np.ndarray, np.ndarray]], noise: float, _: Path) -> Loaded:
    """Draw 2,000 rows from a generator of scikit-learn."""
    X, y = make(n_samples=2000, noise=noise, random_state=0)
    return _named(pd.DataFrame(X)), pd.Series(y)


def _heteroscedastic(_: Path) -> Loaded:
    """Draw 2,000 rows whose noise grows tenfold along one input; two inputs are idle, one is a category."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(2000, 5))
    kind = rng.choice(["low", "middle", "high"], size=2000)
    shift = np.select([kind == "low", kind == "high"], [-1.0, 1.0], 0.0)
    mean = np.sin(2 * np.pi * X[:, 0]) + 2 * X[:, 1] ** 2 + shift
    y = mean + (0.1 + 0.9 * X[:, 2]) * rng.standard_normal(2000)
    return _named(pd.DataFrame(X).assign(kind=pd.Categorical(kind))), pd.Series(y)


SOURCES: tuple[tuple[str, Kind, Callable[[Path], Loaded | None]], ...] = (
    ("breast_cancer", "classes", partial(_bundled, datasets.load_breast_cancer)),
    ("iris", "classes", partial(_bundled, datasets.load_iris)),
    ("wine", "classes", partial(_bundled, datasets.load_wine)),
    ("digits", "classes", partial(_bundled, datasets.load_digits)),
    *(
        (name, "classes", partial(_file, name))
        for name in ("german", "pima-indians-diabetes", "haberman", "breast-cancer", "phoneme", "spambase")
    ),
    ("diabetes", "numbers", partial(_bundled, datasets.load_diabetes)),
    ("abalone", "numbers", partial(_file, "abalone")),
    ("winequality-red", "numbers", partial(_file, "winequality-red")),
    ("friedman1", "numbers", partial(_friedman, datasets.make_friedman1, 1.0)),
    ("friedman3", "numbers", partial(_friedman, datasets.make_friedman3, 0.1)),
    ("heteroscedastic", "numbers", _heteroscedastic),
)
