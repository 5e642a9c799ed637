"""No depth limit: a growing posterior is the posterior over the whole virtual tree, of which it stores little."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import everytree as et
import naive
from cases import Case, examples, families, rng_for, seeds, take

SPLIT_PRIORS: dict[str, float | Callable[[int], float]] = {
    "half": 0.5,
    "never": 0.0,
    "always": 1.0,
    "nearly always": 0.999,
    "falling": et.depth_prior(0.95, 1.0),
    "then never": lambda depth: 0.7 * (depth < 2),
    "then always": lambda depth: 1.0 if depth else 0.3,
    "now and then": lambda depth: (1.0, 0.25, 0.0, 0.5)[depth % 4],
}
split_priors = st.sampled_from(sorted(SPLIT_PRIORS))


def of_depth(split_prior: Any) -> Callable[[int], float]:
    return split_prior if callable(split_prior) else lambda _: split_prior


def virtual_model(grow: et.GrowingPosterior, split_prior: Any) -> tuple[Any, ...]:
    """The arguments that `naive.growing_*` want: sizes, the feature asked on a path, the prior of a depth."""

    def choose(path: naive.Path) -> int:
        feature = grow.feature_at([answer for _, answer in path])
        assert feature is not None
        return feature

    return grow.n_children.tolist(), choose, of_depth(split_prior)


def expanded(grow: et.GrowingPosterior, split_prior: Any) -> et.Posterior:
    """The same model with every virtual node written down, and no data."""
    shape, prior = naive.growing_tree(*virtual_model(grow, split_prior))
    tree = et.MetaTree.from_arrays(shape.feature, shape.first_child, shape.n_children, n_features=len(grow.n_children))
    return et.Posterior(tree, grow.family, np.array(prior, dtype=float))


def codes(rng: np.random.Generator, sizes: Any, n: int) -> np.ndarray:
    return rng.integers(0, sizes, size=(n, len(sizes))).astype(np.uint8)


def setup(case: Case, seed: int, split_prior: str, n: int, sizes: Any = None) -> Any:
    """Random questions, rows for them, and an empty growing posterior."""
    rng = np.random.default_rng(seed)
    if sizes is None:
        sizes = rng.integers(1, 5, size=int(rng.integers(0, 5)))
    X = codes(rng, sizes, n)
    y, row_data = case.draw(rng, n)
    grow = et.GrowingPosterior(sizes.tolist(), case.family, SPLIT_PRIORS[split_prior], seed=int(rng.integers(100)))
    return rng, X, y, row_data, grow


def view(grow: et.GrowingPosterior, X: np.ndarray, y: np.ndarray, row_data: dict[str, Any]) -> dict[str, Any]:
    """Everything a growing posterior says about some rows."""
    dist = grow.predictive(X, **row_data)
    return {
        "log_evidence": grow.log_evidence,
        "mean": dist.mean(),
        "variance": dist.variance(),
        "log_prob": dist.log_prob(y),
        "counts": [grow.n_rows, grow.n_points, grow.n_nodes],
        "points": sorted(map(tuple, grow.points.tolist())),
    }


def assert_same_view(one: dict[str, Any], other: dict[str, Any]) -> None:
    for name in one:
        np.testing.assert_allclose(one[name], other[name], rtol=1e-10, atol=1e-10, err_msg=name)


# ---- the whole virtual tree --------------------------------------------------------------------------------


@families
@given(seed=seeds, prior=split_priors)
@examples(8)
def test_it_is_theorem_1_on_the_virtual_tree(case, seed, prior):
    rng, X, y, row_data, grow = setup(case, seed, prior, n=8, sizes=np.random.default_rng(seed).integers(1, 4, 3))
    weight = rng.choice([0.5, 1.0, 2.0], len(y))
    grow.update(X, y, weight, **row_data)
    model = (*virtual_model(grow, SPLIT_PRIORS[prior]), case.twin, X, y)
    expected = naive.growing_log_evidence(*model, weight, **row_data)
    assert grow.log_evidence == pytest.approx(expected, rel=1e-10, abs=1e-10)
    unseen = codes(rng, grow.n_children, 2)
    y_new, new_data = case.draw(rng, 2)
    log_prob = grow.predictive(unseen, **new_data).log_prob(y_new)
    for i in range(2):
        expected = naive.growing_log_predictive(
            *model, unseen[i], y_new[i], weights=weight, row_data_new=take(new_data, i), **row_data
        )
        assert log_prob[i] == pytest.approx(expected, rel=1e-10, abs=1e-10)


@families
@given(seed=seeds, prior=split_priors, n=st.integers(0, 60))
@examples(25)
def test_it_is_the_posterior_over_the_expanded_meta_tree(case, seed, prior, n):
    """With up to four features of one to four codes, all rows that there can be are predicted too."""
    rng, X, y, row_data, grow = setup(case, seed, prior, n)
    weight = rng.choice([0.0, 0.5, 1.0, 2.0], n)
    post = expanded(grow, SPLIT_PRIORS[prior]).update(X, y, weight, **row_data)
    grow.update(X, y, weight, **row_data)
    assert grow.log_evidence == pytest.approx(post.log_evidence, rel=1e-10, abs=1e-10)
    assert grow.n_rows == post.n_rows

    sizes = grow.n_children.tolist()
    every = np.array(list(np.ndindex(*sizes)), dtype=np.uint8).reshape(int(np.prod(sizes)), len(sizes))
    y_new, new_data = case.draw(rng, len(every))
    one, other = grow.predictive(every, **new_data), post.predictive(every, **new_data)
    np.testing.assert_allclose(one.mean(), other.mean(), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(one.variance(), other.variance(), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(one.log_prob(y_new), other.log_prob(y_new), rtol=1e-10, atol=1e-10)
    if case.name in ("bernoulli", "categorical"):
        np.testing.assert_allclose(one.probs(), other.probs(), rtol=1e-10, atol=1e-10)


@given(seed=seeds)
@examples(20)
def test_every_path_asks_every_feature_of_two_or_more_codes_once(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 5, size=int(rng.integers(0, 8)))
    grow = et.GrowingPosterior(sizes.tolist(), et.Bernoulli(), seed=seed)
    asked, answers = [], []
    while (feature := grow.feature_at(answers)) is not None:
        asked.append(feature)
        answers.append(int(rng.integers(sizes[feature])))
    assert sorted(asked) == np.flatnonzero(sizes > 1).tolist()


def test_the_seed_and_the_answers_choose_the_questions():
    one, same, other = (et.GrowingPosterior([2] * 12, et.Bernoulli(), seed=seed) for seed in (1, 1, 2))
    paths = [tuple(int(bit) for bit in np.binary_repr(i, 6)) for i in range(64)]
    asked = [one.feature_at(path) for path in paths]
    assert asked == [same.feature_at(path) for path in paths]
    assert asked != [other.feature_at(path) for path in paths]
    assert len(set(asked)) > 1


# ---- laws --------------------------------------------------------------------------------------------------


@families
@given(seed=seeds, prior=split_priors, width=st.integers(1, 12))
@examples(12)
def test_one_batch_is_row_by_row_is_any_order_is_shards_merged(case, seed, prior, width):
    sizes = np.random.default_rng(seed).integers(1, 4, width)
    rng, X, y, row_data, empty = setup(case, seed, prior, 40, sizes)
    X[rng.random(40) < 0.3] = X[0]  # some rows equal
    weight = rng.choice([0.0, 0.5, 1.0, 2.0], 40)
    X_new = np.vstack([X[:10], codes(rng, sizes, 10)])
    y_new, new_data = case.draw(rng, 20)
    batch = view(empty.copy().update(X, y, weight, **row_data), X_new, y_new, new_data)

    one_by_one, merged, order = empty.copy(), empty.copy(), rng.permutation(40)
    for i in range(40):
        one_by_one.update(X[i : i + 1], y[i : i + 1], weight[i : i + 1], **take(row_data, slice(i, i + 1)))
    shuffled = empty.copy().update(X[order], y[order], weight[order], **take(row_data, order))
    shards = rng.integers(0, 7, 40)
    for s in rng.permutation(7):
        mine = shards == s
        merged.merge(empty.copy().update(X[mine], y[mine], weight[mine], **take(row_data, mine)))
    for grow in (one_by_one, shuffled, merged):
        assert_same_view(view(grow, X_new, y_new, new_data), batch)


@families
@given(seed=seeds, prior=split_priors)
@examples(8)
def test_one_step_ahead_log_probs_add_up_to_the_log_evidence(case, seed, prior):
    sizes = np.random.default_rng(seed).integers(1, 4, 6)
    _, X, y, row_data, grow = setup(case, seed, prior, 30, sizes)
    total = 0.0
    for i in range(30):
        row = slice(i, i + 1)
        total += grow.predictive(X[row], **take(row_data, row)).log_prob(y[row])[0]
        grow.update(X[row], y[row], **take(row_data, row))
    assert total == pytest.approx(grow.log_evidence, rel=1e-10, abs=1e-10)


@families
def test_no_data_is_the_prior(case):
    _, X, y, row_data, grow = setup(case, 5, "falling", 6, np.array([2, 3, 4, 2]))
    prior_predictive = case.family.predictive(np.zeros((6, case.family.n_statistics)), **row_data)
    assert (grow.log_evidence, grow.n_rows, grow.n_points, grow.n_nodes) == (0.0, 0, 0, 0)
    grow.update(X[:0], y[:0], **take(row_data, slice(0, 0))).update(X, y, np.zeros(6), **row_data)
    assert (grow.log_evidence, grow.n_rows, grow.n_points, grow.n_nodes) == (0.0, 0, 0, 0)
    dist = grow.predictive(X, **row_data)
    np.testing.assert_array_equal(dist.mean(), prior_predictive.mean())
    np.testing.assert_allclose(dist.variance(), prior_predictive.variance(), rtol=1e-14)
    np.testing.assert_array_equal(dist.log_prob(y), prior_predictive.log_prob(y.astype(float)))
    grow.merge(grow.copy())
    assert grow.n_points == 0


@families
def test_rows_that_are_all_equal_are_one_leaf(case):
    _, X, y, row_data, grow = setup(case, 6, "half", 20, np.array([2, 3, 4, 2]))
    X[:] = X[0]
    grow.update(X, y, **row_data)
    assert (grow.n_points, grow.n_nodes, grow.n_rows) == (1, 1, 20)
    post = et.Posterior(et.MetaTree.complete([]), case.family).update(X[:, :0], y, **row_data)
    assert grow.log_evidence == pytest.approx(post.log_evidence, rel=1e-12)
    one, other = grow.predictive(X, **row_data), post.predictive(X[:, :0], **row_data)
    np.testing.assert_allclose(one.log_prob(y), other.log_prob(y), rtol=1e-12)
    np.testing.assert_allclose(one.mean(), other.mean(), rtol=1e-12)


def test_a_row_that_parts_gets_the_prior_with_the_product_of_the_split_priors():
    """The formula of the design, for a point and rows that part from it after one, two and three questions."""
    split_prior = et.depth_prior(0.9, 0.5)
    grow = et.GrowingPosterior([2, 2, 2], et.Bernoulli(1.0, 1.0), split_prior).update(
        np.zeros((4, 3), np.uint8), [1] * 4
    )
    order = [grow.feature_at([0] * depth) for depth in range(3)]
    for depth, feature in enumerate(order):
        row = np.zeros((1, 3), np.uint8)
        row[0, feature] = 1
        beyond = np.prod([split_prior(d) for d in range(depth + 1)])
        expected = (1 - beyond) * 5 / 6 + beyond * 1 / 2
        assert grow.predictive(row).mean()[0] == pytest.approx(expected, rel=1e-14)
    assert grow.predictive(np.zeros((1, 3), np.uint8)).mean()[0] == pytest.approx(5 / 6, rel=1e-14)


@families
@pytest.mark.parametrize("how", ["copy", "pickle"])
def test_copies_are_the_same_and_independent(case, how):
    _, X, y, row_data, grow = setup(case, 7, "falling", 60, np.array([2, 3, 4, 2, 2]))
    half, rest = slice(0, 30), slice(30, 60)
    grow.update(X[half], y[half], **take(row_data, half))
    other = grow.copy() if how == "copy" else pickle.loads(pickle.dumps(grow))
    before = view(grow, X, y, row_data)
    assert pickle.dumps(view(other, X, y, row_data)) == pickle.dumps(before)
    other.update(X[rest], y[rest], **take(row_data, rest))
    assert pickle.dumps(view(grow, X, y, row_data)) == pickle.dumps(before)
    assert_same_view(
        view(grow.update(X[rest], y[rest], **take(row_data, rest)), X, y, row_data), view(other, X, y, row_data)
    )


@given(seed=seeds)
@examples(15)
def test_memory_is_bounded_by_the_distinct_rows(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, int(rng.integers(1, 8)))
    X, weight = codes(rng, sizes, 200), rng.choice([0.0, 1.0], 200)
    grow = et.GrowingPosterior(sizes.tolist(), et.Bernoulli()).update(X, rng.integers(0, 2, 200), weight)
    distinct = np.unique(X[weight > 0], axis=0)
    assert grow.n_points == len(distinct)
    np.testing.assert_array_equal(np.unique(grow.points, axis=0), distinct)
    assert grow.n_points <= grow.n_nodes <= max(1, 2 * grow.n_points - 1)
    assert grow.n_rows == (weight > 0).sum()


@families
def test_a_weight_is_a_number_of_copies(case):
    rng, X, y, row_data, empty = setup(case, 8, "half", 40, np.array([2, 3, 2, 2]))
    copies = rng.integers(0, 4, 40)
    index = np.repeat(np.arange(40), copies)
    weighted = empty.copy().update(X, y, copies, **row_data)
    repeated = empty.copy().update(X[index], y[index], **take(row_data, index))
    one, other = view(weighted, X, y, row_data), view(repeated, X, y, row_data)
    assert (one.pop("counts")[1:], weighted.n_rows) == (other.pop("counts")[1:], (copies > 0).sum())
    assert_same_view(one, other)


# ---- sizes and types ---------------------------------------------------------------------------------------


def test_many_rows_of_many_features():
    rng = rng_for("many rows")
    X = rng.integers(0, 2, (20_000, 30)).astype(np.uint8)
    y = X[:, 3] ^ (rng.random(20_000) < 0.1)
    empty = et.GrowingPosterior([2] * 30, et.Bernoulli(), split_prior=0.8)
    batch, order = empty.copy().update(X, y), rng.permutation(20_000)
    shuffled, merged = empty.copy().update(X[order], y[order]), empty.copy()
    for begin in range(0, 20_000, 5000):
        merged.merge(empty.copy().update(X[begin : begin + 5000], y[begin : begin + 5000]))
    assert batch.n_nodes < 2 * batch.n_points
    assert batch.log_evidence < 0.0
    new, targets = codes(rng, [2] * 30, 500), rng.integers(0, 2, 500)
    for other in (shuffled, merged):
        assert_same_view(view(other, new, targets, {}), view(batch, new, targets, {}))


def test_a_thousand_codes_and_more():
    rng = rng_for("wide codes")
    X = np.column_stack([rng.integers(0, 1000, 300), rng.integers(0, 2, 300), rng.integers(0, 300, 300)])
    X[:100] = X[100:200]
    y = rng.normal(size=300)
    grow = et.GrowingPosterior([1000, 2], et.Normal(), 0.6, seed=3).update(X[:, :2].astype(np.uint16), y)
    assert grow.points.dtype == np.uint16
    post = expanded(grow, 0.6).update(X[:, :2], y)
    assert grow.log_evidence == pytest.approx(post.log_evidence, rel=1e-10)
    new = np.column_stack([rng.integers(0, 1000, 50), rng.integers(0, 2, 50)])
    np.testing.assert_allclose(grow.predictive(new).mean(), post.predictive(new).mean(), rtol=1e-10, atol=1e-10)
    with pytest.raises(ValueError, match="code 1000"):
        grow.predictive(np.array([[1000, 0]], dtype=np.uint16))


@pytest.mark.parametrize("sizes", [[3, 2], [255, 2], [256, 2], [257, 2], [1000, 2]], ids=str)
@pytest.mark.parametrize("kind", [np.uint16, np.int16, np.int64, np.uint64, np.float64, list], ids=lambda t: t.__name__)
def test_any_whole_numbers_are_codes(sizes, kind):
    """Every code of every feature, the largest included, in any type that holds it."""
    rng = rng_for("types", sizes)
    X = np.column_stack([np.arange(sizes[0]), rng.integers(0, 2, sizes[0])])
    y = rng.integers(0, 2, sizes[0])
    table = X.tolist() if kind is list else X.astype(kind)
    expected = et.GrowingPosterior(sizes, et.Bernoulli()).update(X.astype(np.uint16 if sizes[0] > 256 else np.uint8), y)
    got = et.GrowingPosterior(sizes, et.Bernoulli()).update(table, y)
    assert got.log_evidence == expected.log_evidence
    np.testing.assert_array_equal(got.points, X)
    np.testing.assert_array_equal(got.predictive(table).mean(), expected.predictive(X).mean())


# ---- what is refused ---------------------------------------------------------------------------------------

ROWS = codes(rng_for("bad rows"), [2, 3, 4], 17_000)
TARGETS = rng_for("bad targets").poisson(2.0, 17_000)


def changed(array: np.ndarray, place: Any, value: float) -> np.ndarray:
    copy = array.astype(np.int64 if value == int(value) else np.float64)
    copy[place] = value
    return copy


BAD = {  # what is wrong: (arguments, message)
    "code": ({"X": changed(ROWS, (16_999, 1), 3)}, r"column 1, row 16999: code 3, .* 0\.\.2"),
    "negative code": ({"X": changed(ROWS, (16_999, 1), -1)}, "column 1, row 16999: code -1"),
    "fraction": ({"X": changed(ROWS, (16_999, 1), 0.5)}, "column 1, row 16999: 0.5"),
    "narrow": ({"X": ROWS[:, :2]}, "2 columns.*3"),
    "wide": ({"X": np.hstack([ROWS, ROWS])}, "6 columns.*3"),
    "one row": ({"X": ROWS[0]}, "X must be a table"),
    "target": ({"y": changed(TARGETS, 16_999, -1)}, r"y\[16999\] is -1"),
    "fractional target": ({"y": changed(TARGETS, 16_999, 0.5)}, r"y\[16999\] is 0.5"),
    "too few targets": ({"y": TARGETS[:-1]}, "y has 16999 entries, but X has 17000 rows"),
    "weight": ({"sample_weight": changed(np.ones(17_000), 16_999, -1)}, r"sample_weight\[16999\] is -1"),
    "too few weights": ({"sample_weight": np.ones(3)}, "sample_weight has 3 entries"),
    "exposure": ({"exposure": changed(np.ones(17_000), 16_999, 0)}, r"exposure\[16999\] is 0"),
    "too few exposures": ({"exposure": np.ones(3)}, "exposure has 3 entries, but X has 17,000 rows"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_row_changes_nothing(what):
    """The last row is the bad one: all rows before it must not have been counted either."""
    grow = et.GrowingPosterior([2, 3, 4], et.Poisson()).update(ROWS[:50], TARGETS[:50])
    before = pickle.dumps(view(grow, ROWS[:60], TARGETS[:60], {}))
    arguments, message = BAD[what]
    with pytest.raises(ValueError, match=message):
        grow.update(**{"X": ROWS, "y": TARGETS} | arguments)
    assert pickle.dumps(view(grow, ROWS[:60], TARGETS[:60], {})) == before
    fresh = et.GrowingPosterior([2, 3, 4], et.Poisson()).update(ROWS[:100], TARGETS[:100])
    assert_same_view(
        view(grow.update(ROWS[50:100], TARGETS[50:100]), ROWS[:9], TARGETS[:9], {}),
        view(fresh, ROWS[:9], TARGETS[:9], {}),
    )


def test_unknown_row_data_are_refused():
    grow = et.GrowingPosterior([2, 3, 4], et.Bernoulli())
    for call in (
        lambda: grow.update(ROWS, TARGETS % 2, exposure=TARGETS),
        lambda: grow.predictive(ROWS, exposure=TARGETS),
    ):
        with pytest.raises(TypeError, match="Bernoulli takes no 'exposure'"):
            call()


REFUSED = {  # what is wrong: (arguments, message)
    "a leaf prior for each node": (
        ([2, 2], et.Bernoulli([0.5, 1.0, 2.0], 0.5)),
        "one leaf prior for all nodes.*Corollary 2",
    ),
    "a split prior for each node": (([2, 2], et.Bernoulli(), [0.5, 0.5, 0.5]), "nodes that do not exist yet"),
    "a split prior of 2": (([2, 2], et.Bernoulli(), 2.0), "split_prior must be from 0 to 1, but is 2"),
    "a split prior of 2 somewhere": (([2, 2], et.Bernoulli(), float), "split_prior at depth.*2.*from 0 to 1"),
    "no codes": (([2, 0], et.Bernoulli()), r"n_children\[1\] is 0, but must be from 1"),
    "too many codes": (([2, 65535], et.Bernoulli()), r"n_children\[1\] is 65535, but must be from 1 to 65534"),
    "fractions": (([2.5], et.Bernoulli()), "whole numbers"),
    "a number": ((2, et.Bernoulli()), "n_children must be a sequence of whole numbers"),
    "a negative seed": (([2, 2], et.Bernoulli(), 0.5, -1), "seed must be a whole number"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_a_growing_posterior_refuses(what):
    arguments, message = REFUSED[what]
    with pytest.raises(ValueError, match=message):
        et.GrowingPosterior(*arguments)


OTHERS = {
    "sizes": (([2, 3], et.Bernoulli(), 0.5, 0), "n_children"),
    "family": (([2, 2], et.Bernoulli(1.0), 0.5, 0), "leaves"),
    "split prior": (([2, 2], et.Bernoulli(), 0.6, 0), "split_prior"),
    "seed": (([2, 2], et.Bernoulli(), 0.5, 1), "seed 1, this one 0"),
}


@pytest.mark.parametrize("what", OTHERS)
def test_only_posteriors_of_one_model_merge(what):
    arguments, message = OTHERS[what]
    grow = et.GrowingPosterior([2, 2], et.Bernoulli(), 0.5, 0).update(ROWS[:4, :2] % 2, TARGETS[:4] % 2)
    evidence = grow.log_evidence
    with pytest.raises(ValueError, match=message):
        grow.merge(et.GrowingPosterior(*arguments))
    with pytest.raises(TypeError, match="GrowingPosterior"):
        grow.merge(expanded(grow, 0.5))
    assert grow.log_evidence == evidence


def test_merging_with_itself_counts_twice():
    grow = et.GrowingPosterior([2, 3, 4], et.Poisson()).update(ROWS[:50], TARGETS[:50])
    twice = grow.copy().update(ROWS[:50], TARGETS[:50])
    assert_same_view(view(grow.merge(grow.copy()), ROWS[:9], TARGETS[:9], {}), view(twice, ROWS[:9], TARGETS[:9], {}))


# ---- questions about the tree ---------------------------------------------------------------------------------------


def complete_tree(grow: et.GrowingPosterior, depth: int) -> et.MetaTree:
    """The meta-tree with every path down to a depth, whatever the rows are."""
    paths, feature = [()], []
    for path in paths:
        asked = grow.feature_at(path) if len(path) < depth else None
        feature.append(-1 if asked is None else asked)
        paths += [] if asked is None else [(*path, code) for code in range(grow.n_children[asked])]
    n_children = [0 if k < 0 else int(grow.n_children[k]) for k in feature]
    first = np.cumsum([1, *n_children[:-1]])
    return et.MetaTree.from_arrays(feature, np.where(np.array(feature) < 0, -1, first), n_children)


@pytest.mark.parametrize("seed", range(4))
def test_the_expanded_tree_has_the_split_probabilities_of_the_complete_one(seed):
    rng = np.random.default_rng(seed)
    grow = et.GrowingPosterior([2, 3, 2, 2], et.Bernoulli(0.7, 1.1), split_prior=lambda depth: 0.9 / (1 + depth))
    X = rng.integers(0, [2, 3, 2, 2], size=(9, 4)).astype(np.uint8)
    y = rng.integers(0, 2, 9)
    grow.update(X, y)
    whole = et.Posterior(complete_tree(grow, 4), grow.family, lambda depth: 0.9 / (1 + depth)).update(X, y)
    post = grow.expanded()
    assert post.log_evidence == pytest.approx(grow.log_evidence, abs=1e-12)
    assert post.log_evidence == pytest.approx(whole.log_evidence, abs=1e-12)
    place = {0: 0}  # node of the expanded tree -> node of the complete one
    for s in range(post.tree.n_nodes):
        for c in range(post.tree.n_children[s]):
            place[post.tree.first_child[s] + c] = whole.tree.first_child[place[s]] + c
    inner = np.flatnonzero(~post.tree.is_terminal)
    np.testing.assert_allclose(grow.split_prob[inner], whole.split_prob[[place[s] for s in inner]], atol=1e-12)
    probs = [np.exp(one.log_prob) for one in grow.top_trees(10_000)]
    assert sum(probs) == pytest.approx(1.0, abs=1e-10)
    assert grow.map_tree() == grow.top_trees(1)[0].tree
    assert grow.to_text().splitlines()[1].startswith(f"x{grow.feature_at(())}?")


def test_a_growing_posterior_without_rows_is_one_node():
    grow = et.GrowingPosterior([2, 2], et.Bernoulli())
    assert grow.expanded().tree.n_nodes == 1
    assert grow.map_tree().n_leaves == 1
