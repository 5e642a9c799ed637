"""Laws of boosting: what may change nothing, what must get better, and whose rows have a say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

from cases import rng_for
from everytree import _kernels
from everytree.boosting import chains
from everytree.boosting.chains import (
    SMALL_TABLE,
    SPLIT_PRIORS,
    Boosted,
    BoostRule,
    Likelihood,
    Role,
    all_clearly_gain,
    boost,
    pilots_gain,
)
from everytree.boosting.scales import KEPT, SHARPENED
from everytree.boosting.trees import AdditiveTrees
from everytree.explaining.contributions import LEAST
from everytree.models.boosted import BoostedClasses, Chains
from everytree.models.centres import mix
from everytree.models.mixed import mix_probs
from everytree.posterior.rows import Rows
from everytree.predictive.paths import predictive_of_probs
from naive_boosting import add_value, path, trees_of

N, N_CODES = 90, 12
LOSSES = ["logit", "softmax", "shared softmax", "squared", "rate"]
WHOLE: dict[str, Any] = {
    "columns": np.arange(4, dtype=np.int32), "seed": 7, "learning_rate": 0.3, "tau": 1.0, "split_prior": 0.7,
    "max_steps": 8, "patience": 8, "max_leaf_nodes": 6, "max_depth": 3, "min_samples_leaf": 1, "subsample": 1.0,
    "max_features": 1.0, "max_rows": 10**6,
}  # fmt: skip
"""All rows and columns in every step: nothing is drawn."""


def table(loss: str, n: int = N, what: object = "") -> dict[str, Any]:
    """Columns of which the second has a part in the target that the first has not; the others are noise."""
    rng = rng_for("boost laws", loss, n, what)
    codes = rng.integers(0, N_CODES, (n, 4)).astype(np.uint8)
    signal = 0.4 * (codes[:, 0] - 5.5) + 1.5 * (codes[:, 1] > 6) + 0.3 * rng.normal(size=n)
    y = {
        "logit": signal > 0.7, "softmax": np.searchsorted([-0.3, 1.6], signal), "squared": signal,
        "shared softmax": np.searchsorted([-1.5, 0.0, 1.6, 2.5], signal), "rate": rng.poisson(np.exp(0.6 * signal)),
    }[loss].astype(float)  # fmt: skip
    return {
        "codes": codes, "n_codes": np.full(4, N_CODES, dtype=np.int32), "has_missing": np.zeros(4, dtype=bool), "y": y,
        "weight": None, "exposure": rng.uniform(0.5, 2.0, n) if loss == "rate" else None,
        "n_classes": {"logit": 2, "softmax": 3, "shared softmax": 5}.get(loss, 0), "loss": loss,
    }  # fmt: skip


def chain(given: dict[str, Any], role: Any = None, **options: Any) -> dict[str, Any]:
    role = np.zeros(len(given["y"])) if role is None else role
    return _kernels.booster(**given).run(role=np.asarray(role, dtype=np.uint8), **WHOLE | options)


def scores(run: dict[str, Any], codes: np.ndarray, n_steps: int | None = None) -> np.ndarray:
    """(n_rows, n_outputs) after so many steps, by walks."""
    trees_of_step = len(run["base"]) // run["value"].shape[1]
    out = np.tile(run["base"], (len(codes), 1))
    for number, tree in enumerate(trees_of(run)[: None if n_steps is None else n_steps * trees_of_step]):
        for row, score in zip(codes, out, strict=True):
            add_value(score, number, tree["value"][path(tree, row)[-1]])
    return out


def likelihood_of(given: dict[str, Any]) -> Likelihood:
    return Likelihood(given["loss"], given["y"], given["exposure"], given["n_classes"])


def taken(given: dict[str, Any], rows: np.ndarray) -> dict[str, Any]:
    """Some of the rows, in an order, as often as they are named."""
    of_rows = {name: given[name] for name in ("codes", "y", "weight", "exposure") if given[name] is not None}
    return given | {name: np.ascontiguousarray(values[rows]) for name, values in of_rows.items()}


losses = pytest.mark.parametrize("loss", LOSSES)

# ---- one chain ------------------------------------------------------------------------------------------------------


@losses
def test_a_row_of_weight_three_is_three_rows(loss):
    given, times = table(loss), rng_for("times", loss).integers(1, 4, N)
    weighted = chain(given | {"weight": times.astype(float)})
    repeated = chain(taken(given, np.repeat(np.arange(N), times)))
    np.testing.assert_allclose(repeated["base"], weighted["base"], rtol=1e-12)
    found, literal = (scores(run, given["codes"]) for run in (weighted, repeated))  # trees may part ways at ties
    np.testing.assert_allclose(found, literal, rtol=1e-8, atol=1e-9)


@losses
def test_rows_of_weight_zero_are_no_rows(loss):
    """Where leaves have no least number of rows."""
    given, weight = table(loss), np.where(np.arange(N) % 4 == 0, 0.0, 1.5)
    all_rows = chain(given | {"weight": weight})
    some = chain(taken(given | {"weight": weight}, np.flatnonzero(weight)))
    found, literal = (scores(run, given["codes"][weight > 0.0]) for run in (all_rows, some))
    np.testing.assert_allclose(found, literal, rtol=1e-8, atol=1e-9)


@losses
def test_the_order_of_rows_does_not_matter(loss):
    given, order = table(loss), rng_for("order of rows", loss).permutation(N)
    first, second = chain(given), chain(taken(given, order))
    np.testing.assert_allclose(scores(second, given["codes"]), scores(first, given["codes"]), rtol=1e-8, atol=1e-9)


@losses
def test_the_order_of_columns_does_not_matter(loss):
    given, order = table(loss), np.array([2, 0, 3, 1])
    moved = given | {"codes": np.ascontiguousarray(given["codes"][:, order])}
    first, second = chain(given), chain(moved)
    np.testing.assert_allclose(scores(second, moved["codes"]), scores(first, given["codes"]), rtol=1e-8, atol=1e-9)
    assert {int(order[k]) for k in second["feature"] if k >= 0} == {int(k) for k in first["feature"] if k >= 0}


@losses
def test_codes_of_two_bytes_are_those_of_one(loss):
    given = table(loss)
    first, second = chain(given), chain(given | {"codes": given["codes"].astype(np.uint16)})
    for name in ("feature", "threshold", "value", "base"):
        np.testing.assert_array_equal(second[name], first[name])


@losses
def test_each_step_lowers_the_loss_of_the_rows_that_it_is_grown_on(loss):
    given = table(loss)
    run, own = chain(given, max_steps=20, patience=20), likelihood_of(given)
    totals = [own.losses(scores(run, given["codes"], step)).sum() for step in range(run["n_steps"] + 1)]
    assert len(totals) == 21
    assert (np.diff(totals) < 0.0).all()
    assert totals[-1] < 0.7 * totals[0] or loss == "rate"  # its loss may be negative


@losses
def test_a_smaller_learning_rate_goes_in_the_same_direction_and_less_far(loss):
    given = table(loss)
    large, small = (chain(given, learning_rate=rate, max_steps=1) for rate in (0.4, 0.1))
    np.testing.assert_array_equal(small["feature"], large["feature"])
    np.testing.assert_allclose(4.0 * small["value"], large["value"], rtol=1e-12)


@losses
def test_a_stronger_prior_keeps_leaves_closer_to_zero(loss):
    given = table(loss)
    sizes = [np.abs(chain(given, tau=tau, max_steps=1)["value"]).max() for tau in (0.1, 10.0, 1e6)]
    assert sizes[0] > sizes[1] > sizes[2]
    assert sizes[2] < 1e-3


@losses
def test_without_splits_in_the_prior_all_rows_have_one_score(loss):
    given = table(loss)
    found = scores(chain(given, split_prior=1e-300), given["codes"])
    np.testing.assert_allclose(found, found[:1].repeat(N, axis=0), rtol=1e-9, atol=1e-12)


@losses
def test_trees_are_no_larger_than_asked(loss):
    given, role = table(loss), np.arange(N) % 3 == 0
    run = chain(given, role, max_leaf_nodes=5, max_depth=2, min_samples_leaf=8)
    for tree in trees_of(run):
        assert (tree["feature"] < 0).sum() <= 4
        paths = [path(tree, row) for row in given["codes"][~role]]
        assert max(map(len, paths)) <= 3
        assert min(np.bincount([nodes[-1] for nodes in paths])[np.unique([nodes[-1] for nodes in paths])]) >= 8
    assert len(chain(given, max_leaf_nodes=2)["feature"]) <= 3 * 8 * len(run["base"])


@losses
def test_only_given_columns_are_split_on(loss):
    run = chain(table(loss), columns=np.array([1, 3], dtype=np.int32))
    assert {int(k) for k in run["feature"] if k >= 0} <= {1, 3}
    assert (run["feature"] == 1).any()


@losses
def test_a_share_of_the_columns_is_drawn_anew_for_each_tree(loss):
    run = chain(table(loss), max_features=0.25, max_steps=12, patience=12)
    used = [{int(k) for k in tree["feature"] if k >= 0} for tree in trees_of(run)]
    assert max(map(len, used)) == 1
    assert len(set.union(*used)) >= 3


@losses
def test_the_seed_decides_what_is_drawn(loss):
    given, drawn = table(loss), {"subsample": 0.5, "max_features": 0.5}
    first, again, other = (chain(given, **drawn, seed=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first["value"], again["value"])
    assert len(first["value"]) != len(other["value"]) or not np.array_equal(first["value"], other["value"])
    first, second = (scores(chain(given, seed=seed), given["codes"]) for seed in (3, 4))
    if loss == "shared softmax":  # directions are always drawn
        return
    np.testing.assert_allclose(first, second, rtol=1e-8, atol=1e-9)  # of all rows and columns nothing is drawn


@losses
def test_a_chain_ends_where_its_own_rows_say(loss):
    given, role = table(loss), np.arange(N) % 3
    run = chain(given, role, max_steps=300, patience=5)
    assert run["n_steps"] == np.argmin(run["losses"])
    assert len(run["losses"]) - 1 < 300
    own, stops = likelihood_of(given), role == Role.STOPS
    for step in {0, 1, run["n_steps"]}:
        mean = own.at(stops).losses(scores(run, given["codes"][stops], step)).mean()
        assert run["losses"][step] == pytest.approx(mean, rel=1e-9)
    aside = scores(run, given["codes"][role > 0])
    if loss == "shared softmax":
        aside -= logsumexp(aside, axis=1, keepdims=True)
    np.testing.assert_allclose(run["aside"], aside, rtol=1e-9, atol=1e-12)
    assert len(run["n_nodes"]) == run["n_steps"] * (1 if loss == "shared softmax" else len(run["base"]))


@losses
def test_a_chain_that_is_stopped_takes_no_more_steps(loss):
    booster = _kernels.booster(**table(loss))
    booster.stop()
    run = booster.run(role=np.zeros(N, dtype=np.uint8), **WHOLE | {"max_steps": 10**9, "patience": 10**9})
    assert run["n_steps"] == 0
    assert run["feature"].size == 0


def test_the_other_class_has_the_opposite_score():
    given = table("logit")
    first, second = chain(given), chain(given | {"y": 1.0 - given["y"]})
    np.testing.assert_allclose(scores(second, given["codes"]), -scores(first, given["codes"]), rtol=1e-8, atol=1e-9)


def test_classes_in_another_order_have_the_same_scores():
    given, order = table("softmax"), np.array([2, 0, 1])
    first, second = chain(given), chain(given | {"y": order[given["y"].astype(int)].astype(float)})
    np.testing.assert_allclose(
        scores(second, given["codes"])[:, order], scores(first, given["codes"]), rtol=1e-8, atol=1e-9
    )


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_another_origin_and_unit_of_numbers_move_the_scores(unit):
    """With an averaging over prunings that knows the size of errors."""
    given = table("squared")
    first, second = chain(given), chain(given | {"y": unit * (given["y"] + 3.0)})
    np.testing.assert_array_equal(second["threshold"], first["threshold"])
    np.testing.assert_allclose(
        scores(second, given["codes"]) / unit - 3.0, scores(first, given["codes"]), rtol=1e-6, atol=1e-8
    )


def test_a_missing_value_may_be_all_that_matters():
    rng = rng_for("missing")
    codes = rng.integers(0, N_CODES, (N, 2)).astype(np.uint8)
    is_missing = rng.random(N) < 0.4
    codes[is_missing, 0] = 255
    given = table("squared") | {
        "codes": codes, "n_codes": np.full(2, N_CODES, dtype=np.int32), "has_missing": np.array([True, False]),
        "y": np.where(is_missing, 5.0, 0.0),
    }  # fmt: skip
    run = chain(given, columns=np.arange(2, dtype=np.int32), max_steps=30, patience=30)
    found = scores(run, codes)[:, 0]
    assert found[is_missing].min() > 4.0
    assert found[~is_missing].max() < 1.0
    (root,) = {(int(tree["feature"][0]), int(tree["missing_child"][0]) >= 0) for tree in trees_of(run)[:1]}
    assert root == (0, True)


def test_columns_that_are_not_missing_have_no_branch_for_it():
    run = chain(table("logit"))
    assert (run["missing_child"] < 0).all()


@pytest.mark.parametrize(("change", "message"), [
    ({"role": np.full(N, 3, dtype=np.uint8)}, "role must be 0, 1 or 2"),
    ({"role": np.zeros(N - 1, dtype=np.uint8)}, "role must have one entry a row"),
    ({"columns": np.array([4], dtype=np.int32)}, "column"), ({"columns": np.array([-1], dtype=np.int32)}, "column"),
])  # fmt: skip
def test_what_a_run_cannot_take_is_named(change, message):
    options = WHOLE | {"role": np.zeros(N, dtype=np.uint8)} | change
    with pytest.raises(ValueError, match=message):
        _kernels.booster(**table("logit")).run(**options)


# ---- chains together ------------------------------------------------------------------------------------------------

RULE = BoostRule(n_chains=3, max_steps=25, patience=8, max_leaf_nodes=5, learning_rate=0.3, split_prior=0.8)


def boosted(
    given: dict[str, Any],
    rule: BoostRule = RULE,
    *,
    group: np.ndarray | None = None,
    seed: int = 0,
    n_jobs: int = 1,
    factors: Any = SHARPENED,
    **options: Any,
) -> Boosted:
    rows = Rows(given["codes"], given["y"], given["weight"], {}, group)
    return boost(
        rows, likelihood_of(given), rule, n_codes=given["n_codes"], has_missing=given["has_missing"], factors=factors,
        rng=np.random.default_rng(seed), n_jobs=n_jobs, **options,
    )  # fmt: skip


def same(first: Boosted, second: Boosted) -> bool:
    """Every bit of two results."""
    return (
        all(np.array_equal(a.value, b.value) for a, b in zip(first.chains, second.chains, strict=True))
        and all(np.array_equal(getattr(first, name), getattr(second, name)) for name in ("fold", "base", "departure"))
        and (first.factor, first.n_steps, first.split_prior) == (second.factor, second.n_steps, second.split_prior)
        and np.array_equal(first.gains, second.gains)
    )


@losses
def test_threads_change_no_bit(loss):
    given = table(loss)
    assert same(boosted(given, n_jobs=3), boosted(given))
    assert not same(boosted(given, seed=1), boosted(given))


@losses
def test_rows_are_better_predicted_by_chains_that_left_them_out_than_without_columns(loss):
    given = table(loss, 300)
    found, own = boosted(given), likelihood_of(given)
    assert own.losses(found.base + found.departure).mean() < own.losses(found.base).mean() - 0.02
    assert found.factor > 0.0
    assert found.gains[:2].sum() > 3.0 * found.gains[2:].sum()
    assert len(found.chains) == len(found.n_steps) == 3
    assert np.unique(found.fold).tolist() == [0, 1, 2]


@losses
def test_on_noise_no_tree_is_kept(loss):
    given = table(loss, 200)
    found = boosted(given | {"y": rng_for("noise that is boosted", loss).permutation(given["y"])})
    assert found.factor == 0.0
    np.testing.assert_array_equal(found.departure, 0.0)
    assert found.n_steps == [0, 0, 0]
    assert found.gains.tolist() == [0.0] * 4


def test_groups_are_never_split():
    given, group = table("logit", 120), np.arange(120) // 4
    found = boosted(given, group=group)
    for number in range(30):
        assert len(np.unique(found.fold[group == number])) == 1
    few = boosted(given, group=np.arange(120) % 2)
    assert len(few.chains) == 2
    alone = boosted(given, group=np.zeros(120, dtype=np.int64))
    assert (len(alone.chains), alone.factor) == (1, 0.0)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_a_few_rows_have_as_many_chains_as_rows_at_most(n):
    found = boosted(table("squared", n))
    assert len(found.chains) == min(n, 3)
    assert np.isfinite(found.base + found.departure).all()


def test_every_chain_reports_that_it_is_done():
    done: list[int] = []
    boosted(table("squared"), progress=lambda: done.append(1))
    assert len(done) == 3


@losses
def test_an_interrupt_stops_all_chains(loss):
    """What the caller has is as it was: nothing is returned, and chains that still run take no more steps."""

    def interrupt() -> None:
        raise KeyboardInterrupt

    given = table(loss)
    before = {name: values.copy() for name, values in given.items() if isinstance(values, np.ndarray)}
    with pytest.raises(KeyboardInterrupt):
        boosted(given, replace(RULE, max_steps=40, patience=40), progress=interrupt, n_jobs=2)
    for name, values in before.items():
        np.testing.assert_array_equal(given[name], values)
    assert same(boosted(given), boosted(given))


def test_without_noise_a_node_is_split_more_readily():
    """The larger split prior is tried where hardly any noise is left, and kept where it predicts better."""
    rule, rng = replace(RULE, split_prior=None, max_steps=200, patience=20, max_leaf_nodes=8), rng_for("split priors")
    codes = rng.integers(0, N_CODES, (1500, 4)).astype(np.uint8)
    given, is_above = table("logit", 1500) | {"codes": codes}, codes[:, 0] + codes[:, 1] > 11
    clean, noisy = (
        boosted(given | {"y": (is_above ^ (rng.random(1500) < share)).astype(float)}, rule).split_prior
        for share in (0.0, 0.2)
    )
    assert (clean, noisy) == (SPLIT_PRIORS[1], SPLIT_PRIORS[0])


def test_the_average_of_the_chains_predicts_as_they_do_together():
    given = table("softmax", 200)
    found = boosted(given, factors=KEPT)
    trees = AdditiveTrees.average(found.chains, found.factor)
    each = np.mean([one.scores(given["codes"]) for one in found.chains], axis=0)
    base = np.mean([one.base for one in found.chains], axis=0)
    np.testing.assert_allclose(trees.scores(given["codes"]), base + found.factor * (each - base), rtol=1e-9)
    model = BoostedClasses(trees, 1.0, Chains(found.gains, 0.8, found.n_steps), 200)
    probs = model.probs(given["codes"])
    np.testing.assert_allclose(probs.sum(axis=1), 1.0)
    np.testing.assert_allclose(model.predictive(given["codes"]).probs(), probs, rtol=1e-14)
    assert model.feature_importances().sum() == pytest.approx(1.0)
    assert replace(model, chains=replace(model.chains, gains=np.zeros(4))).feature_importances().tolist() == [0.0] * 4


@losses
def test_rows_through_each_node_are_counted(loss):
    given, weight = table(loss), rng_for("mass", loss).uniform(size=N)
    trees = AdditiveTrees.average(boosted(given, factors=KEPT).chains)
    mass = trees.mass_of(given["codes"], weight, n_jobs=2)
    arrays = {"n_nodes": trees.n_nodes, "value": trees.value, **trees.nodes}
    literal = []
    for tree in trees_of(arrays):
        own = np.zeros(len(tree["feature"]))
        for row, w in zip(given["codes"], weight, strict=True):
            own[path(tree, row)] += w
        literal.append(own)
    np.testing.assert_allclose(mass, np.concatenate(literal), rtol=1e-12)


@losses
def test_chains_know_the_rows_in_each_node(loss):
    given = table(loss)
    weight = rng_for("known mass", loss).integers(1, 4, N).astype(float)
    for own in (None, weight):
        trees = AdditiveTrees.average(boosted(given | {"weight": own}, factors=KEPT).chains)
        assert trees.mass is not None
        np.testing.assert_array_equal(trees.mass, trees.mass_of(given["codes"], own))


# ---- rules ----------------------------------------------------------------------------------------------------------


def test_larger_tables_are_boosted_in_fewer_larger_steps():
    rules = [BoostRule().for_rows(n) for n in (10, SMALL_TABLE, 10 * SMALL_TABLE, 10**7)]
    assert rules[0] == rules[1]
    for name, grows in {"learning_rate": True, "max_leaf_nodes": True, "max_depth": True, "patience": False}.items():
        values = [getattr(rule, name) for rule in rules]
        assert values == sorted(values, reverse=not grows)
        assert values[0] != values[-1]
    assert rules[-1].learning_rate == pytest.approx(4.0 * rules[0].learning_rate)


def test_what_is_given_stays():
    given = BoostRule(learning_rate=0.5, patience=3, max_leaf_nodes=4, max_depth=2)
    assert given.for_rows(10**6) == given
    assert given.kernel_options(0.9, 0.5)["split_prior"] == 0.9


# ---- the share of columns -------------------------------------------------------------------------------------------


def product(n: int, what: object = "") -> dict[str, Any]:
    """The first two of six columns say which sign the target has, and neither of them anything alone."""
    rng = rng_for("share of columns", n, what)
    codes = rng.integers(0, N_CODES, (n, 6)).astype(np.uint8)
    y = np.where((codes[:, 0] > 5) == (codes[:, 1] > 5), 1.0, -1.0) + 0.3 * rng.normal(size=n)
    return {
        "codes": codes, "n_codes": np.full(6, N_CODES, dtype=np.int32), "has_missing": np.zeros(6, dtype=bool), "y": y,
        "weight": None, "exposure": None, "n_classes": 0, "loss": "squared",
    }  # fmt: skip


@pytest.fixture
def tried(monkeypatch):
    """Shares of columns of all chains that are run; the choice is made on tables of any size."""
    shares, options = [], BoostRule.kernel_options

    def kernel_options(self, split_prior, max_features):
        shares.append(max_features)
        return options(self, split_prior, max_features)

    monkeypatch.setattr(BoostRule, "kernel_options", kernel_options)
    monkeypatch.setattr(chains, "FEW_ROWS", 0)
    return shares


AUDITIONED = BoostRule(n_chains=4, max_steps=40, learning_rate=0.3, patience=10, max_leaf_nodes=6, split_prior=0.8)


def test_all_columns_are_used_where_an_interaction_asks_for_them(tried):
    found = boosted(product(600), AUDITIONED)
    assert tried == [0.5] * 4 + [1.0] * 8  # once more on all rows
    given = boosted(product(600), replace(AUDITIONED, max_features=0.5))
    errors = [np.mean((one.base + one.departure - product(600)["y"][:, None]) ** 2) for one in (found, given)]
    assert errors[0] < 0.8 * errors[1]


def test_where_nothing_is_gained_half_of_the_columns_stay(tried):
    noise = product(600) | {"y": rng_for("share of columns, noise").normal(size=600)}
    found = boosted(noise, AUDITIONED, factors=KEPT)
    same_rule = boosted(noise, replace(AUDITIONED, max_features=0.5), factors=KEPT)
    assert all(np.array_equal(a.value, b.value) for a, b in zip(found.chains, same_rule.chains, strict=True))
    assert max(tried[-4:]) == 0.5


@pytest.mark.parametrize("fold", range(4))
def test_rows_that_are_scored_have_no_say_in_the_share_of_columns(fold):
    rng = rng_for("gains", fold)
    gains = [rng.normal(0.1, 1.0, 500) for _ in range(4)]
    for own in (np.full(500, 1e3), np.full(500, -1e3)):
        others = [*gains[:fold], own, *gains[fold + 1 :]]
        assert pilots_gain(others[:2], 4)[fold] == pilots_gain(gains[:2], 4)[fold]
        assert all_clearly_gain(others, 1.0)[fold] == all_clearly_gain(gains, 1.0)[fold]


def test_gains_are_clear_by_the_number_of_independent_rows():
    gains = [rng_for("gains", k).normal(0.2, 1.0, 300) for k in range(4)]
    assert all(all_clearly_gain(gains, 1.0))
    assert not any(all_clearly_gain(gains, 0.05))  # rows in groups of 20
    assert not any(all_clearly_gain([-each for each in gains], 1.0))
    assert pilots_gain([np.array([2.0]), np.array([-1.0])], 3) == [False, True, True, True]


# ---- mixtures -------------------------------------------------------------------------------------------------------


def probabilities(n_classes: int) -> np.ndarray:
    return rng_for("mixtures", n_classes).dirichlet(np.ones(n_classes), size=(2, 30))


@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_mixture_is_the_normalised_product_of_powers(n_classes):
    first, second = probabilities(n_classes)
    literal = first**0.3 * second**0.7
    np.testing.assert_allclose(mix_probs(first, second, 0.7), literal / literal.sum(axis=1, keepdims=True), rtol=1e-10)
    np.testing.assert_allclose(mix_probs(first, second, 0.0), first, rtol=1e-10)
    np.testing.assert_allclose(mix_probs(first, second, 1.0), second, rtol=1e-10)
    sharp = literal**2.0 / (literal**2.0).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(mix_probs(first, second, 0.7, 2.0), sharp, rtol=1e-10)


def test_probabilities_of_zero_can_be_mixed():
    sure = np.array([[1.0, 0.0]])
    assert np.isfinite(mix_probs(sure, sure, 0.5)).all()
    assert mix_probs(sure, np.array([[0.0, 1.0]]), 0.5).tolist() == [[0.5, 0.5]]
    assert LEAST > 0.0
    np.testing.assert_allclose(mix(np.array([1.0]), np.array([3.0]), 0.25), [1.5])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_distributions_over_classes_have_their_probabilities(n_classes):
    probs, _ = probabilities(n_classes)
    dist, classes = predictive_of_probs(probs), np.arange(30) % n_classes
    np.testing.assert_allclose(dist.probs(), probs, rtol=1e-14)
    np.testing.assert_allclose(dist.log_prob(classes), np.log(probs[np.arange(30), classes]), rtol=1e-12)
    draws = dist.sample(4000, rng=np.random.default_rng(0))
    shares = np.stack([(draws == k).mean(axis=1) for k in range(n_classes)], axis=1)
    np.testing.assert_allclose(shares, probs, atol=0.05)
