"""What is wrong is refused by name, place and value, and changes nothing; what is merely unusual works."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from scipy.special import betaln

import everytree as et
from cases import CASE, Case, assert_same, families, random_codes, rng_for, snapshot, take

NAN, INF = float("nan"), float("inf")
PLACE = 2  # of the bad row among four good ones


NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?|nan|inf")


def says(message: str, word: str) -> bool:
    """Whether the word is there; a number may be written in any way that reads as that number."""
    if NUMBER.fullmatch(word):
        value = float(word)
        return any(
            np.isclose(float(said), value, rtol=1e-5, atol=0.0, equal_nan=True) for said in NUMBER.findall(message)
        )
    return re.search(rf"(?<![\w.]){re.escape(word)}(?!\w)", message) is not None


def refused(call: Callable[[], Any], *words: str) -> str:
    """The message of a ValueError or TypeError that has all these words in it."""
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    message = str(caught.value)
    assert "incompatible function arguments" not in message, f"the binding complains, not the library: {message}"
    for word in words:
        assert says(message, word), f"{word!r} is not in: {message}"
    return message


def state(post: et.Posterior | et.GrowingPosterior) -> bytes:
    """Every bit of it."""
    return snapshot(post) if isinstance(post, et.Posterior) else pickle.dumps(post)


# ---- three doors -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Door:
    """One way rows come in, and posteriors that have seen some already."""

    name: str
    build: Callable[[et.Family, int], list[Any]]
    update: Callable[..., Any]
    has_n_jobs: bool = True

    def __str__(self) -> str:
        return self.name

    def seasoned(self, case: Case, depth: int = 2) -> list[Any]:
        """Posteriors over `depth` columns of two codes with rows in them."""
        rng = rng_for("seasoned", case, depth)
        X = rng.integers(0, 2, (50, depth)).astype(np.uint8)
        y, row_data = case.draw(rng, len(X))
        posts = self.build(case.family, depth)
        self.update(posts, X, y, rng.uniform(0.1, 2.0, len(y)), **row_data)
        return posts


def complete(depth: int, shift: int = 0) -> et.MetaTree:
    """Level d asks column d + shift."""
    features = np.repeat((np.arange(depth) + shift) % depth, 2 ** np.arange(depth))
    return et.MetaTree.complete(features, n_features=depth)


DOORS = [
    Door(
        "Posterior.update",
        lambda family, depth: [et.Posterior(complete(depth), family, 0.6)],
        lambda posts, *rows, **options: posts[0].update(*rows, **options),
    ),
    Door(
        "GrowingPosterior.update",
        lambda family, depth: [et.GrowingPosterior([2] * depth, family, 0.6)],
        lambda posts, *rows, **options: posts[0].update(*rows, **options),
        has_n_jobs=False,
    ),
    Door(
        "update_all",
        lambda family, depth: [
            et.Posterior(complete(depth), family, 0.6),
            et.Posterior(complete(depth, shift=1), family, 0.4),
            et.Posterior(complete(depth), family, 0.2),
        ],
        lambda posts, *rows, **options: et.update_all(posts, *rows, **options),
    ),
]
doors = pytest.mark.parametrize("door", DOORS, ids=str)


def assert_refuses(door: Door, case: Case, words: list[str], X, y, weight=None, **row_data) -> None:
    posts = door.seasoned(case)
    before = [state(post) for post in posts]
    refused(lambda: door.update(posts, X, y, weight, **row_data), *words)
    assert [state(post) for post in posts] == before
    good_y, good_data = case.draw(rng_for("after"), 4)  # and they still work
    door.update(posts, GOOD_X, good_y, **good_data)
    assert [state(post) for post in posts] != before


GOOD_X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=np.uint8)
GOOD_Y = np.array([0, 1, 1, 0])


def with_code(value: Any, dtype: Any) -> np.ndarray:
    """Good codes but for row PLACE, column 1."""
    X = GOOD_X.astype(dtype)
    X[PLACE, 1] = value
    return X


AT = ["X", "column 1", f"row {PLACE}"]
BAD_X = {
    "None": (None, ["X"]),
    "a number": (5, ["X", "()"]),
    "a string": ("codes", ["X"]),
    "one row without a table": (GOOD_X[0], ["X", "(2,)"]),
    "three axes": (GOOD_X[None], ["X", "(1, 4, 2)"]),
    "an empty list": ([], ["X", "(0,)"]),
    "rows of different lengths": ([[0, 1], [0], [1, 0], [1, 1]], ["X"]),
    "too few columns": (GOOD_X[:, :1], ["X", "1", "2"]),
    "too many columns": (np.zeros((4, 3), dtype=np.uint8), ["X", "3", "2"]),
    "too few columns, list": (GOOD_X[:, :1].tolist(), ["X", "1", "2"]),
    "no columns": (np.zeros((4, 0), dtype=np.uint8), ["X", "0", "2"]),
    "code too large, uint8": (with_code(3, np.uint8), [*AT, "3", "0..1"]),
    "code too large, uint16": (with_code(300, np.uint16), [*AT, "300", "0..1"]),
    "code too large, uint64": (with_code(2**63, np.uint64), [*AT, str(2**63), "0..1"]),
    "code too large, int64": (with_code(3, np.int64), [*AT, "3", "0..1"]),
    "code much too large, int64": (with_code(2**40, np.int64), [*AT, str(2**40), "0..1"]),
    "code that is a good one modulo 256, int64": (with_code(256, np.int64), [*AT, "256", "0..1"]),
    "code that is a good one modulo 256, list": (with_code(256, np.int64).tolist(), [*AT, "256", "0..1"]),
    "code that is a good one modulo 256, float": (with_code(256, np.float64), [*AT, "256", "0..1"]),
    "code that is a good one modulo 256, uint16": (with_code(257, np.uint16), [*AT, "257", "0..1"]),
    "code that is a good one modulo 65536, int64": (with_code(65536, np.int64), [*AT, "65536", "0..1"]),
    "code that is a good one modulo 65536, list": (with_code(65537, np.int64).tolist(), [*AT, "65537", "0..1"]),
    "missing code without a branch, uint8": (with_code(255, np.uint8), [*AT, "255", "0..1"]),
    "missing code without a branch, uint16": (with_code(65535, np.uint16), [*AT, "65535", "0..1"]),
    "negative code, int8": (with_code(-1, np.int8), [*AT, "-1", "0..1"]),
    "negative code, int16": (with_code(-1, np.int16), [*AT, "-1", "0..1"]),
    "more negative code, int16": (with_code(-300, np.int16), [*AT, "-300", "0..1"]),
    "negative code, int32": (with_code(-1, np.int32), [*AT, "-1", "0..1"]),
    "negative code, int64": (with_code(-1, np.int64), [*AT, "-1", "0..1"]),
    "negative code, list": (with_code(-1, np.int64).tolist(), [*AT, "-1", "0..1"]),
    "negative code, float": (with_code(-1, np.float64), [*AT, "-1", "0..1"]),
    "a fraction": (with_code(0.5, np.float64), [*AT, "0.5"]),
    "a fraction, float32": (with_code(0.5, np.float32), [*AT, "0.5"]),
    "NaN": (with_code(NAN, np.float64), [*AT, "nan"]),
    "infinity": (with_code(INF, np.float64), [*AT, "inf"]),
    "too large for any whole number": (with_code(1e300, np.float64), [*AT, "1e+300"]),
    "sparse": (scipy.sparse.csr_matrix(GOOD_X), ["X", "sparse"]),
    "sparse array": (scipy.sparse.coo_array(GOOD_X), ["X", "sparse"]),
    "datetimes": (GOOD_X.astype("datetime64[s]"), ["X", "datetime64[s]"]),
    "time differences": (GOOD_X.astype("timedelta64[s]"), ["X", "timedelta64[s]"]),
    "complex": (GOOD_X.astype(complex), ["X", "complex128"]),
    "strings": (GOOD_X.astype(str).tolist(), ["X"]),
    "objects": (GOOD_X.astype(object), ["X", "object"]),
    "records": (np.zeros((4, 2), dtype=[("code", "u1")]), ["X"]),
}


@doors
@pytest.mark.parametrize("what", BAD_X)
def test_bad_codes_are_refused_and_change_nothing(door, what):
    X, words = BAD_X[what]
    assert_refuses(door, CASE["bernoulli"], words, X, GOOD_Y)


@doors
@pytest.mark.parametrize("what", ["None", "a number", "a string", "one row without a table", "sparse"])
@pytest.mark.parametrize("family", ["poisson", "linear"])
def test_bad_tables_are_refused_beside_row_data_too(family, what, door):
    X, words = BAD_X[what]
    y, row_data = CASE[family].draw(rng_for(family), 4)
    assert_refuses(door, CASE[family], words, X, y, **row_data)


@pytest.mark.parametrize("what", BAD_X)
def test_bad_codes_are_refused_when_predicting_and_routing(what):
    X, words = BAD_X[what]
    post = et.Posterior(complete(2), et.Bernoulli())
    refused(lambda: post.tree.route(X), *words)
    refused(lambda: post.predictive(X), *words)
    grow = et.GrowingPosterior([2, 2], et.Bernoulli()).update(GOOD_X, GOOD_Y)
    refused(lambda: grow.predictive(X), *words)


THRESHOLD = {
    "without a missing branch": {"threshold": [0, -1, -1]},
    "with a missing branch": {"threshold": [0, -1, -1], "missing_child": [1, -1, -1]},
}


@pytest.mark.parametrize("value", [-2, -100])
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.float64, list])
@pytest.mark.parametrize("kind", THRESHOLD)
def test_negative_codes_are_not_large_ones(kind, dtype, value):
    """A threshold split takes any code there is, so nothing but the sign is wrong here."""
    tree = et.MetaTree.from_arrays([0, -1, -1], [1, -1, -1], [2, 0, 0], **THRESHOLD[kind])
    X = [[0], [value]] if dtype is list else np.array([[0], [value]], dtype=dtype)
    refused(lambda: tree.route(X), "X", "column 0", "row 1", str(value))
    if "without" in kind:
        minus_one = [[0], [-1]] if dtype is list else np.array([[0], [-1]], dtype=dtype)
        refused(lambda: tree.route(minus_one), "X", "column 0", "row 1", "-1")


# ---- targets -----------------------------------------------------------------------------------------------------

OUTSIDE = {
    "bernoulli": [-1, 3, 0.5, NAN, INF, -INF],
    "categorical": [-1, 3, 0.5, NAN, INF],
    "poisson": [-1, 0.5, NAN, INF, 1e300],
    "exponential": [-0.25, NAN, INF, -INF],
    "geometric": [-1, 0.5, NAN, INF, 1e300],
    "normal": [NAN, INF, -INF, 1e300],
    "linear": [NAN, INF, -INF, 1e300],
    "lognormal": [0.0, -1.0, NAN, INF, 1e300],
}


def spelled(value: float) -> str:
    """As a person would write it."""
    return str(int(value)) if abs(value) < 1e15 and value == int(value) else f"{value:g}"


@doors
@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in OUTSIDE.items() for value in values])
def test_targets_outside_the_support_are_refused(door, name, value):
    case = CASE[name]
    y, row_data = case.draw(rng_for("support", name), 4)
    y = y.astype(float)
    y[PLACE] = value
    assert_refuses(door, case, [f"y[{PLACE}]", spelled(value)], GOOD_X, y, **row_data)


BAD_Y = {
    "None": (None, ["y"]),
    "a number": (1, ["y", "()"]),
    "a string": ("yes", ["y"]),
    "strings": (["a", "b", "a", "b"], ["y"]),
    "digits as strings": (["0", "1", "1", "0"], ["y"]),
    "two axes": (GOOD_Y[:, None], ["y", "(4, 1)"]),
    "too short": (GOOD_Y[:3], ["y", "3", "4"]),
    "too long": (np.zeros(5), ["y", "5", "4"]),
    "empty": ([], ["y", "0", "4"]),
    "None inside": ([0, 1, None, 0], ["y"]),
    "lists of different lengths": ([[0], [1, 0], [1], [0]], ["y"]),
    "complex": (GOOD_Y.astype(complex), ["y", "complex128"]),
    "datetimes": (GOOD_Y.astype("datetime64[s]"), ["y", "datetime64[s]"]),
    "objects": (GOOD_Y.astype(object), ["y", "object"]),
}


@doors
@pytest.mark.parametrize("what", BAD_Y)
def test_columns_of_targets_that_are_none_are_refused(door, what):
    y, words = BAD_Y[what]
    assert_refuses(door, CASE["bernoulli"], words, GOOD_X, y)


@pytest.mark.parametrize("value", [1e-9, 0.1234567, 1e300, 123456.75])
def test_the_value_in_a_message_is_the_value(value):
    post = et.Posterior(complete(2), et.Bernoulli())
    message = refused(lambda: post.update(GOOD_X, [0, 1, value, 0]), f"y[{PLACE}]")
    said = re.search(r"is (\S+), but", message)
    assert said, message
    assert float(said[1]) == pytest.approx(value, rel=1e-5), message
    assert len(said[1]) < 30, message


# ---- weights and row data ----------------------------------------------------------------------------------------

BAD_WEIGHT = {
    "a number": (1.0, ["sample_weight", "()"]),
    "too short": (np.ones(3), ["sample_weight", "3", "4"]),
    "too long": (np.ones(5), ["sample_weight", "5", "4"]),
    "two axes": (np.ones((4, 1)), ["sample_weight", "(4, 1)"]),
    "negative": ([1, 1, -0.5, 1], [f"sample_weight[{PLACE}]", "-0.5"]),
    "slightly negative": ([1, 1, -1e-12, 1], [f"sample_weight[{PLACE}]", "-1e-12"]),
    "NaN": ([1, 1, NAN, 1], [f"sample_weight[{PLACE}]", "nan"]),
    "infinite": ([1, 1, INF, 1], [f"sample_weight[{PLACE}]", "inf"]),
    "strings": (["a", "b", "c", "d"], ["sample_weight"]),
    "None inside": ([1, 1, None, 1], ["sample_weight"]),
    "lists of different lengths": ([[1], [1, 1], [1], [1]], ["sample_weight"]),
    "datetimes": (np.ones(4).astype("datetime64[s]"), ["sample_weight"]),
}


@doors
@pytest.mark.parametrize("what", BAD_WEIGHT)
def test_bad_weights_are_refused(door, what):
    weight, words = BAD_WEIGHT[what]
    assert_refuses(door, CASE["bernoulli"], words, GOOD_X, GOOD_Y, weight)


TABLE = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0], [1.0, 3.0]])


def with_input(value: float) -> np.ndarray:
    table = TABLE.copy()
    table[PLACE, 1] = value
    return table


BAD_ROW_DATA = [
    ("bernoulli", {"exposure": np.ones(4)}, ["Bernoulli", "exposure"]),
    ("bernoulli", {"weights": np.ones(4)}, ["Bernoulli", "weights"]),
    ("poisson", {"exposures": np.ones(4)}, ["Poisson", "exposures", "exposure"]),
    ("poisson", {"exposure": np.ones(4), "censored": np.ones(4)}, ["Poisson", "censored"]),
    ("poisson", {"exposure": 1.0}, ["exposure", "()"]),
    ("poisson", {"exposure": np.ones(3)}, ["exposure", "3", "4"]),
    ("poisson", {"exposure": np.ones(5)}, ["exposure", "5", "4"]),
    ("poisson", {"exposure": []}, ["exposure", "0", "4"]),
    ("poisson", {"exposure": np.ones((4, 1))}, ["exposure", "(4, 1)"]),
    ("poisson", {"exposure": ["a"] * 4}, ["exposure"]),
    ("poisson", {"exposure": [1, 1, 0, 1]}, [f"exposure[{PLACE}]", "0"]),
    ("poisson", {"exposure": [1, 1, -2.5, 1]}, [f"exposure[{PLACE}]", "-2.5"]),
    ("poisson", {"exposure": [1, 1, NAN, 1]}, [f"exposure[{PLACE}]", "nan"]),
    ("poisson", {"exposure": [1, 1, INF, 1]}, [f"exposure[{PLACE}]", "inf"]),
    ("exponential", {"censored": [0, 1, 3, 0]}, [f"censored[{PLACE}]", "3"]),
    ("exponential", {"censored": [0, 1, -1, 0]}, [f"censored[{PLACE}]", "-1"]),
    ("exponential", {"censored": [0, 1, 0.5, 0]}, [f"censored[{PLACE}]", "0.5"]),
    ("exponential", {"censored": [0, 1, NAN, 0]}, [f"censored[{PLACE}]", "nan"]),
    ("exponential", {"censored": [0, 1, 0]}, ["censored", "3", "4"]),
    ("exponential", {"censored": ["yes", "no", "no", "no"]}, ["censored"]),
    ("linear", {}, ["inputs", "2"]),
    ("linear", {"inputs": None}, ["inputs", "2"]),
    ("linear", {"inputs": np.ones(4)}, ["inputs", "(4,)"]),
    ("linear", {"inputs": np.ones((4, 3))}, ["inputs", "(4, 3)"]),
    ("linear", {"inputs": np.ones((4, 1))}, ["inputs", "(4, 1)"]),
    ("linear", {"inputs": np.ones((3, 2))}, ["inputs", "3", "4"]),
    ("linear", {"inputs": with_input(NAN)}, [f"inputs[{PLACE}", "nan"]),
    ("linear", {"inputs": with_input(INF)}, [f"inputs[{PLACE}", "inf"]),
    ("linear", {"inputs": TABLE.astype(str)}, ["inputs"]),
    ("linear", {"inputs": [[1, 0], [1], [1, 2], [1, 3]]}, ["inputs"]),
    ("linear", {"inputs": TABLE, "exposure": np.ones(4)}, ["LinearRegression", "exposure"]),
]
row_data_cases = pytest.mark.parametrize(
    ("name", "row_data", "words"), BAD_ROW_DATA, ids=lambda value: str(value) if isinstance(value, dict) else None
)


@doors
@row_data_cases
def test_bad_row_data_are_refused(door, name, row_data, words):
    y, _ = CASE[name].draw(rng_for("row data", name), 4)
    assert_refuses(door, CASE[name], words, GOOD_X, y, **row_data)


@pytest.mark.parametrize("door", DOORS[:2], ids=str)
@row_data_cases
def test_bad_row_data_are_refused_when_predicting(door, name, row_data, words):
    post = door.seasoned(CASE[name])[0]
    refused(lambda: post.predictive(GOOD_X, **row_data).mean(), *words)


class Counts(et.Family):
    """Bernoulli(1/2, 1/2) in Python, with a column that it does not look at."""

    n_statistics = 2
    row_data = ("note",)

    def statistics(self, y, weight, note=None):
        return np.stack([weight * (y == 0), weight * (y == 1)], axis=1)

    def log_evidence(self, statistics):
        return et.Bernoulli().log_evidence(statistics)

    def predictive(self, statistics, note=None):
        return et.Bernoulli().predictive(statistics)


OWN = (
    [pytest.param({"X": X}, words, id=f"X: {what}") for what, (X, words) in BAD_X.items()]
    + [pytest.param({"y": y}, words, id=f"y: {w}") for w, (y, words) in BAD_Y.items() if w in ("two axes", "too long")]
    + [pytest.param({"sample_weight": v}, words, id=f"weight: {what}") for what, (v, words) in BAD_WEIGHT.items()]
    + [pytest.param({"note": note}, ["note"], id=f"note: {note}") for note in (1.0, [1.0, 2.0, 3.0])]
    + [pytest.param({"remark": np.ones(4)}, ["Counts", "remark"], id="unknown row data")]
)


@pytest.mark.parametrize(("bad", "words"), OWN)
@pytest.mark.parametrize("together", [False, True], ids=["update", "update_all"])
def test_a_family_of_ones_own_is_guarded_too(together, bad, words):
    posts = [et.Posterior(complete(2), Counts()).update(GOOD_X, GOOD_Y) for _ in range(2)]
    before = [state(post) for post in posts]
    rows = {"X": GOOD_X, "y": GOOD_Y} | bad
    refused(lambda: et.update_all(posts, **rows) if together else posts[0].update(**rows), *words)
    assert [state(post) for post in posts] == before


# ---- the bad row comes late --------------------------------------------------------------------------------------

N_ROWS, LATE = 50_000, 49_990


def late_rows(case: Case, depth: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    rng = rng_for("late", case, depth)
    X = rng.integers(0, 2, (N_ROWS, depth)).astype(np.uint8)
    y, row_data = case.draw(rng, N_ROWS)
    return X, y.astype(float), rng.uniform(0.0, 2.0, N_ROWS), row_data


def assert_late_rows_are_refused(door: Door, case: Case, depth: int, words: list[str], spoil) -> None:
    rows = late_rows(case, depth)
    X, y, weight, row_data = spoil(*rows) or rows
    posts = door.seasoned(case, depth)
    before = [state(post) for post in posts]
    options = [{"n_jobs": n} for n in (1, 2, 5)] if door.has_n_jobs else [{}, {}]
    messages = [
        refused(lambda more=more: door.update(posts, X, y, weight, **row_data, **more), *words) for more in options
    ]
    assert len(set(messages)) == 1, messages
    assert [state(post) for post in posts] == before


depths = pytest.mark.parametrize("depth", [2, 13], ids=lambda d: f"{2 ** (d + 1) - 1} nodes")


@doors
@depths
@families
def test_a_late_bad_target_changes_nothing(case, depth, door):
    def spoil(X, y, weight, row_data):
        y[LATE] = NAN

    assert_late_rows_are_refused(door, case, depth, [f"y[{LATE}]", "nan"], spoil)


@doors
@depths
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int64])
def test_a_late_bad_code_changes_nothing(dtype, depth, door):
    def spoil(X, y, weight, row_data):
        X[LATE, 1] = 7
        return X.astype(dtype), y, weight, row_data

    words = ["X", "column 1", f"row {LATE}", "7", "0..1"]
    assert_late_rows_are_refused(door, CASE["bernoulli"], depth, words, spoil)


@doors
@depths
def test_a_late_bad_weight_changes_nothing(depth, door):
    def spoil(X, y, weight, row_data):
        weight[LATE] = -1.0

    assert_late_rows_are_refused(door, CASE["normal"], depth, [f"sample_weight[{LATE}]", "-1"], spoil)


@doors
@depths
@pytest.mark.parametrize(
    ("name", "argument"), [("poisson", "exposure"), ("exponential", "censored"), ("linear", "inputs")]
)
def test_late_bad_row_data_change_nothing(name, argument, depth, door):
    def spoil(X, y, weight, row_data):
        row_data[argument] = row_data[argument].astype(float)
        row_data[argument][LATE] = -3.0 if argument != "inputs" else NAN

    words = [f"{argument}[{LATE}", "nan" if argument == "inputs" else "-3"]
    assert_late_rows_are_refused(door, CASE[name], depth, words, spoil)


@doors
def test_of_several_bad_rows_the_first_is_named(door):
    def spoil(X, y, weight, row_data):
        y[[20_000, 30_000, LATE]] = 5

    assert_late_rows_are_refused(door, CASE["bernoulli"], 2, ["y[20000]", "5"], spoil)


# ---- priors ------------------------------------------------------------------------------------------------------

INNER = [0.5, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0]
BAD_SPLIT_PRIOR = {
    "negative": (-0.1, ["split_prior", "-0.1"]),
    "above one": (1.1, ["split_prior", "1.1"]),
    "NaN": (NAN, ["split_prior", "nan"]),
    "infinite": (INF, ["split_prior", "inf"]),
    "None": (None, ["split_prior"]),
    "a word": ("half", ["split_prior", "half"]),
    "a dictionary": ({}, ["split_prior"]),
    "too short": (INNER[:6], ["split_prior", "6", "7"]),
    "too long": ([*INNER, 0.0], ["split_prior", "8", "7"]),
    "two axes": ([INNER], ["split_prior", "7"]),
    "one node out of range": ([0.5, -0.5, 0.5, 0, 0, 0, 0], ["split_prior[1]", "-0.5"]),
    "one node NaN": ([0.5, NAN, 0.5, 0, 0, 0, 0], ["split_prior[1]", "nan"]),
    "not zero at a terminal": ([*INNER[:5], 0.25, 0], ["split_prior[5]", "0.25", "node 5"]),
    "a function above one": (lambda depth: 1.0 + depth, ["split_prior", "2.0"]),
    "a function below zero": (lambda depth: 0.5 - depth, ["split_prior", "-0.5"]),
    "a function that is NaN": (lambda depth: NAN, ["split_prior", "nan"]),
    "a function that returns a word": (lambda depth: "half", ["split_prior", "half"]),
    "a function that returns nothing": (lambda depth: None, ["split_prior", "None"]),
}


@pytest.mark.parametrize("what", BAD_SPLIT_PRIOR)
def test_bad_split_priors_are_refused(what):
    split_prior, words = BAD_SPLIT_PRIOR[what]
    refused(lambda: et.Posterior(complete(2), et.Bernoulli(), split_prior), *words)
    refused(lambda: et.GenerativeModel(complete(2), et.Bernoulli(), split_prior), *words)


@pytest.mark.parametrize("what", [w for w, (value, _) in BAD_SPLIT_PRIOR.items() if not isinstance(value, list)])
def test_bad_split_priors_are_refused_where_there_are_no_nodes_yet(what):
    split_prior, words = BAD_SPLIT_PRIOR[what]
    refused(lambda: et.GrowingPosterior([2, 2], et.Bernoulli(), split_prior), *words)
    refused(lambda: et.GrowingPosterior([2, 2], et.Bernoulli(), INNER), "split_prior")


def test_a_function_of_depth_is_asked_about_inner_nodes_alone():
    of_depth = [0.9, 0.4]
    post = et.Posterior(complete(2), et.Bernoulli(), lambda depth: of_depth[depth])
    assert post.split_prior.tolist() == [0.9, 0.4, 0.4, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((1.5, 1), ["alpha", "1.5"]),
        ((-0.5, 1), ["alpha", "-0.5"]),
        ((NAN, 1), ["alpha", "nan"]),
        (("a", 1), ["alpha"]),
        ((0.5, -1), ["beta", "-1"]),
        ((0.5, NAN), ["beta", "nan"]),
        ((0.5, None), ["beta"]),
    ],
)
def test_bad_depth_priors_are_refused(arguments, words):
    refused(lambda: et.depth_prior(*arguments), *words)


POSITIVE = [
    (et.Bernoulli, {}, ["alpha", "beta"]),
    (et.Categorical, {"n_classes": 3}, ["alpha"]),
    (et.Poisson, {}, ["shape", "rate"]),
    (et.Exponential, {}, ["shape", "rate"]),
    (et.Geometric, {}, ["alpha", "beta"]),
    (et.Normal, {}, ["strength", "shape", "scale"]),
    (et.LinearRegression, {"n_inputs": 2}, ["precision", "shape", "scale"]),
]
FINITE = [(et.Normal, {}, ["mean"]), (et.LinearRegression, {"n_inputs": 2}, ["mean"])]


def each(table: list[tuple[type, dict[str, int], list[str]]]) -> list[Any]:
    return [
        pytest.param(family, needed, name, id=f"{family.__name__}.{name}")
        for family, needed, names in table
        for name in names
    ]


@pytest.mark.parametrize("value", [0, -1.5, NAN, INF, None, "much", [], 1j, {}], ids=repr)
@pytest.mark.parametrize(("family", "needed", "name"), each(POSITIVE))
def test_hyperparameters_must_be_positive(family, needed, name, value):
    refused(lambda: family(**needed, **{name: value}), name)


@pytest.mark.parametrize("value", [NAN, INF, None, "much", [], 1j, {}], ids=repr)
@pytest.mark.parametrize(("family", "needed", "name"), each(FINITE))
def test_hyperparameters_must_be_finite(family, needed, name, value):
    refused(lambda: family(**needed, **{name: value}), name)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: et.Bernoulli([0.5, -0.5], 1.0), ["alpha[1]", "-0.5"]),
        (lambda: et.Bernoulli([1, 2, 3], [1, 2]), ["alpha", "beta", "3", "2"]),
        (lambda: et.Bernoulli([[1.0, 2.0]], 1.0), ["alpha", "(1, 2)"]),
        (lambda: et.Poisson(np.ones((2, 2)), 1.0), ["shape", "(2, 2)"]),
        (lambda: et.Normal(0.0, np.ones((2, 2))), ["strength", "(2, 2)"]),
        (lambda: et.Categorical(3, [1, 2]), ["alpha", "3", "(2,)"]),
        (lambda: et.Categorical(3, [1, 2, 0]), ["alpha[2]", "0.0"]),
        (lambda: et.Categorical(3, np.ones((2, 2))), ["alpha", "(2, 2)"]),
        (lambda: et.LinearRegression(2, [[1, 0.5], [0, 1]]), ["precision", "symmetric"]),
        (lambda: et.LinearRegression(2, [[1, 2], [2, 1]]), ["precision", "positive definite"]),
        (lambda: et.LinearRegression(2, np.eye(3)), ["precision", "(3, 3)"]),
        (lambda: et.LinearRegression(2, mean=[1, 2, 3]), ["mean", "(3,)"]),
        (lambda: et.LinearRegression(2, shape=np.ones((2, 2))), ["shape", "(2, 2)"]),
        (lambda: et.LinearRegression(2, shape=[1, 1], scale=[1, 1, 1]), ["shape", "2", "3"]),
        (lambda: et.Posterior(complete(2), et.Bernoulli([1, 2, 3], 1)), ["Bernoulli", "3", "7"]),
        (lambda: et.Posterior(complete(2), et.LinearRegression(1, shape=[1, 2])), ["LinearRegression", "2", "7"]),
        (lambda: et.GrowingPosterior([2, 2], et.Bernoulli([1, 2], 1)), ["one", "prior"]),
        (lambda: et.Posterior("a tree", et.Bernoulli()), ["tree", "str"]),
        (lambda: et.Posterior(complete(2), "Bernoulli"), ["family", "Bernoulli"]),
        (lambda: et.Posterior(complete(2), et.Bernoulli), ["family"]),
        (lambda: et.GrowingPosterior([2, 2], "Bernoulli"), ["family", "Bernoulli"]),
        (lambda: et.GenerativeModel(complete(2), "Bernoulli"), ["family", "Bernoulli"]),
        (lambda: et.GenerativeModel("a tree", et.Bernoulli()), ["tree", "str"]),
    ],
)
def test_hyperparameters_that_do_not_fit_are_refused(build, words):
    refused(build, *words)


@pytest.mark.parametrize("value", [0, -1, 2.5, True, None, "3", NAN, INF, [3]], ids=repr)
@pytest.mark.parametrize(
    ("name", "build"),
    [
        ("n_classes", et.Categorical),
        ("n_inputs", et.LinearRegression),
    ],
)
def test_sizes_of_families_are_whole_numbers(name, build, value):
    refused(lambda: build(value), name)


@pytest.mark.parametrize("value", [-1, 2.5, True, None, "a", NAN, INF, 2**63], ids=repr)
def test_seeds_are_whole_numbers(value):
    refused(lambda: et.GrowingPosterior([2, 2], et.Bernoulli(), seed=value), "seed")


@pytest.mark.parametrize("value", [2, [0, 2], [2, -1], [2.0, 2.0], "ab", None, [[2]], [70_000], [2**32 + 2]], ids=repr)
def test_sizes_of_features_are_whole_numbers(value):
    refused(lambda: et.GrowingPosterior(value, et.Bernoulli()), "n_children")


def test_a_feature_out_of_range_is_refused():
    refused(lambda: et.MetaTree.complete([0, 1, 5], n_features=2), "features[2]", "5", "0..1")
    refused(lambda: et.MetaTree.complete([0, 1, 5], [2, 2]), "features[2]", "5", "0..1")
    arrays = ([5, -1, -1], [1, -1, -1], [2, 0, 0])
    refused(lambda: et.MetaTree.from_arrays(*arrays, n_features=2), "node 0", "feature", "5", "0..1")


# ---- merging -----------------------------------------------------------------------------------------------------


def growing(n_children=(2, 2), family=None, **options) -> et.GrowingPosterior:
    return et.GrowingPosterior(list(n_children), family or et.Bernoulli(), **options).update(GOOD_X, GOOD_Y)


def fixed(tree=None, family=None, split_prior=0.5) -> et.Posterior:
    return et.Posterior(tree or complete(2), family or et.Bernoulli(), split_prior).update(GOOD_X, GOOD_Y)


UNLIKE = [
    pytest.param(fixed, lambda: fixed(complete(2, shift=1)), ["other", "meta-tree"], id="tree"),
    pytest.param(fixed, lambda: fixed(et.MetaTree.complete([0, 1, 1])), ["other", "meta-tree"], id="declared width"),
    pytest.param(fixed, lambda: fixed(family=et.Poisson()), ["other", "Poisson"], id="family"),
    pytest.param(fixed, lambda: fixed(family=et.Bernoulli(1, 2)), ["other", "Bernoulli"], id="hyperparameters"),
    pytest.param(fixed, lambda: fixed(family=et.Categorical(2)), ["other", "Categorical"], id="equal in law only"),
    pytest.param(fixed, lambda: fixed(split_prior=0.4), ["other", "split_prior"], id="split prior"),
    pytest.param(fixed, growing, ["other", "GrowingPosterior"], id="growing into fixed"),
    pytest.param(fixed, lambda: None, ["other", "NoneType"], id="None"),
    pytest.param(growing, fixed, ["other", "Posterior"], id="fixed into growing"),
    pytest.param(growing, lambda: growing((2, 3)), ["other", "n_children", "[2, 3]"], id="n_children"),
    pytest.param(growing, lambda: growing(seed=1), ["other", "seed", "1"], id="seed"),
    pytest.param(growing, lambda: growing(family=et.Bernoulli(1, 2)), ["other", "Bernoulli"], id="growing family"),
    pytest.param(growing, lambda: growing(split_prior=0.4), ["other", "split_prior"], id="growing split prior"),
]


@pytest.mark.parametrize(("build", "unlike", "words"), UNLIKE)
def test_merging_what_does_not_belong_together_is_refused(build, unlike, words):
    post, other = build(), unlike()
    before = state(post)
    refused(lambda: post.merge(other), *words)
    assert state(post) == before


@pytest.mark.parametrize(
    ("posteriors", "words"),
    [
        (lambda: [fixed(), fixed(family=et.Poisson())], ["posteriors[1]", "Poisson"]),
        (lambda: [fixed(), fixed(family=et.Categorical(2))], ["posteriors[1]", "Categorical"]),
        (lambda: [fixed(), growing()], ["posteriors[1]", "GrowingPosterior"]),
        (lambda: [fixed(), None], ["posteriors[1]", "NoneType"]),
        (lambda: [post := fixed(), post], ["posteriors[1]", "twice"]),
        (lambda: [fixed(), fixed(et.MetaTree.complete([1, 0, 0])), fixed(et.MetaTree.complete([1]))], None),
    ],
)
def test_update_all_refuses_posteriors_that_do_not_go_together(posteriors, words):
    posts = posteriors()
    if words is None:  # widths differ, but all of them read this table
        et.update_all(posts, GOOD_X, GOOD_Y)
        return
    before = [state(post) for post in posts if post is not None]
    refused(lambda: et.update_all(posts, GOOD_X, GOOD_Y), *words)
    assert [state(post) for post in posts if post is not None] == before


def test_update_all_refuses_a_table_that_one_of_the_trees_cannot_read():
    narrow, wide = fixed(et.MetaTree.complete([1, 0, 0])), et.Posterior(complete(3), et.Bernoulli())
    choosy = et.Posterior(et.MetaTree.complete([0, 1, 1], 2, n_features=3), et.Bernoulli())
    for posts in ([narrow, wide], [wide, narrow]):
        before = [state(post) for post in posts]
        refused(lambda posts=posts: et.update_all(posts, GOOD_X, GOOD_Y), "X", "2", "3")
        assert [state(post) for post in posts] == before
    larger = et.Posterior(et.MetaTree.complete([0], 3, n_features=3), et.Bernoulli())
    X = np.array([[2, 0, 0], [1, 1, 1]], dtype=np.uint8)  # code 2 of column 0 is news to the others
    for posts in ([larger, choosy], [choosy, larger]):
        before = [state(post) for post in posts]
        refused(lambda posts=posts: et.update_all(posts, X, [0, 1]), "X", "column 0", "row 0", "2")
        assert [state(post) for post in posts] == before


@pytest.mark.parametrize("n_jobs", [0, 1.5, "2", True, NAN, [1]], ids=repr)
def test_bad_n_jobs_are_refused(n_jobs):
    post = fixed()
    before = state(post)
    refused(lambda: post.update(GOOD_X, GOOD_Y, n_jobs=n_jobs), "n_jobs")
    refused(lambda: et.update_all([post], GOOD_X, GOOD_Y, n_jobs=n_jobs), "n_jobs")
    refused(lambda: post.predictive(GOOD_X, n_jobs=n_jobs), "n_jobs")
    refused(lambda: post.tree.route(GOOD_X, n_jobs=n_jobs), "n_jobs")
    assert state(post) == before


@doors
def test_bad_targets_are_refused_when_predicting(door):
    dist = door.seasoned(CASE["bernoulli"])[0].predictive(GOOD_X)
    refused(lambda: dist.log_prob(GOOD_Y[:3]), "y", "3", "4")
    refused(lambda: dist.log_prob(np.zeros((4, 3))), "y", "3", "4")
    refused(lambda: dist.log_prob(["a"] * 4), "y")
    refused(lambda: dist.log_prob(None), "y")


# ---- unusual, but right ------------------------------------------------------------------------------------------


@doors
@families
def test_no_rows_change_nothing(case, door):
    posts = door.seasoned(case)
    before = [state(post) for post in posts]
    y, row_data = case.draw(rng_for("none"), 4)
    nothing = slice(0, 0)
    for X in (GOOD_X[:0], np.empty((0, 2)), np.empty((0, 2), dtype=np.int64)):
        door.update(posts, X, y[:0], **take(row_data, nothing))
        door.update(posts, X, [], [], **take(row_data, nothing))
    assert [state(post) for post in posts] == before
    dist = posts[0].predictive(GOOD_X[:0], **take(row_data, nothing))
    assert len(dist) == len(dist.mean()) == len(dist.variance()) == len(dist.log_prob([])) == 0


@doors
@families
def test_rows_of_weight_zero_count_as_absent(case, door):
    y, row_data = case.draw(rng_for("absent"), 4)
    posts = door.seasoned(case)
    before = [state(post) for post in posts]
    door.update(posts, GOOD_X, y, np.zeros(4), **row_data)
    assert [state(post) for post in posts] == before
    some, without = door.seasoned(case), door.seasoned(case)
    present = np.array([True, False, True, False])
    door.update(some, GOOD_X, y, present.astype(float), **row_data)
    door.update(without, GOOD_X[present], y[present], **take(row_data, present))
    assert [state(post) for post in some] == [state(post) for post in without]


@families
def test_a_tree_of_one_node_is_its_leaf(case):
    y, row_data = case.draw(rng_for("one node", case), 30)
    X = np.zeros((30, 3), dtype=np.uint8)
    post = et.Posterior(et.MetaTree.complete([]), case.family).update(X, y, **row_data)
    statistics = case.family.statistics(y, None, **row_data)
    expected = case.family.log_evidence(statistics.sum(axis=0, keepdims=True))[0]
    assert post.log_evidence == pytest.approx(expected, rel=1e-10)
    assert post.split_prob.tolist() == [0.0]
    grow = et.GrowingPosterior([1, 1, 1], case.family).update(X, y, **row_data)
    assert grow.log_evidence == pytest.approx(expected, rel=1e-10)
    empty = et.GrowingPosterior([], case.family).update(X[:, :0], y, **row_data)
    assert empty.log_evidence == pytest.approx(expected, rel=1e-10)


READABLE = {
    "uint16": lambda v: v.astype(np.uint16),
    "int8": lambda v: v.astype(np.int8),
    "int32": lambda v: v.astype(np.int32),
    "int64": lambda v: v.astype(np.int64),
    "uint64": lambda v: v.astype(np.uint64),
    "bool": lambda v: v.astype(bool),
    "float16": lambda v: v.astype(np.float16),
    "float32": lambda v: v.astype(np.float32),
    "float64": lambda v: v.astype(np.float64),
    "longdouble": lambda v: v.astype(np.longdouble),
    "big-endian": lambda v: v.astype(">i4"),
    "lists": lambda v: v.tolist(),
    "lists of floats": lambda v: v.astype(float).tolist(),
    "tuples": lambda v: tuple(map(tuple, v)) if v.ndim == 2 else tuple(v),
    "Fortran": np.asfortranarray,
    "memoryview": memoryview,
}


@doors
@pytest.mark.parametrize("kind", READABLE)
def test_numbers_of_every_kind_are_read_alike(door, kind):
    rng = rng_for("kinds")
    X, y, weight = (rng.integers(0, 2, shape).astype(np.uint8) for shape in ((40, 2), 40, 40))
    expected, got = door.seasoned(CASE["bernoulli"]), door.seasoned(CASE["bernoulli"])
    door.update(expected, X, y, weight)
    door.update(got, READABLE[kind](X), READABLE[kind](y), READABLE[kind](weight))
    assert [state(post) for post in got] == [state(post) for post in expected]


@doors
def test_read_only_and_strided_rows_are_read_where_they_lie(door):
    rng = rng_for("lie")
    X, y, weight = (rng.integers(0, 2, shape) for shape in ((80, 4), 80, 80))
    expected, got = door.seasoned(CASE["bernoulli"]), door.seasoned(CASE["bernoulli"])
    door.update(expected, X[::2, ::3].copy(), y[::2].copy(), weight[::2].copy())
    for array in (X, y, weight):
        array.flags.writeable = False
    door.update(got, X[::2, ::3], y[::2], weight[::2])
    assert [state(post) for post in got] == [state(post) for post in expected]


def test_a_tree_of_undeclared_width_learns_from_wider_tables():
    rng = rng_for("wider")
    tree = et.MetaTree.complete([0, 1, 1])
    X, y = rng.integers(0, 2, (50, 2)), rng.integers(0, 2, 50)
    expected = et.Posterior(tree, et.Bernoulli()).update(X, y)
    for rest in (-5, 70_000, 3):
        wider = np.column_stack([X, np.full(50, rest)])
        for table, targets in ((wider, y), (wider, y.tolist()), (wider.tolist(), y), (np.asfortranarray(wider), y)):
            assert_same(et.Posterior(tree, et.Bernoulli()).update(table, targets), expected)
            et.update_all([post := et.Posterior(tree, et.Bernoulli())], table, targets)
            assert_same(post, expected)


TREES = {
    "a narrow and a wide one": [([0], {}), ([2], {}), ([1], {})],
    "a missing branch in one of them": [([2], {}), ([0], {"missing_child": [2]}), ([1], {})],
    "two kinds of threshold": [
        ([0], {"threshold": [0]}),
        ([0], {"threshold": [0], "missing_child": [2]}),
        ([0], {"threshold": [0], "missing_child": [0]}),
    ],
}
WRITTEN = {
    "uint8": lambda X: X.astype(np.uint8),
    "uint8, Fortran": lambda X: np.asfortranarray(X.astype(np.uint8)),
    "uint16": lambda X: np.where(X < 0, 65535, X).astype(np.uint16),
    "int8": lambda X: X.astype(np.int8),
    "int64": np.asarray,
    "list": np.ndarray.tolist,
}


@pytest.mark.parametrize("order", [1, -1], ids=["given order", "other order"])
@pytest.mark.parametrize("written", WRITTEN)
@pytest.mark.parametrize("trees", TREES)
def test_update_all_is_an_update_of_each(trees, written, order):
    """Whatever the trees know of the table: each of them is asked in its own words."""
    rng = rng_for("each", trees)
    X, y = rng.integers(0, 2, (300, 3)), rng.integers(0, 2, 300)
    X[::7, 0] = -1 if any("missing_child" in options for _, options in TREES[trees]) else 0
    table = WRITTEN[written](X)

    def build() -> list[et.Posterior]:
        posts = []
        for features, options in TREES[trees][::order]:
            n = 3 if options.get("missing_child") == [2] else 2
            arrays = {name: values + [-1] * n for name, values in options.items()}
            tree = et.MetaTree.from_arrays(features + [-1] * n, [1] + [-1] * n, [n] + [0] * n, **arrays)
            posts.append(et.Posterior(tree, et.Bernoulli()))
        return posts

    each, together = build(), build()
    outcomes = set()
    for post in each:
        try:
            post.update(table, y)
            outcomes.add("accepted")
        except ValueError:
            outcomes.add("refused")
    if "refused" in outcomes:  # then none of them may change
        with pytest.raises(ValueError, match="X"):
            et.update_all(together, table, y)
        each = build()
    else:
        et.update_all(together, table, y)
    for one, other in zip(each, together, strict=True):
        assert_same(one, other)


@pytest.mark.parametrize("n_codes", [255, 256, 257, 300])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int64, np.float64, list])
def test_a_growing_posterior_knows_its_last_code(n_codes, dtype):
    last = min(n_codes, 256 if dtype is np.uint8 else n_codes) - 1
    X = [[last], [0]] if dtype is list else np.array([[last], [0]], dtype=dtype)
    grow = et.GrowingPosterior([n_codes], et.Bernoulli()).update(X, np.array([0, 1]))
    assert grow.points.tolist() == [[last], [0]]
    assert grow.predictive(X).mean().tolist() == grow.predictive(np.array(X, dtype=np.uint16)).mean().tolist()


def test_the_evidence_of_a_hundred_million_rows():
    rng = rng_for("many")
    weight = np.array([30_000_000.0, 20_000_000.0, 10_000_000.0, 40_000_000.0])
    X, y = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=np.uint8), np.array([0, 1, 0, 1])
    alpha, beta = 0.5, 0.75

    def leaf(rows: list[int]) -> float:
        ones, zeros = (weight[rows] * y[rows]).sum(), (weight[rows] * (1 - y[rows])).sum()
        return betaln(alpha + ones, beta + zeros) - betaln(alpha, beta)

    def either(g: float, stop: float, split: float) -> float:
        return np.logaddexp(np.log1p(-g) + stop, np.log(g) + split)

    expected = either(
        0.5,
        leaf([0, 1, 2, 3]),
        either(0.5, leaf([0, 1]), leaf([0]) + leaf([1])) + either(0.5, leaf([2, 3]), leaf([2]) + leaf([3])),
    )
    post = et.Posterior(complete(2), et.Bernoulli(alpha, beta)).update(X, y, weight)
    assert post.log_evidence == pytest.approx(expected, rel=1e-8)  # log gammas of 1e8 are 1e9: half their digits cancel
    pieces = et.Posterior(complete(2), et.Bernoulli(alpha, beta))
    for _ in range(100):
        order = rng.permutation(4)
        pieces.update(X[order], y[order], weight[order] / 100)
    np.testing.assert_allclose(pieces.log_evidence, expected, rtol=1e-8)
    for split_prior in (0.0, 1.0):
        sure = et.Posterior(complete(2), et.Bernoulli(alpha, beta), split_prior).update(X, y, weight)
        parts = [[0, 1, 2, 3]] if split_prior == 0.0 else [[0], [1], [2], [3]]
        assert sure.log_evidence == pytest.approx(sum(map(leaf, parts)), rel=1e-8)


@families
def test_enormous_weights_stay_finite(case):
    y, row_data = case.draw(rng_for("enormous", case), 4)
    post = et.Posterior(complete(2), case.family).update(GOOD_X, y, np.full(4, 1e8 / 4), **row_data)
    for name in ("leaf_log_evidence", "subtree_log_evidence", "split_prob", "statistics"):
        assert np.isfinite(getattr(post, name)).all()
    assert np.isfinite(post.predictive(GOOD_X, **row_data).log_prob(y)).all()


@families
def test_rows_that_are_alike_a_hundred_thousand_times(case):
    """One code table for all rows: every row in one leaf, in one batch or with one weight."""
    rng = rng_for("alike", case)
    tree = complete(2)
    X = np.repeat(random_codes(rng, tree, 1, sizes=2), 100_000, axis=0)
    y, row_data = case.draw(rng, 1)
    many = et.Posterior(tree, case.family).update(
        X, np.repeat(y, len(X)), **{name: np.repeat(values, len(X), axis=0) for name, values in row_data.items()}
    )
    one = et.Posterior(tree, case.family).update(X[:1], y, [1e5], **row_data)
    np.testing.assert_allclose(many.log_evidence, one.log_evidence, rtol=1e-9)
    np.testing.assert_allclose(many.split_prob, one.split_prob, rtol=1e-6)
