"""Online forests: rows as they come, the same model from the same stream, bad input, river, threads."""

from __future__ import annotations

import copy
import datetime
import decimal
import itertools
import os
import pickle
import subprocess
import sys
import threading
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import everytree as et
from cases import rng_for
from everytree.online.rows import DATE, NOMINAL, as_dicts
from online_cases import KINDS, learn, make, random_rows, random_targets, state

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
def test_copies_may_come_in_memory_that_cannot_be_written(kind, tmp_path):
    """As joblib's memory maps and buffers beside a pickle do."""
    joblib = pytest.importorskip("joblib")
    rng = rng_for("read-only", kind)
    rows, targets = random_rows(rng, 60), random_targets(kind, rng, 60)
    model, buffers = learn(make(kind), rows[:40], targets[:40]), []
    text = pickle.dumps(model, protocol=5, buffer_callback=buffers.append)
    beside = pickle.loads(text, buffers=[bytes(buffer.raw()) for buffer in buffers])
    joblib.dump(model, tmp_path / "model")
    mapped = joblib.load(tmp_path / "model", mmap_mode="r")
    learn(model, rows[40:], targets[40:])
    assert buffers
    for copied in (beside, mapped):
        assert state(learn(copied, rows[40:], targets[40:])) == state(model)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("half_life", [None, 20.0])
def test_tables_are_rows_one_after_the_other(kind, half_life):
    pd = pytest.importorskip("pandas")
    rng = rng_for("tables", kind)
    rows, targets = random_rows(rng, 90), random_targets(kind, rng, 90)
    parameters: dict[str, Any] = {"half_life": half_life} | ({} if kind == "classes" else {"prior": None})
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


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_tables_of_any_library_are_rows(library):
    rng = rng_for("libraries")
    columns = {"a": rng.normal(size=50).tolist(), "b": rng.choice(["u", "v"], 50).tolist()}
    columns["a"][7] = columns["b"][9] = None
    ys = {"class": (rng.normal(size=50) > 0).tolist(), "mean": rng.normal(size=50).tolist()}
    module = pytest.importorskip(library)
    table, targets = ((module.DataFrame if library == "polars" else module.table)(data) for data in (columns, ys))
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    for kind, name in (("classes", "class"), ("numbers", "mean")):
        one, many = learn(make(kind), rows, ys[name]), make(kind)
        many.learn_many(table, targets[name])
        assert state(many) == state(one)
        said = many.predict_many(table)
        assert type(said) is type(targets[name])
        assert (said.to_list() if library == "polars" else said.to_pylist()) == [one.predict_one(x) for x in rows]
        if kind == "classes":
            probabilities = many.predict_proba_many(table)
            assert type(probabilities) is type(table)
            expected = [{str(k): p for k, p in one.predict_proba_one(x).items()} for x in rows]
            assert (probabilities.to_dicts() if library == "polars" else probabilities.to_pylist()) == expected


def test_lazy_tables_are_refused():
    pl = pytest.importorskip("polars")
    with pytest.raises(TypeError, match=r"X is lazy \(LazyFrame\), but its rows are needed; pass X.collect\(\)"):
        make("numbers").predict_many(pl.LazyFrame({"a": [1.0]}))


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
    pd = pytest.importorskip("pandas")
    plain, other = (et.OnlineForestRegressor(n_models=2) for _ in range(2))
    for i in range(50):
        day = datetime.date(2020, 1, 1) + datetime.timedelta(days=i)
        plain.learn_one({"i": i, "f": i / 4, "d": (day - datetime.date(1970, 1, 1)).days, "t": "x", "m": None}, i)
        other.learn_one({"i": np.int16(i), "f": decimal.Decimal(i) / 4, "d": day, "t": np.str_("x"), "m": pd.NA}, i)
        other.predict_one({"d": np.datetime64(day), "m": pd.NaT, "f": np.float32(i)})
    of_plain, of_other = state(plain), state(other)
    assert of_plain.pop(-3) == bytes([0, 0, 0, NOMINAL])  # the kinds of d, f, i and t
    assert of_other.pop(-3) == bytes([DATE, 0, 0, NOMINAL])
    assert of_plain == of_other
    at = [datetime.datetime(2020, 1, 9), np.datetime64("2020-01-09"), pd.Timestamp("2020-01-09")]
    assert len({other.predict_one({"d": day}) for day in at}) == 1
    zone = datetime.timezone(datetime.timedelta(hours=5))
    model = et.OnlineForestRegressor()
    model.learn_one({"when": datetime.datetime(2020, 1, 1, 12, tzinfo=zone), "long": datetime.timedelta(hours=3)}, 1.0)
    assert model.predict_one({"when": datetime.datetime(2020, 1, 1, 12, tzinfo=zone)}) == pytest.approx(1.0)


def test_features_that_are_not_there_are_named_beside_those_that_are():
    model = et.OnlineForestRegressor()
    model.learn_one({"size": 1.0, "colour": "red"}, 2.0)
    assert model.is_category("colour")
    assert not model.is_category("size")
    with pytest.raises(ValueError, match=r"feature is 'nope', but the features are \['colour', 'size'\]"):
        model.is_category("nope")


def test_fixed_ranges_scale_the_extents():
    rng = rng_for("ranges")
    wide = et.OnlineForestRegressor(n_models=3, ranges={"a": (-1e6, 1e6)})
    for _ in range(200):
        wide.learn_one({"a": float(rng.random()), "b": float(rng.random())}, float(rng.random()))
    nodes = wide.trees.arrays["nodes"]
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
    "classes": [
        (None, ValueError), (float("nan"), ValueError), (np.float32("nan"), ValueError), ([1], TypeError),
        (np.datetime64("NaT", "us"), ValueError), (decimal.Decimal("sNaN"), ValueError),
    ],
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
    ("split_prior", True), ("half_life", 10**400),
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
    for bad in (0.0, float("inf"), "much", 1e-55, 1e55):
        with pytest.raises(ValueError, match="concentration"):
            et.OnlineForestClassifier(concentration=bad)
    with pytest.raises(TypeError, match="prior must be"):
        et.OnlineForestRegressor(prior=(1.0, 2.0))
    with pytest.raises(ValueError, match="strength"):
        et.OnlineForestRegressor(prior=(1.0, -2.0, 1.0, 1.0))
    model = et.OnlineForestClassifier(ranges={"t": (0.0, 1.0)})
    with pytest.raises(TypeError, match=r"ranges\['t'\]"):
        model.learn_one({"t": "text"}, 1)


def test_a_class_that_there_is_no_room_for_changes_nothing(monkeypatch):
    model = learn(make("classes"), [{"a": 1.0}, {"a": 2.0}], ["x", "y"])
    before = state(model)

    def full(**_: Any) -> Any:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(model.trees, "_larger", full)
        with pytest.raises(MemoryError):
            model.learn_one({"a": 3.0}, "z")
    assert state(model) == before
    model.learn_one({"a": 3.0}, "z")
    assert model.classes == ["x", "y", "z"]


def test_the_kernel_refuses_targets_that_do_not_fit():
    trees = learn(make("classes"), [{"a": 1.0}], ["x"]).trees
    rows = np.zeros((2, len(trees.features.kinds)))
    for wrong in ([0.0], [0.0, 2.0], [0.0, -1.0], [0.0, 0.5], [0.0, np.nan]):
        with pytest.raises(ValueError, match="target"):
            trees._kernel.learn(rows, np.array(wrong), 0)
    assert trees.n_rows == 1


def test_numbers_of_any_type_are_parameters_and_classes():
    model = et.OnlineForestClassifier(split_prior=np.float32(0.25), half_life=np.int64(9), concentration=np.float32(1))
    model.learn_one({"a": 1}, 10**400)
    assert model.classes == [10**400]


# ---- river, threads ------------------------------------------------------------------------------------------


def river_checks() -> list[Any]:
    checks = pytest.importorskip("river.checks")
    models = [
        et.OnlineForestClassifier(3), et.OnlineForestRegressor(3),
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
    roots = model.trees.roots[:, 0]
    np.testing.assert_allclose(model.trees.arrays["statistics"][roots].sum(axis=1), 1200.0)


def test_mappings_are_rows():
    assert as_dicts([MappingProxyType({"a": 1})]) == [{"a": 1}]
    assert list(itertools.islice(as_dicts({"a": i} for i in range(3)), 2)) == [{"a": 0}, {"a": 1}]


# ---- columns of targets ----------------------------------------------------------------------------------------------


def columns_of(values: list[Any]) -> dict[str, Any]:
    """The same targets as each library has a column of them."""
    pa, pd, pl = (pytest.importorskip(name) for name in ("pyarrow", "pandas", "polars"))
    array = pa.array(values)
    half = len(values) // 2
    return {
        "array": array,
        "chunked array": pa.chunked_array([array[:half], array[half:]]),
        "dictionary": array.dictionary_encode(),
        "chunked dictionary": pa.chunked_array([array[:half].dictionary_encode(), array[half:].dictionary_encode()]),
        "pandas": pd.Series(values),
        "pandas categorical": pd.Series(values, dtype="category"),
        "pandas on arrow": pd.Series(values, dtype=pd.ArrowDtype(array.type)),
        "polars": pl.Series(values),
        "iterator": iter(values),
    }


@pytest.mark.parametrize("values", [["u", "v", "w", "u"], [3, 1, 3, 2], [True, False, False, True]])
def test_targets_of_every_library_are_values(values):
    rows = [{"a": float(i)} for i in range(4)]
    expected = et.OnlineForestClassifier(n_models=2)
    expected.learn_many(rows, values)
    for name, column in columns_of(values).items():
        model = et.OnlineForestClassifier(n_models=2)
        model.learn_many(rows, column)
        assert state(model) == state(expected), name
        assert [type(label) for label in model.classes] == [type(label) for label in expected.classes], name
        assert all(model.predict_one(row) == expected.predict_one(row) for row in rows), name
    if isinstance(values[0], str):
        return
    numbers = et.OnlineForestRegressor(n_models=2)
    numbers.learn_many(rows, values)
    for name, column in columns_of(values).items():
        regressor = et.OnlineForestRegressor(n_models=2)
        regressor.learn_many(rows, column)
        assert state(regressor) == state(numbers), name


def test_rows_of_every_kind_are_predicted_in_kind():
    pa, pd, pl = (pytest.importorskip(name) for name in ("pyarrow", "pandas", "polars"))
    table = pa.table({"a": [1.0, 2.0, 3.0, 4.0]})
    for kind_of_model in (et.OnlineForestClassifier, et.OnlineForestRegressor):
        model = kind_of_model(n_models=2)
        model.learn_many(table, pa.array([1, 2, 1, 2]))
        expected = [model.predict_one(row) for row in table.to_pylist()]
        kinds: list[tuple[Any, type]] = [
            (table, pa.ChunkedArray), (table.to_batches()[0], pa.ChunkedArray), (pl.from_arrow(table), pl.Series),
            (table.to_pandas(), pd.Series), (table.to_pylist(), pd.Series),
        ]  # fmt: skip
        for X, kind in kinds:
            predicted = model.predict_many(X)
            assert type(predicted) is kind
            assert list(predicted.to_pylist() if kind is pa.ChunkedArray else predicted) == expected
