"""What the report says of the quality of a model: whom it judges, by which rows, and how well."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes
from sklearn.metrics import brier_score_loss, log_loss

import everytree as et
from everytree.report import report_html
from everytree.report.contenders import parts_of
from everytree.report.rows import read_rows
from report_cases import classes_of, mixed_table, numbers_of, signal, visits


def scores_of(page: str, name: str) -> list[float]:
    """The numbers of the first line of scores with this name."""
    line = re.search(rf'<th scope="row">{name}.*?</tr>', page)[0]
    return [float(score) for score in re.findall(r"<td>(.*?)</td>", line)]


def heads_of(page: str) -> list[list[str]]:
    """The heads of the tables of scores."""
    heads = re.findall(r'class="scores"><thead><tr>(.*?)</tr>', page)
    return [re.findall(r">(.*?)</th>", head)[1:] for head in heads]


REFITTED = ["the same estimator, refitted", "plain forest"]


def test_quality_of_classes_is_that_of_rows_not_seen():
    table = mixed_table(200)
    table["y"] = np.random.default_rng(5).choice(["a", "b"], len(table))  # nothing to learn
    model = et.MetaForestClassifier(n_estimators=5, random_state=0).fit(table.drop(columns="y"), table["y"])
    page = report_html(model, table)  # the one column that the model does not read is the target
    (ours, plain) = scores_of(page, "Log-loss")
    assert 0.65 < ours < 0.85
    assert plain > ours
    for words in ("Calibration", "ROC", "three quarters", "standard error"):
        assert words in page


def test_the_head_of_a_table_says_whom_it_judges(fitted):
    model, table = fitted["forest"], mixed_table(80)
    labels = classes_of(table)
    assert heads_of(report_html(model, table, target=labels)) == [REFITTED]
    page = report_html(model, table, target=labels, held_out=True)
    assert heads_of(page) == [["this model"], REFITTED]
    assert page.index("This model, on rows it has not seen") < page.index("The same estimator, refitted")


@pytest.mark.parametrize(("weighted", "n_classes"), [(False, 2), (True, 3)])
def test_new_rows_score_the_model_itself(weighted, n_classes):
    table, new = mixed_table(300), mixed_table(420)[300:]
    labels = classes_of(mixed_table(420), n_classes)
    model = et.MetaForestClassifier(n_estimators=5, random_state=0).fit(table, classes_of(table, n_classes))
    weight = np.random.default_rng(0).integers(0, 4, len(new)).astype(float) if weighted else None
    page = report_html(model, new, target=labels[300:], held_out=True, sample_weight=weight)
    probs = model.predict_proba(new)
    assert scores_of(page, "Log-loss") == [pytest.approx(log_loss(labels[300:], probs, sample_weight=weight), rel=1e-3)]
    right = model.predict(new) == labels[300:]
    assert scores_of(page, "Accuracy") == [pytest.approx(np.average(right, weights=weight), rel=1e-3)]
    of_labels = (probs, None) if n_classes > 2 else (probs[:, 1], model.classes_[1])
    brier = brier_score_loss(labels[300:], of_labels[0], sample_weight=weight, pos_label=of_labels[1])
    assert scores_of(page, "Brier score") == [pytest.approx(brier, rel=1e-3)]
    assert ("by their weights" in page) == weighted


def test_rows_of_weight_0_are_as_if_they_were_not_there(fitted):
    table = mixed_table(120)
    labels, weight = classes_of(table), np.repeat([1.0, 0.0], 60)
    options = {"held_out": True, "sample_weight": weight}
    assert report_html(fitted["tree"], table, target=labels, **options) == report_html(
        fitted["tree"], table[:60], target=labels[:60], held_out=True
    )


def test_exposure_goes_into_predictions_and_into_the_plain_forest():
    rng, table = np.random.default_rng(0), mixed_table(600)
    years = rng.uniform(0.2, 20.0, 600)
    y = rng.poisson(years * np.exp(0.4 * signal(table)))
    frame = table.assign(years=years, n=y)
    model = et.MetaForestRegressor(n_estimators=5, family="poisson", random_state=0)
    model.fit(table[:400], y[:400], exposure=years[:400])
    page = report_html(model, frame[400:], target="n", exposure="years", held_out=True)
    expected = model.predict(table[400:], exposure=years[400:])
    assert scores_of(page, "Root mean") == [pytest.approx(np.sqrt(np.mean((expected - y[400:]) ** 2)), rel=1e-3)]
    refitted = page[page.index("refitted to parts") :]
    ours, plain = scores_of(refitted, "Root mean")
    without = np.std(y[400:])  # a forest that does not know exposure is about as bad
    assert max(ours, plain) < 0.7 * without
    with pytest.raises(ValueError, match="exposure is None, but the model was fitted with it"):
        report_html(model, frame, target="n")


@pytest.mark.parametrize("kind", [et.MetaTreeRegressor, et.MetaBoostRegressor])
def test_times_that_were_cut_short_count_by_the_probability_of_longer_ones(kind):
    rng, table = np.random.default_rng(0), mixed_table(400)
    times, limit = rng.exponential(np.exp(0.4 * signal(table))), rng.exponential(2.0, 400)
    y, censored = np.minimum(times, limit), (limit < times).astype(float)
    model = kind(max_depth=3, family="exponential", random_state=0)
    model.fit(table[:250], y[:250], censored=censored[:250])
    page = report_html(model, table[250:], target=y[250:], censored=censored[250:], held_out=True)
    dist, cut = model.predictive(table[250:]), censored[250:] > 0.0
    loss = np.where(cut, -np.log1p(-dist.cdf(y[250:])), -dist.log_prob(y[250:]))
    assert scores_of(page, "Minus log likelihood") == [pytest.approx(loss.mean(), rel=1e-3)]
    assert 0.75 < scores_of(page, "90% intervals")[0] < 1.0
    assert heads_of(page) == [["this model"], REFITTED[:1]]


@pytest.mark.parametrize("family", ["normal", "poisson"])
def test_quality_of_numbers(family):
    table = mixed_table(200)
    y = numbers_of(table, family)
    model = et.MetaForestRegressor(n_estimators=5, random_state=0, family=family).fit(table, y)
    page = report_html(model, table, target=y)
    held = float(re.search(r"90% intervals.*?<td>(.*?)</td>", page)[1])
    assert 0.8 < held <= 1.0
    assert "CRPS" in page
    assert "PIT" in page


def test_tables_without_names_and_of_polars():
    polars = pytest.importorskip("polars")
    X, y = load_diabetes(return_X_y=True)
    model = et.MetaTreeRegressor(max_depth=2, random_state=0).fit(X, y)
    assert "CRPS" in report_html(model, X[:100], target=y[:100])
    with pytest.raises(ValueError, match="target must be an array"):
        report_html(model, X[:100], target="y")
    frame = polars.DataFrame({"a": X[:100, 2], "b": X[:100, 8], "y": y[:100]})
    model = et.MetaTreeRegressor(max_depth=2, random_state=0).fit(frame.drop("y"), frame["y"])
    assert "CRPS" in report_html(model, frame, target="y")


def test_few_rows_are_not_compared(fitted):
    table = mixed_table(20)
    assert "say little" in report_html(fitted["forest"], table, target=classes_of(table))
    assert "nothing to tell apart" in report_html(fitted["one class"], mixed_table(60), target=["only"] * 60)


# ---- rows that belong together ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def of_visits():
    return et.MetaForestClassifier(n_estimators=5, random_state=0).fit(visits(), "y", groups="patient")


def test_rows_of_one_group_are_in_one_part(of_visits):
    table = visits()
    page = report_html(of_visits, table, target="y")  # the model knows the name of their column
    assert max(scores_of(page, "Accuracy")) < 0.8
    assert "those that had not seen any row of its group" in page
    told = {"by name": table, "as an array": table.drop(columns="patient")}
    for how, given in told.items():
        groups = "patient" if how == "by name" else table["patient"].to_numpy()
        assert report_html(of_visits, given, target="y", groups=groups) == page, how
    alone = et.MetaForestClassifier(n_estimators=5, random_state=0).fit(table[["a", "b"]], table["y"])
    assert min(scores_of(report_html(alone, table[["a", "b", "y"]]), "Accuracy")) > 0.95  # what groups are for
    assert max(scores_of(report_html(alone, table, target="y", groups="patient"), "Accuracy")) < 0.8


def test_a_model_of_groups_is_not_refitted_to_rows_without_them(of_visits):
    table = visits().drop(columns="patient")
    page = report_html(of_visits, table)
    assert heads_of(page) == []
    assert "fitted with groups of rows that belong together, by &#x27;patient&#x27;" in page
    assert heads_of(report_html(of_visits, table[1:], held_out=True)) == [["this model"]]
    assert "belong to one group" in report_html(of_visits, table, groups=np.zeros(len(table)))


def test_there_are_no_more_parts_than_groups(of_visits):
    page = report_html(of_visits, visits(), target="y", groups=np.arange(len(visits())) % 3)
    assert "fitted again 3 times to all but one of 3 parts" in page


def test_rows_that_repeat_each_other_are_in_one_part():
    rng = np.random.default_rng(0)
    once = pd.DataFrame(rng.normal(size=(90, 4)), columns=list("abcd")).assign(
        y=rng.permutation(np.tile(["no", "yes"], 45))
    )
    table = pd.concat([once] * 3, ignore_index=True)
    model = et.MetaForestClassifier(n_estimators=5, random_state=0).fit(once, "y")
    with pytest.warns(UserWarning, match="taken for repeats"):
        page = report_html(model, table)
    assert max(scores_of(page, "Accuracy")) < 0.7


@pytest.mark.parametrize(
    "group", [np.arange(90), np.arange(90) // 7, np.repeat([0, 1], [80, 10])], ids=["rows", "few", "two"]
)
def test_parts_hold_whole_groups_and_every_row(group, fitted):
    table = mixed_table(90)
    part = parts_of(read_rows(fitted["forest"], table, classes_of(table), None, {}, group))
    assert len(part) == 90
    assert len({(g, p) for g, p in zip(group, part, strict=True)}) == len(set(group))
    assert set(part) == set(range(min(4, len(set(group)))))
