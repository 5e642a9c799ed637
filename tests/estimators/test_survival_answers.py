"""Survival curves of every estimator beside slow twins: explanations, graphs, batches, exact sums and boosting."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

import everytree as et
from cases import rng_for
from everytree.survival.baseline import Baseline, knots_of, shape_without
from everytree.survival.rows import TimesOfRows, times_of_rows
from everytree.survival.scores import calibration_counts, kaplan_meier_of_others
from naive_explaining import shapley, walk_value

MODELS = {
    "tree": et.MetaTreeRegressor(family="survival", random_state=0, n_jobs=1),
    "forest": et.MetaForestRegressor(9, family="survival", random_state=0, n_jobs=1),
    "exact": et.ExactTreeRegressor(2, family="survival", max_cuts=6, n_jobs=1),
    "sampled": et.SampledTreeRegressor(
        2, family="survival", n_draws=4, n_chains=1, n_structures=3, temperature=1.0, random_state=0, n_jobs=1
    ),
    "boost": et.MetaBoostRegressor(
        12, family="survival", n_chains=2, n_residual_trees=6, random_state=0, n_jobs=1
    ),
    "ensemble": et.MetaEnsembleRegressor(
        6, family="survival", max_iter=8, n_residual_trees=6, random_state=0, n_jobs=1
    ),
}  # fmt: skip
COUNTING = ("tree", "forest", "exact", "sampled")
every = pytest.mark.parametrize("name", MODELS)


def table_of(n, what=""):
    """Times that depend on numbers and categories, with missing values; new rows with what was never seen."""
    rng = rng_for("survival table", what, n)
    X = pd.DataFrame(
        {"age": rng.normal(50, 10, n), "dose": rng.integers(0, 4, n).astype(float), "site": rng.choice(list("abc"), n)}
    )
    risk = 0.06 * (X["age"] - 50) + 0.7 * (X["site"] == "a")
    X.loc[rng.random(n) < 0.1, "age"] = np.nan
    time, end = rng.weibull(1.3, n) * np.exp(-risk / 1.3), rng.exponential(1.5, n)
    new = X.iloc[:10].copy()
    new.loc[new.index[1], "site"] = "never seen"
    new.loc[new.index[2], "dose"] = np.nan
    return X, np.minimum(time, end).to_numpy(), (time <= end).to_numpy(), new


def fitted(name, n=120):
    X, y, event, new = table_of(n, name)
    return MODELS[name].fit(X, y, event=event), X, y, event, new


# ---- explanations ---------------------------------------------------------------------------------------------------


@every
def test_contributions_add_up_to_the_restricted_mean(name):
    model, X, _, _, new = fitted(name)
    why = model.explain(new)
    np.testing.assert_allclose(why.base + why.values.sum(axis=1), model.predict(new), rtol=1e-10)
    np.testing.assert_allclose(why.base, model.predict(X).mean(), rtol=1e-9)
    others = X[X["site"] == "a"]
    there = model.explain(new, table=others)
    np.testing.assert_allclose(there.base, model.predict(others).mean(), rtol=1e-9)
    np.testing.assert_allclose(there.base + there.values.sum(axis=1), model.predict(new), rtol=1e-10)
    assert "cut off" in why.what
    assert model.effect("age", X).mean.shape[0] > 1


@pytest.mark.parametrize("name", ["tree", "forest", "sampled"])
def test_contributions_to_the_log_relative_hazard_are_shapley_values(name):
    """Of a sum over columns, plus a mean over trees of the mean over prunings of a leaf's log factor."""
    model, _, _, _, new = fitted(name)
    codes, inputs = model.schema_.encode(new.iloc[:3]), model.schema_.input_of.tolist()
    members, expected = model.model_.members, np.zeros((3, 3))
    for member in members:
        lengths = np.asarray(member.baseline.lengths)
        for row, own in enumerate(expected):
            for post in member.forest.posteriors:
                events = post.statistics[:, : len(lengths)].sum(axis=1)
                exposed = post.statistics[:, len(lengths) : 2 * len(lengths)] @ lengths
                log_factor = np.log((post.family.shape + events) / (post.family.shape + exposed))
                values, tree = np.zeros((post.tree.n_nodes, 1)), post.tree
                for node in range(tree.n_nodes):
                    path = [node]
                    while tree.parent[path[-1]] >= 0:
                        path.append(int(tree.parent[path[-1]]))
                    reached = 1.0
                    for place in reversed(path):
                        stops = 1.0 if place == node else 1.0 - post.split_prob[place]
                        values[node] += reached * stops * log_factor[place]
                        reached *= post.split_prob[place]
                missing = 255 if codes.dtype == np.uint8 else 65535
                value = walk_value(tree, events, values, codes[row], model.schema_.n_codes, missing, inputs)
                own += shapley(value, 3)[:, 0] / len(member.forest)
            if member.offset is not None:
                for column in range(codes.shape[1]):
                    begin, end = member.offset.first[column : column + 2]
                    code = min(int(codes[row, column]), end - begin - 1)
                    own[inputs[column]] += member.offset.values[begin + code]
    why = model.explain(new.iloc[:3], scale="trees")
    assert why.what == "log relative hazard"
    np.testing.assert_allclose(why.values, expected * model.model_.sharpening.power / len(members), atol=1e-10)


# ---- graphs ---------------------------------------------------------------------------------------------------------


@every
def test_graphs_have_the_curves_at_given_times(name):
    ort = pytest.importorskip("onnxruntime")
    model, X, _, _, new = fitted(name)
    end = float(model.predictive(new).times[-1])
    for times in (np.r_[0.0, np.linspace(0.01, end, 7)], [0.3 * end]):
        graph = et.to_onnx(model, times)
        assert [one.name for one in graph.graph.output] == ["survival"]
        session = ort.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
        rows = pd.concat([new, X.iloc[:30]])
        (found,) = session.run(None, et.export.onnx_inputs(model, rows))
        np.testing.assert_allclose(found, model.predictive(rows).sf(np.array(times)[:, None]).T, atol=1e-12)


def test_times_of_graphs_are_checked():
    pytest.importorskip("onnx")
    model, X, y, _, _ = fitted("tree")
    with pytest.raises(ValueError, match=r"times.*needed"):
        et.to_onnx(model)
    with pytest.raises(ValueError, match=r"times.*where the curves end"):
        et.to_onnx(model, [2.0 * y.max()])
    with pytest.raises(ValueError, match=r"times.*survival curves"):
        et.to_onnx(et.MetaTreeRegressor(random_state=0).fit(X, y), [1.0])
    with pytest.raises(ValueError, match="survival curves"):
        et.export.to_tables(model)


# ---- files, shards, batches -----------------------------------------------------------------------------------------


@every
def test_files_keep_curves_and_explanations(name, tmp_path):
    model, _, _, _, new = fitted(name)
    et.save(model, tmp_path / "model.et")
    again = et.load(tmp_path / "model.et")
    np.testing.assert_array_equal(again.predictive(new).sf(0.5), model.predictive(new).sf(0.5))
    np.testing.assert_array_equal(again.explain(new).values, model.explain(new).values)


@pytest.mark.parametrize("name", COUNTING)
@pytest.mark.parametrize("late", [False, True])
def test_shards_and_batches_are_all_rows_together(name, late):
    X, y, event, new = table_of(120, (name, late))
    data = {"event": event, "entry": 0.5 * y * (np.arange(120) % 2)} if late else {"event": event}
    model = MODELS[name].fit(X, y, **data)
    parts = np.array_split(np.random.default_rng(0).permutation(120), 3)
    shards = [model.blank().partial_fit(X.iloc[i], y[i], **{k: v[i] for k, v in data.items()}) for i in parts]
    merged, batch = shards[0].merge(shards[1]).merge(shards[2]), model.blank().partial_fit(X, y, **data)
    times = np.linspace(0.05, 2.0, 5)[:, None]
    np.testing.assert_allclose(merged.predictive(new).sf(times), batch.predictive(new).sf(times), rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", ["tree", "forest"])
def test_batches_are_counted_with_the_baseline_of_the_first_pass(name):
    """As if the sample had been fitted, and all rows counted in its trees."""
    X, y, event, new = table_of(400, "batches")
    table = X.assign(time=y, died=event)
    parts = [table.iloc[i : i + 100] for i in range(0, 400, 100)]
    model = MODELS[name].fit_batches(parts, target="time", event="died", sample_rows=150)
    assert model.model_.n_rows == 400
    counted = model.blank().partial_fit(X, y, event=event)
    np.testing.assert_allclose(counted.predictive(new).sf(0.5), model.predictive(new).sf(0.5), rtol=0, atol=1e-10)
    whole = MODELS[name].fit_batches(parts, target="time", event="died", sample_rows=1000).predictive(new).sf(0.5)
    alike = MODELS[name].fit(X, y, event=event).predictive(new).sf(0.5)
    np.testing.assert_allclose(whole, alike, atol=1e-10)


def test_a_column_that_changes_with_time_is_several_rows():
    """Treatment that begins late: rows before and after it, each with its own entry, tell its effect."""
    rng = rng_for("treatment")
    n = 1500
    start = rng.uniform(0.0, 1.0, n)
    untreated = rng.exponential(1.0, n)  # hazard 1 before treatment, .25 after it
    died = np.where(untreated < start, untreated, start + 4.0 * rng.exponential(1.0, n))
    end = np.minimum(died, 3.0)
    late = end > start
    treated = np.r_[np.zeros(n), np.ones(late.sum())][:, None]
    time = np.r_[np.minimum(end, start), end[late]]
    entry = np.r_[np.zeros(n), start[late]]
    event = np.r_[(died < start), (died[late] < 3.0)]
    model = MODELS["tree"].fit(treated, time, event=event, entry=entry)
    before, after = model.predictive(np.array([[0.0], [1.0]]))[[0, 1]].sf(np.array([0.5, 0.9])[:, None]).T
    np.testing.assert_allclose(before, np.exp([-0.5, -0.9]), atol=0.04)
    assert abs(np.log(after[1] / after[0]) + 0.1) < 0.06  # hazard .25 for a time of .4


# ---- exact sums and boosting ----------------------------------------------------------------------------------------


def test_exact_sums_are_those_over_all_trees():
    """Two columns of two values, depth 2: all trees with all splits, their leaves' evidence and curves one by one."""
    rng = rng_for("exact curves")
    X = rng.integers(0, 2, (60, 2)).astype(float)
    time, event = rng.exponential(1.0 + X[:, 0]), rng.random(60) < 0.7
    model = et.ExactTreeRegressor(2, family="survival", split_prior=0.4).fit(X, time, event=event)
    known = times_of_rows(time, None, {"censored": 1.0 - event})
    baseline = Baseline.of(known, np.zeros(60), knots_of(known))
    position, family = baseline.position(time), model.model_.family

    def leaf(rows):
        statistics = family.statistics(position[rows], None, censored=1.0 - event[rows]).sum(axis=0)[None]
        dist = family.predictive(statistics)
        curve = [1.0 - dist.cdf(np.array([place]))[0] for place in baseline.positions]
        return family.log_evidence(statistics)[0], np.array(curve)

    def trees(free, depth):
        """Prior and conditions of the leaves of every tree: None, or a column with the trees of both sides."""
        if not free or depth == 2:
            return [(1.0, None)]
        found = [(0.6, None)]
        for column in free:
            below = trees([other for other in free if other != column], depth + 1)
            for (p, left), (q, right) in itertools.product(below, below):
                found.append((0.4 / len(free) * p * q, (column, left, right)))
        return found

    def end(tree, row, rows):
        while tree is not None:
            column, left, right = tree
            rows = rows[X[rows, column] == row[column]]
            tree = right if row[column] else left
        return rows

    def evidence(tree, rows):
        if tree is None:
            return leaf(rows)[0]
        column, left, right = tree
        return evidence(left, rows[X[rows, column] == 0]) + evidence(right, rows[X[rows, column] == 1])

    everyone = np.arange(60)
    weighted = [(np.log(prior) + evidence(tree, everyone), tree) for prior, tree in trees([0, 1], 0)]
    top = max(log for log, _ in weighted)
    total = sum(np.exp(log - top) for log, _ in weighted)
    np.testing.assert_allclose(model.log_evidence_, top + np.log(total), rtol=1e-10)
    for row in itertools.product([0.0, 1.0], repeat=2):
        mean = sum(np.exp(log - top) / total * leaf(end(tree, row, everyone))[1] for log, tree in weighted)
        at_ends = np.isclose(baseline.positions % 0.5, 0.0)  # curves between points of the cells are lines
        found = model.predictive(np.array([row])).sf(baseline.times[at_ends][:, None])[:, 0]
        np.testing.assert_allclose(found, mean[at_ends], rtol=1e-10)


def test_boosted_relative_hazards_are_boosted_rates_of_events():
    """By the trees of counts whose exposure is the hazard that all rows accumulate."""
    model, X, y, event, new = fitted("boost")
    known = times_of_rows(y, None, {"censored": 1.0 - event})
    baseline = Baseline.of(known, np.zeros(len(y)), knots_of(known))
    exposure = np.interp(y, np.r_[0.0, baseline.times], np.r_[0.0, baseline.hazard()])
    counts = et.MetaBoostRegressor(12, family="poisson", n_chains=2, n_residual_trees=6, random_state=0, n_jobs=1)
    counts.fit(X, event.astype(float), exposure=exposure)
    codes = model.schema_.encode(new)
    (member,) = model.model_.members
    expected = counts.model_.parts.additive.scores(counts.schema_.encode(new))[:, 0]
    np.testing.assert_allclose(member.log_hazard(codes, 1), expected, atol=1e-9)
    assert model.n_iter_ == counts.n_iter_


def test_ensembles_mix_the_forest_and_boosting():
    model, _, _, _, new = fitted("ensemble")
    each = [member.curves(model.schema_.encode(new), 1) for member in model.model_.members]
    assert len(each) == 4
    assert model.boost_weight_ == 0.25
    mean = model.model_.sharpening.of(np.mean(each, axis=0))
    expected = np.minimum.accumulate(mean, axis=1)
    np.testing.assert_allclose(model.predictive(new).sf(model.model_.times[:, None]).T, expected, atol=1e-12)


@every
def test_curves_tell_rows_apart(name):
    X, y, event, _ = table_of(500, "learn")
    X_new, y_new, event_new, _ = table_of(600, "fresh")
    model = MODELS[name].fit(X, y, event=event)
    assert et.scorers.concordance()(model, X_new, y_new, event=event_new) > 0.6


@every
@pytest.mark.parametrize("change", ["time", "entry", "interval", "fields"])
def test_impossible_times_are_refused(name, change):
    X, y, event, _ = table_of(40, "bad")
    given = {"y": y, "event": event}
    if change == "time":
        given["y"], message = np.where(np.arange(40) == 3, -1.0, y), r"y.*times from 0 on"
    elif change == "entry":
        given["entry"], message = np.where(np.arange(40) == 3, 2.0 * y, 0.0), r"entry.*before the time of the row"
    elif change == "interval":
        given, message = {"y": np.column_stack([y, y + 1.0])}, r"2 columns.*no closed form"
    else:
        both = np.array(list(zip(y, y + 1.0, strict=True)), dtype=[("low", float), ("high", float)])
        given, message = {"y": both}, r"two fields.*no closed form"
    with pytest.raises(ValueError, match=message):
        MODELS[name].fit(X, **given)


@every
def test_tables_with_little_to_learn(name):
    X, y, event, _ = table_of(30, "little")
    with pytest.warns(UserWarning, match="censored"):
        assert np.isfinite(MODELS[name].fit(X, y, event=np.zeros(30)).predict(X)).all()
    one = np.arange(30) == 3
    assert np.isfinite(MODELS[name].fit(X, y, event=one).predict(X)).all()
    last = np.where(np.arange(30) < 15, y, y.max())
    curves = MODELS[name].fit(X, last, event=np.ones(30)).predictive(X)
    assert ((curves.sf(y.max()) >= 0.0) & (curves.sf(y.max()) < 1.0)).all()
    zero = np.where(np.arange(30) == 3, 0.0, y)
    assert np.isfinite(MODELS[name].fit(X, zero, event=event).predict(X)).all()


# ---- scores ---------------------------------------------------------------------------------------------------------


def test_calibration_counts_spread_censored_rows_below_their_probability():
    survival, weight = np.array([0.05, 0.95, 0.42, 0.1, 1.0]), np.array([1.0, 2.0, 1.0, 3.0, 1.0])
    is_event = np.array([True, True, False, False, True])
    rows = TimesOfRows(np.ones(5), is_event, np.zeros(5), weight)
    expected = np.zeros(10)
    expected[0] += 1.0
    expected[9] += 2.0 + 1.0
    fine = np.linspace(0.0, 1.0, 100_001)[1:] - 5e-6  # a uniform number below .42, and one below .1
    for most, each in ((0.42, 1.0), (0.1, 3.0)):
        expected += each * np.histogram(fine * most, bins=10, range=(0.0, 1.0))[0] / len(fine)
    np.testing.assert_allclose(calibration_counts(survival, rows, 10), expected, atol=1e-4)


def test_events_come_when_calibrated_curves_say():
    """Of tables without signal the statistic is near the number of bins; of curves for another time it is not."""
    rng = rng_for("calibration")
    time, end = rng.exponential(1.0, 2000), rng.exponential(2.0, 2000)
    y, event, X = np.minimum(time, end), time <= end, np.zeros((2000, 1))
    model = MODELS["tree"].fit(X[:1000], y[:1000], event=event[:1000])
    score = et.scorers.d_calibration()
    assert score(model, X[1000:], y[1000:], event=event[1000:]) > -40.0
    assert score(model, X[1000:], 0.6 * y[1000:], event=event[1000:]) < -60.0
    censored = et.scorers.log_score(model, X[1000:], y[1000:], event=event[1000:])
    dist = model.predictive(X[1000:])
    inside = event[1000:] & (y[1000:] <= dist.times[-1])
    logs = np.where(inside, dist.log_prob(y[1000:]), np.log(dist.sf(y[1000:])))
    assert censored == pytest.approx(logs.mean(), rel=1e-12)
    with pytest.raises(ValueError, match="n_bins"):
        et.scorers.d_calibration(1)


def test_rows_are_left_out_of_the_shape_of_the_baseline():
    """As if the baseline were that of all rows of other groups, at one size."""
    rng = rng_for("shape without")
    n = 30
    entry = rng.choice([0.0, 0.2], n)
    rows = TimesOfRows(entry + rng.exponential(1.0, n), rng.random(n) < 0.6, entry, rng.random(n) + 0.5)
    log_hazard, group, some = rng.normal(size=n), rng.integers(0, 12, n), np.array([3, 7, 20])
    knots = knots_of(rows)
    every = Baseline.of(rows, log_hazard, knots).hazard()
    found = shape_without(rows, log_hazard, knots, group, some)
    for row, own in zip(some, found, strict=True):
        rest = group != group[row]
        without = Baseline.of(rows.at(rest), log_hazard[rest], knots).hazard()
        np.testing.assert_allclose(own, (without / without[-1]) / (every / every[-1]), rtol=1e-9)


def test_the_curve_of_others_leaves_groups_out():
    rng = rng_for("others")
    rows = TimesOfRows(rng.exponential(1.0, 25), rng.random(25) < 0.7, np.zeros(25), np.ones(25))
    group, at = rng.integers(0, 8, 25), np.array([0.2, 0.7, 1.5])
    found = kaplan_meier_of_others(rows, group, np.array([4, 9]), at)
    for own, row in zip(found, (4, 9), strict=True):
        rest = rows.at(group != group[row])
        for value, t in zip(own, at, strict=True):
            left = 1.0
            for u in np.unique(rest.time[rest.is_event & (rest.time <= t)]):
                left *= 1.0 - (rest.is_event & (rest.time == u)).sum() / (rest.time >= u).sum()
            assert value == pytest.approx(left, rel=1e-12)
