"""Exact sums near the root with grown trees below, against regions looked up one by one."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import log_loss

import everytree as et
from everytree.exact.continuations import evidence_of_regions
from everytree.fitting.top_scores import TopScores, score_temperatures


@pytest.fixture(autouse=True)
def few_trees(monkeypatch):
    """Several trees a region, but not as many as good predictions take: a fit's time is that of its trees."""
    monkeypatch.setattr("everytree.fitting.continued.TREES_PER_ROW", 40)


def table(seed=0, n=160):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "a": rng.normal(size=n),
            "b": np.where(rng.random(n) < 0.15, np.nan, rng.normal(size=n)),
            "c": rng.choice(["red", "green", "blue"], n),
            "d": pd.Series(rng.choice(["x", "y", None], n, p=[0.5, 0.3, 0.2]), dtype=object),
        }
    )
    score = X["a"] + np.where(X["b"].isna(), 0.7, X["b"]) * (X["c"] == "red") + (X["d"] == "y")
    return X, score.to_numpy() + 0.5 * rng.normal(size=n)


def classifier(**more):
    return et.ExactTreeClassifier(
        continuation="grown", **{"temperature": "auto", "random_state": 0, "max_cuts": 4, **more}
    )


def regressor(**more):
    return et.ExactTreeRegressor(
        continuation="grown", **{"temperature": "auto", "random_state": 0, "max_cuts": 4, **more}
    )


def holds(regions, region, few):
    """Whether a region holds a row, by its conditions."""
    for at in range(regions.start[region], regions.start[region + 1]):
        column, codes = int(regions.column[at]), int(regions.codes[at])
        yield column, codes, few[column]


def is_inside(kinds, regions, region, few):
    for column, codes, code in holds(regions, region, few):
        if code == 65535:
            return False
        if kinds[column] == "multiway":
            if not codes >> int(code) & 1:
                return False
        elif not codes & 0xFFFFFFFF <= code <= codes >> 32:
            return False
    return True


def naive_values(model, X, of_leaf, of_tree):
    """The average over leaves near the root and trees below, one row and one region after another."""
    forest, codes = model.forest_, model.schema_.encode(X)
    post, few = forest.posterior, forest.columns.read(codes)
    regions = post.continued
    n_each = forest.trees.n_each
    log_evidence = np.array([one.log_evidence for one in forest.below]).reshape(-1, n_each)
    powers = np.exp(post.temperature * (log_evidence - log_evidence.max(axis=1, keepdims=True)))
    shares = powers / powers.sum(axis=1, keepdims=True)
    found = []
    for row, own in zip(codes, few, strict=True):
        leaves = post.leaf_regions(bool((own >= np.array(post.n_codes)).any()))
        total, weight = 0.0, 0.0
        for i in range(len(leaves.weight)):
            inside = True
            for at in range(leaves.start[i], leaves.start[i + 1]):
                column, codes_of = int(leaves.column[at]), int(leaves.codes[at])
                unknown = own[column] >= post.n_codes[column]
                if codes_of == 2**64 - 1 or unknown:
                    inside &= codes_of == 2**64 - 1 and unknown
                elif post.kinds[column] == "multiway":
                    inside &= bool(codes_of >> int(own[column]) & 1)
                else:
                    inside &= codes_of & 0xFFFFFFFF <= own[column] <= codes_of >> 32
            if inside:
                total = total + leaves.weight[i] * of_leaf(forest.family, leaves.statistics[i : i + 1])
                weight += leaves.weight[i]
        for region in range(len(regions.weight)):
            if not is_inside(post.kinds, regions, region, own):
                continue
            for j in range(n_each):
                below = forest.below[region * n_each + j]
                share = regions.weight[region] * shares[region, j]
                total = total + share * of_tree(below, forest.n_codes, row[None])
                weight += share
        assert weight == pytest.approx(1.0, abs=1e-5)
        found.append(np.ravel(total / weight))
    return np.array(found)


def probs_of_leaf(family, statistics):
    return family.predictive(statistics).probs()


def probs_of_tree(below, n_codes, row):
    return et.Forest([below], n_codes=n_codes).probs(row)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("temperature", ["auto", 1.0, 0.05])
def test_probabilities_are_those_of_all_regions_one_by_one(n_classes, temperature):
    X, score = table(n_classes)
    y = np.digitize(score, np.quantile(score, np.linspace(0, 1, n_classes + 1)[1:-1]))
    model = classifier(temperature=temperature, max_depth=1 if n_classes == 3 else 2).fit(X, y)
    new = X.iloc[:12].copy()
    new.loc[new.index[0], "c"] = "never seen"
    new.loc[new.index[1], "a"] = np.nan  # never missing at fit
    expected = naive_values(model, new, probs_of_leaf, probs_of_tree) ** model.forest_.sharpness
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(new), expected, atol=2e-6)  # truncation of leaves near the root
    np.testing.assert_allclose(model.predictive(new).probs(), model.predict_proba(new), atol=2e-6)


def test_means_are_those_of_all_regions_one_by_one():
    X, y = table(5)
    model = regressor().fit(X, y)
    new = X.iloc[:8]
    mean = naive_values(
        model, new, lambda family, stat: family.predictive(stat).mean(),
        lambda below, n_codes, row: et.Forest([below], n_codes=n_codes).moments(row)[0],
    )  # fmt: skip
    np.testing.assert_allclose(model.predict(new), mean[:, 0], atol=1e-5)
    dist = model.predictive(new)
    np.testing.assert_allclose(dist.mean(), model.predict(new), atol=1e-5)
    np.testing.assert_allclose(dist.std(), model.predict(new, return_std=True)[1], rtol=1e-4)
    low, high = dist.interval(0.9).T
    np.testing.assert_allclose(dist.cdf(high) - dist.cdf(low), 0.9, atol=1e-6)


def brute_force_score(scores, temperature):
    """Leave each row out of all evidences, and sum over splits again, with plain numbers."""
    result = []
    for i in range(len(scores.y)):

        def at(depth, number, i=i):
            """Evidence without the row, with it, probability of honest ways to predict it, and these predictions."""
            if depth == len(scores.levels):
                ways = [one(tree) for tree in scores.last[number]]
                whole = np.mean([way[0] for way in ways]), np.mean([way[1] for way in ways])
                each = [way[0] / len(ways) / whole[0] for way in ways]
                share = sum(p * way[2] for p, way in zip(each, ways, strict=True))
                return *whole, share, sum(p * way[3] for p, way in zip(each, ways, strict=True))
            region = scores.levels[depth][number]
            leaf = one(region)
            if not region.candidates:
                return leaf
            g = np.exp(scores.log_split[depth])
            without, whole = (1 - g) * leaf[0], (1 - g) * leaf[1]
            share, value = without * leaf[2], without * leaf[3]
            for children in region.candidates:
                below = [at(depth + 1, child) for child in children if child >= 0]
                term = g / len(region.candidates) * np.prod([b[0] for b in below])
                without += term
                whole += g / len(region.candidates) * np.prod([b[1] for b in below])
                mine = next(
                    (b for b, c in zip(below, [c for c in children if c >= 0], strict=True) if in_it(depth + 1, c)),
                    None,
                )
                if mine is not None:
                    share, value = share + term * mine[2], value + term * mine[3]
            return without, whole, share / without, value / without

        def in_it(depth, number, i=i):
            regions = scores.last[number] if depth == len(scores.levels) else [scores.levels[depth][number]]
            return i in regions[0].rows

        def one(region, i=i):
            whole = np.exp(temperature * region.log_evidence)
            if i not in region.rows:
                return whole, whole, 0.0, 0.0
            place = int(np.flatnonzero(region.rows == i)[0])
            honest = np.isfinite(region.log_values[place]).all()
            value = np.exp(region.log_values[place]) if honest else 0.0
            return np.exp(temperature * (region.log_evidence - region.own[place])), whole, float(honest), value

        _, _, share, value = at(0, 0)
        if share > 0:
            result.append((i, value / share))
    return result


@pytest.mark.parametrize("temperature", [0.1, 1.0])
def test_rows_are_left_out_as_if_each_sum_were_made_again(temperature, monkeypatch):
    kept = []
    own = TopScores.__init__

    def noting(self, *arguments):
        own(self, *arguments)
        kept.append(self)

    monkeypatch.setattr(TopScores, "__init__", noting)
    X, score = table(7, 40)
    classifier(max_cuts=3, max_depth=2).fit(X[["a", "c"]], (score > 0).astype(int))
    (scores,) = kept
    found = dict(brute_force_score(scores, temperature))
    expected = np.mean([np.log(found[i][scores.y[i]]) for i in sorted(found)])

    def not_sharpened(probs, y, weight):
        return np.average(np.log(probs[np.arange(len(y)), y]), weights=weight), 1.0

    monkeypatch.setattr("everytree.fitting.top_scores.best_sharpness", not_sharpened)
    assert score_temperatures(scores, [temperature])[0].score == pytest.approx(expected, abs=1e-9)


def test_several_trees_of_a_region_are_a_mixture():
    logs = np.array([[-3.0, -1.0, -2.0], [-700.0, -720.0, -800.0]])
    for power in (1.0, 0.3, 0.01):
        expected = [np.log(np.mean(np.exp(power * (row - row.max())))) / power + row.max() for row in logs]
        np.testing.assert_allclose(evidence_of_regions(logs, power), expected, rtol=1e-12)
    np.testing.assert_allclose(evidence_of_regions(logs, 0.0), logs.mean(axis=1))


def test_it_predicts_better_than_a_shallow_sum(monkeypatch):
    monkeypatch.undo()  # as many trees as users have
    rng = np.random.default_rng(1)
    X = rng.normal(size=(900, 6))
    y = (np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=900) > 0).astype(int)
    deep = classifier(max_cuts=20).fit(X[:600], y[:600])
    shallow = et.ExactTreeClassifier(max_depth=2, max_cuts=20).fit(X[:600], y[:600])
    of_deep, of_shallow = (log_loss(y[600:], one.predict_proba(X[600:])) for one in (deep, shallow))
    assert of_deep < 0.8 * of_shallow
    assert 0.0 < deep.temperature_ <= 1.0
    assert 0.7 * of_deep < -deep.choice_.score < 1.6 * of_deep  # by rows that trees had not seen


def test_same_bits_for_any_n_jobs_and_copies(tmp_path):
    X, score = table(2)
    y = np.array(["no", "yes"])[(score > 0).astype(int)]
    model = classifier(n_jobs=1).fit(X, y)
    expected = model.predict_proba(X)
    assert (classifier(n_jobs=2).fit(X, y).predict_proba(X) == expected).all()
    assert (pickle.loads(pickle.dumps(model)).predict_proba(X) == expected).all()
    et.save(model, tmp_path / "model.et")
    loaded = et.load(tmp_path / "model.et")
    np.testing.assert_array_equal(loaded.predict_proba(X), expected)
    assert loaded.temperature_ == model.temperature_
    assert loaded.choice_.parameters == model.choice_.parameters
    np.testing.assert_allclose(loaded.feature_importances_, model.feature_importances_, atol=1e-12)
    assert not (clone(model).set_params(random_state=1).fit(X, y).predict_proba(X) == expected).all()


def test_weights_and_groups():
    X, score = table(3)
    y, rng = (score > 0).astype(int), np.random.default_rng(0)
    weight = rng.integers(0, 3, len(y)).astype(float)
    model = classifier().fit(X, y, sample_weight=weight)
    without = classifier().fit(X[weight > 0], y[weight > 0], sample_weight=weight[weight > 0])
    np.testing.assert_allclose(model.predict_proba(X), without.predict_proba(X), atol=1e-12)
    groups = np.arange(len(y)) // 4
    grouped = classifier().fit(X, y, groups=groups)
    assert np.isfinite(grouped.predict_proba(X)).all()
    for region, one in zip(range(3), grouped.forest_.below[:3], strict=True):
        assert one.n_rows > 0, region


def test_counts_with_exposure():
    rng = np.random.default_rng(4)
    X, exposure = rng.normal(size=(300, 3)), rng.uniform(0.5, 2.0, 300)
    y = rng.poisson(exposure * np.exp(0.5 * X[:, 0]))
    model = regressor(family="poisson").fit(X, y, exposure=exposure)
    dist = model.predictive(X[:5], exposure=exposure[:5])
    np.testing.assert_allclose(dist.mean(), model.predict(X[:5], exposure=exposure[:5]), rtol=1e-9)
    counts = np.arange(60)
    total = np.exp([[one.log_prob(np.full(1, k))[0] for k in counts] for one in (dist[:1],)]).sum()
    assert total == pytest.approx(1.0, abs=1e-6)


def test_pictures_are_of_the_splits_near_the_root():
    X, score = table(6, 300)
    model = classifier(temperature=1.0).fit(X, (score > 0).astype(int))
    tree = model.map_tree_
    assert tree.n_leaves >= 2
    assert model.map_posterior_.n_rows == 300
    assert "a" in model.pictured().to_text(code_names=model.words_of_codes()) or tree.feature[0] != 0


@pytest.mark.parametrize("y", [[0, 0, 0], [0, 1, 1]])
def test_tiny_tables(y):
    model = classifier().fit(np.array([[1.0], [1.0], [1.0]]), y)
    assert model.predict_proba([[1.0]]).sum() == pytest.approx(1.0)
    model = classifier().fit(np.array([[1.0], [2.0], [3.0]]), y)
    assert np.isfinite(model.predict_proba([[1.0], [9.0], [np.nan]])).all()


def test_bad_input():
    X, score = table()
    y = (score > 0).astype(int)
    with pytest.raises(ValueError, match="continuation must be 'grown' or None"):
        et.ExactTreeClassifier(continuation="no").fit(X, y)
    assert et.ExactTreeClassifier(1, temperature="auto").fit(X, y).temperature_ == 1.0
    with pytest.raises(ValueError, match=r"temperature must be 'auto' or a power"):
        classifier(temperature=1.5).fit(X, y)
    model, other = classifier().fit(X, y), classifier(random_state=1).fit(X, y)
    with pytest.raises(ValueError, match=r"other has"):
        model.merge(other)


def test_more_rows_are_counted_in_the_same_trees():
    X, score = table(8, 300)
    y = (score > 0).astype(int)
    first = classifier().fit(X[:200], y[:200])
    one_by_one = first.blank()
    shards = [first.blank().partial_fit(X[begin : begin + 75], y[begin : begin + 75]) for begin in range(0, 300, 75)]
    merged = shards[0]
    for shard in shards[1:]:
        merged.merge(shard)
    at_once = one_by_one.partial_fit(X, y)
    more = first.partial_fit(X[200:], y[200:])
    for model in (merged, more):
        np.testing.assert_allclose(model.predict_proba(X), at_once.predict_proba(X), atol=1e-10)
        assert model.log_evidence_ == pytest.approx(at_once.log_evidence_, abs=1e-9)


def test_a_first_partial_fit():
    X, score = table(9, 120)
    model = classifier()
    for begin in range(0, 120, 40):
        model.partial_fit(X[begin : begin + 40], (score > 0)[begin : begin + 40].astype(int))
    assert model.predict_proba(X).shape == (120, 2)


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_onnx(kind):
    onnxruntime = pytest.importorskip("onnxruntime")
    X, score = table(10, 140)
    model = classifier().fit(X, (score > 0).astype(int)) if kind == "classes" else regressor().fit(X, score)
    new = X.iloc[:30].copy()
    new.loc[new.index[0], "c"] = "never seen"
    new.loc[new.index[1], ["a", "b", "d"]] = np.nan, np.nan, None
    session = onnxruntime.InferenceSession(et.to_onnx(model).SerializeToString())
    answers = dict(
        zip([one.name for one in session.get_outputs()], session.run(None, et.onnx_inputs(model, new)), strict=True)
    )
    if kind == "classes":
        np.testing.assert_allclose(answers["probabilities"], model.predict_proba(new), atol=1e-12)
    else:
        mean, std = model.predict(new, return_std=True)
        np.testing.assert_allclose(answers["mean"], mean, atol=1e-12)
        np.testing.assert_allclose(answers["variance"], std**2, rtol=1e-9)
