"""What posteriors refuse, by name, place and value, at whichever door it comes; a refusal changes nothing."""

from __future__ import annotations

import re

import numpy as np
import pytest

import everytree as et
from cases import CASE, rng_for
from doors import BAD_X, DOORS, GOOD_X, GOOD_Y, PLACE, assert_refuses, complete, doors, state
from refusals import INF, NAN, refused, unchanged

# ---- codes -----------------------------------------------------------------------------------------------------------


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
def test_bad_codes_are_refused_when_predicting(what):
    X, words = BAD_X[what]
    post = et.Posterior(complete(2), et.Bernoulli())
    refused(lambda: post.predictive(X), *words)
    grow = et.GrowingPosterior([2, 2], et.Bernoulli()).update(GOOD_X, GOOD_Y)
    refused(lambda: grow.predictive(X), *words)


# ---- targets ---------------------------------------------------------------------------------------------------------

OUTSIDE = {
    "bernoulli": [-1, 3, 0.5, NAN, INF, -INF],
    "categorical": [-1, 3, 0.5, NAN, INF],
    "poisson": [-1, 0.5, NAN, INF, 1e300],
    "exponential": [-0.25, NAN, INF, -INF],
    "geometric": [-1, 0.5, NAN, INF, 1e300],
    "normal": [NAN, INF, -INF, 1e300],
    "linear": [NAN, INF, -INF, 1e300],
    "histogram": [NAN, INF, -INF, 1e300],
    "lognormal": [0.0, -1.0, NAN, INF, 1e300],
    "gamma": [0.0, -1.0, NAN, INF, 1e300],
    "weibull": [0.0, -1.0, NAN, INF, 1e16],
    "negative_binomial": [-1, 0.5, NAN, INF, 1e300],
    "hurdle_poisson": [-1, 0.5, NAN, INF, 1e300],
    "hurdle_gamma": [-0.25, NAN, INF, 1e300],
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


# ---- weights and row data --------------------------------------------------------------------------------------------

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
    rows = {"X": GOOD_X, "y": GOOD_Y} | bad
    with unchanged(state, *posts):
        refused(lambda: et.update_all(posts, **rows) if together else posts[0].update(**rows), *words)


# ---- priors, and what posteriors are made of -------------------------------------------------------------------------

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


@pytest.mark.parametrize(
    ("build", "words"),
    [
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
def test_what_does_not_fit_a_posterior_is_refused(build, words):
    refused(build, *words)


@pytest.mark.parametrize("value", [-1, 2.5, True, None, "a", NAN, INF, 2**63], ids=repr)
def test_seeds_are_whole_numbers(value):
    refused(lambda: et.GrowingPosterior([2, 2], et.Bernoulli(), seed=value), "seed")


@pytest.mark.parametrize("value", [2, [0, 2], [2, -1], [2.0, 2.0], "ab", None, [[2]], [70_000], [2**32 + 2]], ids=repr)
def test_sizes_of_features_are_whole_numbers(value):
    refused(lambda: et.GrowingPosterior(value, et.Bernoulli()), "n_children")


# ---- several posteriors, several threads -----------------------------------------------------------------------------


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
    with unchanged(state, post):
        refused(lambda: post.merge(other), *words)


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
    with unchanged(state, *(post for post in posts if post is not None)):
        refused(lambda: et.update_all(posts, GOOD_X, GOOD_Y), *words)


def test_update_all_refuses_a_table_that_one_of_the_trees_cannot_read():
    narrow, wide = fixed(et.MetaTree.complete([1, 0, 0])), et.Posterior(complete(3), et.Bernoulli())
    choosy = et.Posterior(et.MetaTree.complete([0, 1, 1], 2, n_features=3), et.Bernoulli())
    for posts in ([narrow, wide], [wide, narrow]):
        with unchanged(state, *posts):
            refused(lambda posts=posts: et.update_all(posts, GOOD_X, GOOD_Y), "X", "2", "3")
    larger = et.Posterior(et.MetaTree.complete([0], 3, n_features=3), et.Bernoulli())
    X = np.array([[2, 0, 0], [1, 1, 1]], dtype=np.uint8)  # code 2 of column 0 is news to the others
    for posts in ([larger, choosy], [choosy, larger]):
        with unchanged(state, *posts):
            refused(lambda posts=posts: et.update_all(posts, X, [0, 1]), "X", "column 0", "row 0", "2")


@pytest.mark.parametrize("n_jobs", [0, 1.5, "2", True, NAN, [1]], ids=repr)
def test_bad_n_jobs_are_refused(n_jobs):
    post = fixed()
    with unchanged(state, post):
        refused(lambda: post.update(GOOD_X, GOOD_Y, n_jobs=n_jobs), "n_jobs")
        refused(lambda: et.update_all([post], GOOD_X, GOOD_Y, n_jobs=n_jobs), "n_jobs")
        refused(lambda: post.predictive(GOOD_X, n_jobs=n_jobs), "n_jobs")
        refused(lambda: post.tree.route(GOOD_X, n_jobs=n_jobs), "n_jobs")


def test_nothing_is_merged_with_itself():
    """Its rows would count twice in silence; a copy says that this is meant."""
    X, y = np.arange(8)[:, None] % 2, np.arange(8) % 2
    post = et.Posterior(et.MetaTree.complete([0]), et.Bernoulli(), 0.5).update(X, y)
    growing = et.GrowingPosterior([2], et.Bernoulli()).update(X, y)
    for one in (post, growing):
        with pytest.raises(ValueError, match=r"itself, whose rows would count twice; merge a copy"):
            one.merge(one)
        assert one.n_rows == 8
        assert one.merge(one.copy()).n_rows == 16
