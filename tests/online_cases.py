"""Random streams for the online forests, and their trees as the slow twin has them."""

from __future__ import annotations

from typing import Any

import numpy as np

import everytree as et
import naive_families
import naive_online

PRIOR = (0.5, 0.25, 2.0, 1.5)
KINDS = ["classes", "numbers"]


def make(kind: str, **parameters: Any) -> Any:
    if kind == "classes":
        return et.OnlineForestClassifier(**{"n_models": 2, "concentration": 0.6, **parameters})
    return et.OnlineForestRegressor(**{"n_models": 2, "prior": PRIOR, **parameters})


def random_rows(rng: np.random.Generator, n: int) -> list[dict[Any, Any]]:
    """Numbers with ties, texts, booleans, features that come late, values that are missing in one way or another."""
    rows = []
    for i in range(n):
        row: dict[Any, Any] = {
            "size": float(rng.normal()), "count": int(rng.integers(5)), 7: bool(rng.integers(2)),
            "colour": str(rng.choice(["red", "green", "blue", "ö"])), "late": float(rng.exponential()),
        }  # fmt: skip
        for name in list(row):
            chance = rng.random()
            if chance < 0.2 or (name == "late" and i < n // 3):
                del row[name]
            elif chance < 0.25:
                row[name] = None if rng.random() < 0.5 else float("nan")
        rows.append(row)
    return rows


def random_targets(kind: str, rng: np.random.Generator, n: int) -> list[Any]:
    if kind == "classes":
        return rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1]).tolist()
    return rng.normal(1.0, 2.0, n).tolist()


def learn(model: Any, rows: list[Any], targets: list[Any]) -> Any:
    for x, y in zip(rows, targets, strict=True):
        model.learn_one(x, y)
    return model


def twins(model: Any, kind: str) -> list[tuple[naive_online.Model, naive_online.Cell]]:
    """Each tree as the slow twin has it."""
    if kind == "classes":
        n_classes = max(2, len(model.classes))
        family: Any = naive_families.Categorical(n_classes, [model.concentration / n_classes] * n_classes)
    else:
        family = naive_families.Normal(*PRIOR)
    return [
        (naive_online.Model(family, model.split_prior, model.seed, tree), naive_online.recorded(model, tree))
        for tree in range(model.n_models)
    ]


def as_numbers(model: Any, kind: str, targets: list[Any]) -> list[float]:
    return [float(model.classes.index(y)) for y in targets] if kind == "classes" else targets


def state(model: Any) -> list[Any]:
    """All that a model knows, to the last bit."""
    trees = model.trees.__getstate__()
    arrays = [*trees["arrays"].values(), trees["ranges"], trees["roots"], trees["counts"], trees["features"].kinds]
    arrays += trees.get("class_weights", ())
    return [*(array.tobytes() for array in arrays), trees["features"].index, getattr(model, "classes", None)]


def class_weights(model: Any) -> np.ndarray:
    """(n_nodes, n_classes) weight of the rows of each class in each node, whichever way the model has them."""
    trees = model.trees.__getstate__()
    if "class_weights" not in trees:
        return trees["arrays"]["statistics"]
    start, number, weight = trees["class_weights"]
    full = np.zeros((len(start) - 1, len(model.classes)))
    full[np.repeat(np.arange(len(start) - 1), np.diff(start)), number] = weight
    return full
