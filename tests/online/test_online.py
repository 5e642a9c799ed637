"""Online forests: the posterior over the prunings of the present trees, given all rows with their weights."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import everytree as et
import naive_online
from cases import examples, rng_for, seeds
from online_cases import KINDS, as_numbers, class_weights, learn, make, random_rows, random_targets, state, twins

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
    learn(model, rows, targets)
    before = model.log_evidence.copy()
    model.refresh()
    if half_life is None:
        np.testing.assert_allclose(before, model.log_evidence, rtol=1e-10, atol=1e-10)
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


@pytest.mark.long
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
    nodes, family = model.trees.arrays["nodes"], model.trees.family
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

    visit(int(model.trees.roots[tree, 0]), np.arange(len(rows)), 0.0)
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
    family, arrays = model.trees.family, model.trees.arrays
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


@pytest.mark.parametrize(("half_life", "a_row"), [(1000.0, 4), (250.0, 7), (100.0, 16)])
def test_branches_that_no_row_touches_are_refreshed_within_a_round(half_life, a_row):
    """Four to sixteen nodes of each tree a row: no node is staler than that part of the number of its tree's nodes."""
    rng = rng_for("schedule")
    model = et.OnlineForestClassifier(n_models=2, half_life=half_life, max_nodes=400)
    for i in range(3000):
        x = rng.normal(size=2) if i < 1000 else rng.normal(size=2) * 0.01 + 3.0
        model.learn_one({"a": x[0], "b": x[1]}, bool(rng.integers(2)))
    nodes = model.trees.arrays["nodes"]
    for tree in range(2):
        cells = [cell.number for cell in naive_online.every_cell(naive_online.recorded(model, tree))]
        assert 0.8 * len(cells) / a_row < (3000 - nodes["stamp"][cells]).max() <= len(cells) / a_row + 1


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


def test_with_a_half_life_the_prior_follows_the_scale_of_the_targets():
    """Long after they shrink a thousandfold, nothing of how large they were is left."""
    rng = rng_for("scale drift")
    model, fixed = (et.OnlineForestRegressor(n_models=3, half_life=h, max_nodes=300) for h in (60.0, None))
    for i in range(4 * 1024):
        a = float(rng.random())
        y = float(rng.normal(a, 0.1)) * (1.0 if i < 2048 else 1e-3)
        model.learn_one({"a": a}, y)
        fixed.learn_one({"a": a}, y)
    low, high = model.predictive_one({"a": 0.5}).interval(0.9)[0]
    assert 1e-4 < high - low < 1e-3
    assert abs(model.trees.family.mean) < 1e-3 < abs(fixed.trees.family.mean)


RENEWALS = [
    (None, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]),
    (0.5, [1, 2, 4, 8, 16, 32, 64, 100, 128, 200, 256, 300]),
    (150.0, [1, 2, 4, 8, 16, 32, 64, 128, 150, 256, 300, 450, 512, 600]),
]


@pytest.mark.parametrize(("half_life", "renewed"), RENEWALS)
def test_when_the_prior_is_renewed(half_life, renewed):
    model, at = et.OnlineForestRegressor(half_life=half_life), [0]
    while at[-1] < renewed[-1]:
        at.append(model._next_renewal(at[-1]))
    assert at[1:] == renewed
    assert et.OnlineForestRegressor(prior=(0.0, 1.0, 1.0, 1.0), half_life=half_life)._next_renewal(7) > 2**60


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
        assert len(model.trees.arrays["nodes"]) <= max_nodes
    reached = sum(len(naive_online.every_cell(naive_online.recorded(model, tree))) for tree in range(2))
    assert reached == model.n_nodes >= max_nodes - 3


def test_what_adds_least_to_the_evidence_of_its_cell_is_forgotten_first():
    rng = rng_for("least useful")
    model, forgotten = et.OnlineForestClassifier(n_models=1, max_nodes=61), 0
    for i in range(400):
        x, y = {"a": float(rng.normal()), "b": float(rng.normal())}, int(rng.integers(2))
        nodes = model.trees.arrays["nodes"].copy()
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
        sizes.append(sum(array.nbytes for array in model.trees.arrays.values()) + model.trees.ranges.nbytes)
        assert model.n_nodes <= 2000
    assert model.n_rows == 1_000_000
    assert sizes[0] == sizes[-1]
    assert np.isfinite(model.log_evidence).all()


# ---- many classes --------------------------------------------------------------------------------------------


def many_classes(what: object, n: int, n_classes: int) -> tuple[list[dict[str, float]], list[str]]:
    """New classes all along the stream, most of them rare."""
    rng = rng_for("many classes", what)
    rows = [{"a": float(a), "b": float(b)} for a, b in rng.normal(size=(n, 2)).round(2)]
    return rows, [
        f"c{i if i < n_classes and rng.random() < 0.7 else int(rng.integers(n_classes) ** 0.7)}" for i in range(n)
    ]


@pytest.mark.parametrize("max_nodes", [None, 40])
@pytest.mark.parametrize("half_life", [None, 20.0])
def test_many_classes_are_theorem_1_on_the_present_trees(max_nodes, half_life):
    rows, targets = many_classes((max_nodes, half_life), 60, 60)
    model = learn(make("classes", n_models=1, max_nodes=max_nodes, half_life=half_life), rows, targets)
    assert len(model.classes) > 40
    model.refresh()
    ys = as_numbers(model, "classes", targets)
    weights = [1.0 if half_life is None else 2.0 ** (-(len(rows) - 1 - i) / half_life) for i in range(len(rows))]
    ((twin, cell),) = twins(model, "classes")
    expected = twin.log_evidence(cell, rows, ys, weights)
    assert model.log_evidence[0] == pytest.approx(expected, rel=1e-10)
    assert twin.predictive(cell, rows, ys, weights, rows[3], ys[3]) == pytest.approx(
        model.predict_proba_one(rows[3])[targets[3]], rel=1e-9
    )


@pytest.mark.parametrize("n", [300, 9000])
def test_evidence_of_many_classes_is_that_of_the_family_in_every_node(n):
    """Few rows and many, where sums are taken in other ways; a class that comes last may have come any time before."""
    rows, targets = many_classes(n, n, 45)
    model = make("classes", n_models=2, max_nodes=700)
    model.learn_many(rows, targets)
    model.learn_one(rows[0], "one more")
    found = model.trees.__getstate__()
    in_use = found["arrays"]["nodes"]["tree"] >= 0
    statistics = class_weights(model)
    assert statistics.shape[1] == len(model.classes) > 32
    assert statistics[model.trees.roots[0, 0]].sum() == n + 1
    expected = model.trees.family.log_evidence(statistics[in_use])
    np.testing.assert_allclose(found["arrays"]["nodes"]["leaf"][in_use], expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("max_nodes", [None, 700])
@pytest.mark.parametrize("asked", [False, True], ids=["at the end", "in between"])
def test_evidence_is_the_same_however_it_is_kept(max_nodes, asked):
    """A half-life so long that no row ever decays changes nothing but how evidence is kept."""
    rng = rng_for("kept", max_nodes, asked)
    rows, targets = many_classes("kept", 5000, 400)
    common = [f"c{int(c)}" for c in rng.integers(8, size=len(rows))]  # of many rows, in both children of most nodes
    targets = [y if rng.random() < 0.3 else other for y, other in zip(targets, common, strict=True)]
    one, other = (make("classes", max_nodes=max_nodes, half_life=half_life) for half_life in (None, 1e300))
    for start in range(0, len(rows), 500):
        for model in (one, other):
            model.learn_many(rows[start : start + 500], targets[start : start + 500])
        if asked or start == 4500:
            np.testing.assert_allclose(one.log_evidence, other.log_evidence, rtol=1e-12)
            for x in rows[start : start + 20]:
                probabilities = [[*model.predict_proba_one(x).values()] for model in (one, other)]
                np.testing.assert_allclose(*probabilities, rtol=1e-9, atol=1e-12)
    assert len(one.classes) > 100
    np.testing.assert_array_equal(class_weights(one), class_weights(other))
    kept = [model.trees.__getstate__()["arrays"]["nodes"] for model in (one, other)]
    for name in ("leaf", "subtree"):
        np.testing.assert_allclose(kept[0][name], kept[1][name], rtol=1e-10, atol=1e-10)


def test_one_row_of_each_of_many_classes_takes_room_for_the_rows_of_the_nodes():
    """Not for each class in each node, which was 190 MB here."""
    rng = rng_for("room")
    model, n = et.OnlineForestClassifier(), 1200
    for i, (a, b) in enumerate(rng.normal(size=(n, 2)).tolist()):
        model.learn_one({"a": a, "b": b}, i)
        assert model.predict_one({"a": a, "b": b}) == i
    assert class_weights(model)[model.trees.roots[:, 0]].tolist() == [[1.0] * n] * 10
    assert len(pickle.dumps(model)) < 10e6


@pytest.mark.parametrize("n_classes", [31, 32, 50])
def test_the_class_that_is_predicted_is_the_most_probable_one(n_classes):
    rows, targets = many_classes("most probable", 300, n_classes)
    model = make("classes")
    assert model.predict_one(rows[0]) is None
    model.learn_many(rows, targets)
    for x in rows:
        probabilities = model.predict_proba_one(x)
        assert [*probabilities] == model.classes
        assert sum(probabilities.values()) == pytest.approx(1.0, rel=1e-12)
        assert model.predict_one(x) == max(probabilities, key=probabilities.__getitem__)
        np.testing.assert_allclose(model.predictive_one(x).probs()[0], [*probabilities.values()], rtol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("max_nodes", [None, 80])
@pytest.mark.parametrize("half_life", [None, 25.0])
def test_asking_changes_nothing(kind, max_nodes, half_life):
    """Evidence that waits for its turn is the same whoever asks for it, and whenever."""
    rows, targets = many_classes("asking", 200, 70)
    ys: list[Any] = targets if kind == "classes" else [float(len(rows) - i) for i in range(len(rows))]
    parameters = {} if kind == "classes" else {"prior": None}
    silent, asked, copied = (make(kind, max_nodes=max_nodes, half_life=half_life, **parameters) for _ in range(3))
    for i, (x, y) in enumerate(zip(rows, ys, strict=True)):
        for model in (silent, asked, copied):
            model.learn_one(x, y)
        if i % 3 == 0:
            asked.predict_one(rows[-i])
            asked.predict_many(rows[:2])
            assert np.isfinite(asked.log_evidence).all()
            copied = pickle.loads(pickle.dumps(copied))
    together = make(kind, max_nodes=max_nodes, half_life=half_life, **parameters)
    together.learn_many(rows, ys)
    assert state(asked) == state(silent) == state(copied) == state(together)


@pytest.mark.parametrize("half_life", [None, 200.0])
@pytest.mark.parametrize("offset", [1e7, 1e9])
def test_a_shift_of_the_targets_shifts_the_predictions(offset, half_life):
    """Law 10: rows that decay have fractional weights. Adding the offset rounds nothing."""
    rng = rng_for("online shift", offset)
    rows = [{"a": float(a), "b": float(b)} for a, b in rng.normal(size=(600, 2))]
    y = [round(1024 * (float(row["a"] > 0) + 0.1 * rng.normal())) / 1024 for row in rows]
    here, there = et.OnlineForestRegressor(3, half_life=half_life), et.OnlineForestRegressor(3, half_life=half_life)
    here.learn_many(rows, y)
    there.learn_many(rows, [value + offset for value in y])
    np.testing.assert_allclose(there.log_evidence, here.log_evidence, rtol=1e-6)
    for row in rows[:20]:
        assert there.predict_one(row) - offset == pytest.approx(here.predict_one(row), abs=1e-5)
        assert there.predictive_one(row).std()[0] == pytest.approx(here.predictive_one(row).std()[0], rel=1e-5)
