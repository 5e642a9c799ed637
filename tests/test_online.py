"""Online forests: the posterior over the prunings of the present trees, given all rows with their weights."""

from __future__ import annotations

import copy
import itertools
import os
import pickle
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import everytree as et
import naive_families
import naive_online
from cases import examples, rng_for
from everytree.online.rows import as_dicts

seeds = st.integers(0, 2**32 - 1)
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
    trees = model._trees.__getstate__()
    arrays = [*trees["arrays"].values(), trees["ranges"], trees["roots"], trees["counts"], trees["features"].kinds]
    return [*(array.tobytes() for array in arrays), trees["features"].index, getattr(model, "classes", None)]


# ---- exactness -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("max_nodes", [None, 20])
@pytest.mark.parametrize("half_life", [None, 7.0])
@given(seed=seeds, n=st.integers(1, 30))
@examples(6)
def test_it_is_theorem_1_on_the_present_trees(kind, max_nodes, half_life, seed, n):
    """Whatever was grown, forgotten and decayed: evidence and predictions are those of all rows at once."""
    rng = np.random.default_rng(seed)
    rows, targets = random_rows(rng, n), random_targets(kind, rng, n)
    model = make(kind, max_nodes=max_nodes, half_life=half_life, seed=seed % 1000)
    learn(model, rows, targets).refresh()
    ys = as_numbers(model, kind, targets)
    weights = [1.0 if half_life is None else 2.0 ** (-(n - 1 - i) / half_life) for i in range(n)]
    trees = twins(model, kind)
    expected = [twin.log_evidence(cell, rows, ys, weights) for twin, cell in trees]
    np.testing.assert_allclose(model.log_evidence, expected, rtol=1e-10, atol=1e-10)

    x, y = random_rows(rng, 3)[-1], float(rng.integers(len(set(targets)))) if kind == "classes" else 0.7
    expected = np.mean([twin.predictive(cell, rows, ys, weights, x, y) for twin, cell in trees])
    assert np.exp(model.predictive_one(x).log_prob([y])[0]) == pytest.approx(expected, rel=1e-9)
    if kind == "classes":
        given = model.predict_proba_one(x)
        assert given[model.classes[int(y)]] == pytest.approx(expected if len(given) > 1 else 1.0, rel=1e-9)
        assert sum(given.values()) == pytest.approx(1.0, rel=1e-12)
    else:
        assert model.predict_one(x) == pytest.approx(model.predictive_one(x).mean()[0], rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@given(seed=seeds)
@examples(8)
def test_growing_changes_nothing_about_the_rows_before(kind, seed):
    """The prior of the splits is such that a tree may be grown at any time: no row's evidence depends on later ones."""
    rng = np.random.default_rng(seed)
    rows, targets = random_rows(rng, 25), random_targets(kind, rng, 25)
    targets[:3] = ["a", "b", "c"] if kind == "classes" else targets[:3]
    model = make(kind, n_models=1, max_nodes=None, seed=seed % 1000)
    before = []
    for x, y in zip(rows, targets, strict=True):
        model.learn_one(x, y)
        before.append(model.log_evidence[0])
    ((twin, cell),) = twins(model, kind)
    ys = as_numbers(model, kind, targets)
    for n in range(3, 25):
        assert twin.log_evidence(cell, rows[:n], ys[:n]) == pytest.approx(before[n - 1], rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_one_step_ahead_log_probs_add_up_to_the_log_evidence(kind):
    """Of rows that come a second time, so that nothing grows meanwhile."""
    rng = rng_for("chain rule", kind)
    rows, targets = random_rows(rng, 150), random_targets(kind, rng, 150)
    model = learn(make(kind, n_models=1, max_nodes=None), rows, targets)
    start, total = model.log_evidence[0], 0.0
    for x, y in zip(rows, as_numbers(model, kind, targets), strict=True):
        total += model.predictive_one(x).log_prob([y])[0]
        model.learn_one(x, model.classes[int(y)] if kind == "classes" else y)
    assert total == pytest.approx(model.log_evidence[0] - start, rel=1e-10)


# ---- decay ---------------------------------------------------------------------------------------------------


def recomputed(model: Any, rows: np.ndarray, ys: np.ndarray, tree: int) -> tuple[np.ndarray, np.ndarray]:
    """Statistics and log evidence of every node of a tree, from all rows with their weights."""
    nodes, family = model._trees.arrays["nodes"], model._trees.family
    age = np.arange(len(rows))[::-1]
    each = family.statistics(ys, 2.0 ** (-age / model.half_life))
    statistics = np.zeros((len(nodes), family.n_statistics))
    subtree = np.zeros(len(nodes))

    def visit(s: int, mine: np.ndarray, above: float) -> None:
        node = nodes[s]
        statistics[s] = each[mine].sum(axis=0)
        leaf = family.log_evidence(statistics[s : s + 1])[0]
        subtree[s] = leaf
        if node["left"] < 0:
            return
        right = rows[mine, node["feature"]] > node["threshold"]
        visit(node["left"], mine[~right], node["time"])
        visit(node["right"], mine[right], node["time"])
        log_split = np.log(model.split_prior) * np.log2((1 + node["time"]) / (1 + above))
        below = subtree[node["left"]] + subtree[node["right"]]
        subtree[s] = np.logaddexp(np.log(-np.expm1(log_split)) + leaf, log_split + below)

    visit(int(model._trees.roots[tree, 0]), np.arange(len(rows)), 0.0)
    return statistics, subtree


def check_decay(kind: str, n: int, half_life: float, max_nodes: int) -> None:
    rng = rng_for("decay", kind, n)
    X = rng.normal(size=(n, 3))
    names = ["a", "b", "c"]
    ys = (X[:, 0] + rng.normal(size=n) > 0).astype(float) if kind == "classes" else X[:, 0] + rng.normal(size=n)
    ys[:2] = 0.0, 1.0
    model = make(kind, n_models=2, half_life=half_life, max_nodes=max_nodes)
    for start in range(0, n, 1000):
        rows = [dict(zip(names, x, strict=True)) for x in X[start : start + 1000].tolist()]
        model.learn_many(rows, ys[start : start + 1000].tolist())
    model.refresh()
    used = [cell.number for tree in range(2) for cell in naive_online.every_cell(naive_online.recorded(model, tree))]
    assert len(used) == model.n_nodes <= max_nodes
    statistics, subtree = map(sum, zip(*(recomputed(model, X, ys, tree) for tree in range(2)), strict=True))
    family, arrays = model._trees.family, model._trees.arrays
    kept = arrays["statistics"][used]
    np.testing.assert_allclose(family.summarise(kept), family.summarise(statistics[used]), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(arrays["nodes"]["subtree"][used], subtree[used], rtol=1e-9, atol=1e-9)
    assert (arrays["nodes"]["stamp"][used] == n).all()


@pytest.mark.parametrize("kind", KINDS)
def test_after_refresh_a_row_weighs_two_to_the_minus_age_over_half_life(kind):
    check_decay(kind, 4000, half_life=300.0, max_nodes=600)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("half_life", [50.0, 20_000.0])
def test_after_refresh_a_row_weighs_that_after_many_rows_too(kind, half_life):
    check_decay(kind, 100_000, half_life, max_nodes=2000)


def test_branches_that_no_row_touches_are_refreshed_within_a_round():
    """At least four nodes of each tree a row: no node is staler than a quarter of the number of its tree's nodes."""
    rng = rng_for("schedule")
    model = et.OnlineForestClassifier(n_models=2, half_life=1000.0, max_nodes=400)
    for i in range(3000):
        x = rng.normal(size=2) if i < 1000 else rng.normal(size=2) * 0.01 + 3.0
        model.learn_one({"a": x[0], "b": x[1]}, bool(rng.integers(2)))
    nodes = model._trees.arrays["nodes"]
    for tree in range(2):
        cells = [cell.number for cell in naive_online.every_cell(naive_online.recorded(model, tree))]
        assert (3000 - nodes["stamp"][cells]).max() <= len(cells) / 4 + 1


def test_a_drifting_target_is_followed():
    rng = rng_for("drift")
    scores = {}
    for half_life in (None, 100.0):
        model, right = et.OnlineForestClassifier(n_models=5, half_life=half_life), 0
        for i in range(3000):
            a = float(rng.random())
            y = (a > 0.5) ^ (i >= 1500)
            right += i >= 2000 and model.predict_one({"a": a}) == y
            model.learn_one({"a": a}, y)
        scores[half_life] = right / 1000
    assert scores[100.0] > 0.95 > scores[None]


# ---- the bound -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("max_nodes", [6, 7, 30, 101])
def test_the_bound_holds_after_every_row(kind, max_nodes):
    rng = rng_for("bound", kind, max_nodes)
    rows, targets = random_rows(rng, 200), random_targets(kind, rng, 200)
    model = make(kind, max_nodes=max_nodes)
    for x, y in zip(rows, targets, strict=True):
        model.learn_one(x, y)
        assert model.n_nodes <= max_nodes
        assert len(model._trees.arrays["nodes"]) <= max_nodes
    reached = sum(len(naive_online.every_cell(naive_online.recorded(model, tree))) for tree in range(2))
    assert reached == model.n_nodes >= max_nodes - 3


def test_what_adds_least_to_the_evidence_is_forgotten_first():
    rng = rng_for("least useful")
    model, forgotten = et.OnlineForestClassifier(n_models=1, max_nodes=61), 0
    for i in range(400):
        x, y = {"a": float(rng.normal()), "b": float(rng.normal())}, int(rng.integers(2))
        nodes = model._trees.arrays["nodes"].copy()
        full = model.n_nodes == 61 and i > 2
        if full:
            inner = np.flatnonzero((nodes["left"] >= 0) & (nodes["tree"] == 0))
            pairs = [s for s in inner if (nodes["left"][[nodes["left"][s], nodes["right"][s]]] < 0).all()]
            worst = min(pairs, key=lambda s: (nodes["subtree"][s] - nodes["leaf"][s], s))
        model.learn_one(x, y)
        if full:
            forgotten += 1
            now = naive_online.recorded(model, 0)
            asked = {(cell.feature, cell.threshold) for cell in naive_online.every_cell(now)}
            name = list(model.features)[nodes["feature"][worst]]
            assert (name, nodes["threshold"][worst]) not in asked
    assert forgotten > 100


@pytest.mark.slow
def test_memory_stays_under_the_bound_over_a_million_rows():
    rng = rng_for("million")
    model, sizes = et.OnlineForestClassifier(n_models=5, max_nodes=2000, half_life=1e4), []
    for _ in range(100):
        X = rng.normal(size=(10_000, 2)) + rng.normal(size=2)
        model.learn_many([{"a": a, "b": b} for a, b in X.tolist()], (X.sum(axis=1) > 0).tolist())
        sizes.append(model._trees.n_bytes)
        assert model.n_nodes <= 2000
    assert model.n_rows == 1_000_000
    assert sizes[0] == sizes[-1]
    assert np.isfinite(model.log_evidence).all()


# ---- the same stream, the same model -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_stream_gives_the_same_model_in_any_order_of_features(kind):
    rng = rng_for("determinism", kind)
    rows, targets = random_rows(rng, 120), random_targets(kind, rng, 120)
    shuffled = [{name: x[name] for name in rng.permutation(np.array(list(x), dtype=object))} for x in rows]
    one, same = (learn(make(kind, max_nodes=60, seed=3), r, targets) for r in (rows, shuffled))
    assert state(one) == state(same)
    assert state(learn(make(kind, max_nodes=60, seed=4), rows, targets)) != state(one)


def test_the_same_stream_gives_the_same_model_in_another_process():
    code = (
        "import everytree as et; m = et.OnlineForestClassifier()\n"
        "for i in range(60): m.learn_one({'c': 'abcdefgh'[i * 7 % 8], 'n': i * 31 % 17}, i * i % 3)\n"
        "print([list(m.predict_proba_one({'c': c}).values()) for c in 'abcx'], m.log_evidence.tolist())"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ | {name: seed}
        ).stdout
        for name, seed in itertools.product(["PYTHONHASHSEED"], ["0", "1"])
    }
    assert len(said) == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["pickle", "copy", "deepcopy"])
def test_copies_are_the_same_and_independent(kind, how):
    rng = rng_for("copies", kind, how)
    rows, targets = random_rows(rng, 160), random_targets(kind, rng, 160)
    model = learn(make(kind, max_nodes=50, half_life=40.0), rows[:80], targets[:80])
    ways = {"pickle": lambda m: pickle.loads(pickle.dumps(m)), "copy": copy.copy, "deepcopy": copy.deepcopy}
    other, before = ways[how](model), state(model)
    assert state(other) == before
    learn(other, rows[80:], [*targets[80:]])
    if kind == "classes":
        other.learn_one(rows[0], "a class that is new")
    assert state(model) == before
    again = learn(model, rows[80:], targets[80:])
    if kind == "classes":
        again.learn_one(rows[0], "a class that is new")
    assert state(again) == state(other)


@pytest.mark.parametrize("kind", KINDS)
def test_tables_are_rows_one_after_the_other(kind):
    pd = pytest.importorskip("pandas")
    rng = rng_for("tables", kind)
    rows, targets = random_rows(rng, 90), random_targets(kind, rng, 90)
    parameters: dict[str, Any] = {} if kind == "classes" else {"prior": None}
    one = learn(make(kind, **parameters), rows, targets)
    many = make(kind, **parameters)
    for begin in (0, 30, 31):
        part = slice(begin, {0: 30, 30: 31, 31: 90}[begin])
        many.learn_many(pd.DataFrame(rows[part], dtype=object), pd.Series(targets[part]))
    assert state(one) == state(many)
    X = pd.DataFrame(rows, index=np.arange(90) + 5)
    assert many.predict_many(X).tolist() == [one.predict_one(x) for x in rows]
    assert many.predict_many(X).index.equals(X.index)
    if kind == "classes":
        table = many.predict_proba_many(X)
        assert table.to_dict("records") == [one.predict_proba_one(x) for x in rows]
        assert make(kind).predict_proba_many(X).shape == (90, 0)
        assert make(kind).predict_many(X).tolist() == [None] * 90


# ---- rows as they come ---------------------------------------------------------------------------------------


def test_nothing_of_the_caller_is_kept():
    model = et.OnlineForestClassifier(n_models=2)
    x = {"a": 1.0, "b": "red"}
    model.learn_one(x, True)
    model.learn_one({"a": 2.0, "b": "blue"}, False)
    before = state(model)
    x.update(a=99.0, c=3.0)
    x.pop("b")
    assert state(model) == before
    learned = {"a": 3.0}
    model.learn_one(learned, True)
    model.predict_one(learned)
    assert learned == {"a": 3.0}


def test_unseen_features_are_ignored_and_missing_ones_are_an_answer():
    rng = rng_for("missing")
    model = et.OnlineForestClassifier(n_models=5)
    for _ in range(300):
        has = bool(rng.integers(2))
        model.learn_one({"noise": float(rng.random()), **({"rare": float(rng.random())} if has else {})}, has)
    assert model.predict_one({"noise": 0.5, "rare": 0.5}) is True
    for nothing in ({}, {"rare": None}, {"rare": float("nan")}, {"rare": np.float32("nan")}):
        assert model.predict_one({"noise": 0.5, **nothing}) is False
    assert model.predict_proba_one({"noise": 0.5}) == model.predict_proba_one({"noise": 0.5, "new": "?", "more": 3})
    assert set(model.predict_proba_one({})) == {True, False}
    assert model.features == ["noise", "rare"] or model.features == ["rare", "noise"]


def test_a_thousand_features_come_one_by_one():
    model = et.OnlineForestClassifier(n_models=2, max_nodes=60)
    for i in range(1000):
        model.learn_one({i: 1.0, "always": i}, i % 2)
    assert len(model.features) == 1001
    assert np.isfinite(model.log_evidence).all()


def test_values_of_other_libraries_and_dates_are_values():
    import datetime
    import decimal

    pd = pytest.importorskip("pandas")
    plain, other = (et.OnlineForestRegressor(n_models=2) for _ in range(2))
    for i in range(50):
        day = datetime.date(2020, 1, 1) + datetime.timedelta(days=i)
        plain.learn_one({"i": i, "f": i / 4, "d": (day - datetime.date(1970, 1, 1)).days, "t": "x", "m": None}, i)
        other.learn_one({"i": np.int16(i), "f": decimal.Decimal(i) / 4, "d": day, "t": np.str_("x"), "m": pd.NA}, i)
        other.predict_one({"d": np.datetime64(day), "m": pd.NaT, "f": np.float32(i)})
    assert state(plain) == state(other)
    at = [datetime.datetime(2020, 1, 9), np.datetime64("2020-01-09"), pd.Timestamp("2020-01-09")]
    assert len({other.predict_one({"d": day}) for day in at}) == 1
    zone = datetime.timezone(datetime.timedelta(hours=5))
    model = et.OnlineForestRegressor()
    model.learn_one({"when": datetime.datetime(2020, 1, 1, 12, tzinfo=zone), "long": datetime.timedelta(hours=3)}, 1.0)
    assert model.predict_one({"when": datetime.datetime(2020, 1, 1, 12, tzinfo=zone)}) == pytest.approx(1.0)


def test_fixed_ranges_scale_the_extents():
    rng = rng_for("ranges")
    wide = et.OnlineForestRegressor(n_models=3, ranges={"a": (-1e6, 1e6)})
    for _ in range(200):
        wide.learn_one({"a": float(rng.random()), "b": float(rng.random())}, float(rng.random()))
    nodes = wide._trees.arrays["nodes"]
    asked = nodes["feature"][: wide.n_nodes][nodes["left"][: wide.n_nodes] >= 0]
    assert (asked == wide.features.index("b")).mean() > 0.99


def test_classes_may_appear_at_any_time():
    model = et.OnlineForestClassifier(n_models=3)
    assert model.predict_one({"a": 1}) is None
    assert model.predict_proba_one({"a": 1}) == {}
    for n in range(1, 12):
        for i in range(20):
            model.learn_one({"a": float(n), "b": i % 3}, f"class {n}")
        given = model.predict_proba_one({"a": float(n)})
        assert list(given) == model.classes == [f"class {k}" for k in range(1, n + 1)]
        assert sum(given.values()) == pytest.approx(1.0, rel=1e-12)
        assert model.predict_one({"a": float(n)}) == f"class {n}"


def test_numbers_far_from_zero_keep_their_digits():
    rng = rng_for("digits")
    model = et.OnlineForestRegressor(n_models=3)
    for _ in range(500):
        a = float(rng.random())
        model.learn_one({"a": 1e9 + a}, 1e9 + 10.0 * (a > 0.5))
    assert model.predict_one({"a": 1e9 + 0.75}) - 1e9 == pytest.approx(10.0, abs=0.5)
    assert model.predict_one({"a": 1e9 + 0.25}) - 1e9 == pytest.approx(0.0, abs=0.5)


@pytest.mark.parametrize("y", [0.0, 3.0, -1e30, [1e30, -1e30], [1e-30, 2e-30], [0.0, 0.0, 1e9]], ids=str)
@pytest.mark.parametrize("half_life", [None, 0.01, 3.0])
def test_extreme_numbers_stay_finite(y, half_life):
    ys, values = np.ravel(y).tolist(), [1e150, -1e150, 1e-320, 0.0, 5e-324, 1.0]
    model = et.OnlineForestRegressor(n_models=3, half_life=half_life, max_nodes=40)
    for i in range(120):
        model.learn_one({"a": values[i % 6], "b": values[i % 5] * (i % 3) / 2}, ys[i % len(ys)])
    assert np.isfinite(model.log_evidence).all()
    for a, b in itertools.product(values, values):
        said = model.predict_one({"a": a, "b": b})
        assert min(ys) - 1e-9 * abs(min(ys)) <= said <= max(ys) + 1e-9 * abs(max(ys))
    model.refresh()
    assert np.isfinite(model.log_evidence).all()


# ---- bad input -----------------------------------------------------------------------------------------------

BAD_ROWS = {
    "infinite": ({"a": float("inf")}, ValueError, "feature 'a' must be a number of at most 1e150"),
    "too large": ({"a": 10**400}, ValueError, "feature 'a'"),
    "a list": ({"a": [1]}, ValueError, "feature 'a' must be a number, a text, a date or None, but is"),
    "an array": ({"a": np.ones(2)}, ValueError, "feature 'a' must be a number, a text, a date or None"),
    "no text": ({"t": "\ud800"}, ValueError, "feature 't' must be a text that UTF-8 can write"),
    "text for number": ({"a": "x"}, TypeError, "feature 'a' has been a number so far, but is 'x'"),
    "number for text": ({"t": 1}, TypeError, "feature 't' has been a text so far, but is 1"),
    "a new one among good ones": ({"a": 1.0, "z": float("-inf")}, ValueError, "feature 'z'"),
    "no dict": ([("a", 1.0)], TypeError, "x must be a dict"),
}
BAD_TARGETS = {
    "classes": [(None, ValueError), (float("nan"), ValueError), (np.float32("nan"), ValueError), ([1], TypeError)],
    "numbers": [
        (None, TypeError), ("1", TypeError), ([1.0], TypeError), (float("nan"), ValueError), (1e31, ValueError),
        (float("inf"), ValueError), (10**400, ValueError),
    ],
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bad", BAD_ROWS)
def test_a_bad_row_is_refused_and_changes_nothing(kind, bad):
    x, error, message = BAD_ROWS[bad]
    model = make(kind)
    good = [{"a": 1.0, "t": "u"}, {"a": 2.0, "t": "v"}]
    learn(model, good, [0, 1])
    before = state(model)
    with pytest.raises(error, match=message):
        model.learn_one(x, 1)
    with pytest.raises(error, match="x must be" if bad == "no dict" else message):
        model.predict_one(x)
    where = "row 2, " if "feature" in message else ""
    with pytest.raises(error, match=f"{where}{message}"):
        model.learn_many([*good, x], [0, 1, 1])
    assert state(model) == before


@pytest.mark.parametrize(("kind", "y", "error"), [(k, y, e) for k in KINDS for y, e in BAD_TARGETS[k]])
def test_a_bad_target_is_refused_and_changes_nothing(kind, y, error):
    model = learn(make(kind), [{"a": 1.0}], [0])
    before = state(model)
    with pytest.raises(error, match="y must be"):
        model.learn_one({"a": 1.0, "new": 2.0}, y)
    with pytest.raises(error, match="y, row 1, must be"):
        model.learn_many([{"a": 1.0}, {"b": 1.0}], [0, y])
    with pytest.raises(ValueError, match="y has 1 entries, but X has 2 rows"):
        model.learn_many([{"a": 1.0}, {"b": 1.0}], [0])
    assert state(model) == before


BAD_PARAMETERS = [
    ("n_models", 0), ("n_models", 2.5), ("split_prior", 0.0), ("split_prior", 1.0), ("split_prior", "much"),
    ("max_nodes", 5), ("half_life", 0.0), ("half_life", float("nan")), ("half_life", "long"), ("seed", -1),
    ("seed", None), ("ranges", 3), ("ranges", {"a": 1.0}), ("ranges", {"a": (1.0, 1.0)}),
    ("ranges", {"a": (0.0, float("inf"))}),
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("name", "value"), BAD_PARAMETERS)
def test_bad_parameters_are_refused(kind, name, value):
    with pytest.raises((TypeError, ValueError), match=name):
        make(kind, **{name: value})


def test_bad_parameters_of_one_kind_are_refused():
    for bad in (0.0, float("inf"), "much"):
        with pytest.raises(ValueError, match="concentration"):
            et.OnlineForestClassifier(concentration=bad)
    with pytest.raises(TypeError, match="prior must be"):
        et.OnlineForestRegressor(prior=(1.0, 2.0))
    with pytest.raises(ValueError, match="strength"):
        et.OnlineForestRegressor(prior=(1.0, -2.0, 1.0, 1.0))
    model = et.OnlineForestClassifier(ranges={"t": (0.0, 1.0)})
    with pytest.raises(TypeError, match=r"ranges\['t'\]"):
        model.learn_one({"t": "text"}, 1)


# ---- river, threads ------------------------------------------------------------------------------------------


def river_checks() -> list[Any]:
    checks = pytest.importorskip("river.checks")
    models = [
        et.OnlineForestClassifier(), et.OnlineForestRegressor(),
        et.OnlineForestClassifier(3, max_nodes=50, half_life=20.0),
        et.OnlineForestRegressor(3, max_nodes=50, half_life=20.0),
    ]  # fmt: skip
    return [(model, check) for model in models for check in checks.yield_checks(model)]


def test_river_checks_pass():
    for model, check in river_checks():
        check(model.clone())


def test_it_is_a_river_model():
    river = pytest.importorskip("river")
    from river import compose, datasets, evaluate, metrics, preprocessing

    assert isinstance(et.OnlineForestClassifier(), river.base.MiniBatchClassifier)
    assert isinstance(et.OnlineForestRegressor(), river.base.MiniBatchRegressor)
    model = compose.Select("age_of_domain", "https") | preprocessing.MinMaxScaler() | et.OnlineForestClassifier(3)
    score = evaluate.progressive_val_score(datasets.Phishing().take(300), model, metrics.Accuracy())
    assert score.get() > 0.7


def test_river_need_not_be_there():
    code = (
        "import sys; sys.modules['river'] = None; import everytree as et\n"
        "model = et.OnlineForestClassifier()\n"
        "for i in range(30): model.learn_one({'a': i}, i > 15)\n"
        "print(model.predict_one({'a': 29}), et.OnlineForestRegressor().predict_one({}))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["True", "0.0"]


def test_threads_may_learn_and_predict_at_once():
    model, failures = et.OnlineForestClassifier(n_models=3, max_nodes=200), []

    def work(worker: int) -> None:
        try:
            for i in range(300):
                model.learn_one({f"f{worker}": i % 13, "common": i % 7}, (i + worker) % (2 + i // 100))
                assert sum(model.predict_proba_one({"common": i % 7}).values()) == pytest.approx(1.0)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert model.n_rows == 1200
    roots = model._trees.roots[:, 0]
    np.testing.assert_allclose(model._trees.arrays["statistics"][roots].sum(axis=1), 1200.0)


def test_mappings_are_rows():
    from types import MappingProxyType

    assert as_dicts([MappingProxyType({"a": 1})]) == [{"a": 1}]
    assert list(itertools.islice(as_dicts({"a": i} for i in range(3)), 2)) == [{"a": 0}, {"a": 1}]
