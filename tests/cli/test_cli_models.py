"""Every model that the command line fits: what it says of its quality, and what can be done with it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from sklearn.datasets import load_breast_cancer, make_friedman1

import everytree as et
from command import fails, says
from everytree.__main__ import main

KINDS = {
    ("forest", "class"): et.MetaForestClassifier, ("forest", "number"): et.MetaForestRegressor,
    ("boost", "class"): et.MetaBoostClassifier, ("boost", "number"): et.MetaBoostRegressor,
    ("ensemble", "class"): et.MetaEnsembleClassifier, ("ensemble", "number"): et.MetaEnsembleRegressor,
    ("tree", "class"): et.MetaTreeClassifier, ("tree", "number"): et.MetaTreeRegressor,
    ("exact", "class"): et.ExactTreeClassifier, ("exact", "number"): et.ExactTreeRegressor,
}  # fmt: skip


def table_of(kind: str) -> pa.Table:
    if kind == "class":
        X, y = load_breast_cancer(return_X_y=True)
        return pa.table({**{f"c{k}": X[:200, k] for k in range(5)}, "y": np.where(y[:200] > 0, "good", "bad")})
    X, y = make_friedman1(200, random_state=0)
    return pa.table({**{f"c{k}": X[:, k] for k in range(5)}, "y": y})


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for kind in ("class", "number"):
        pyarrow.csv.write_csv(table_of(kind), tmp_path / f"{kind}.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def boosted(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], str]:
    """Files of boosted models, for tests that only read."""
    place, found = tmp_path_factory.mktemp("boosted"), {}
    for kind in ("class", "number"):
        pyarrow.csv.write_csv(table_of(kind), place / f"{kind}.csv")
        for model in ("boost", "ensemble"):
            found[model, kind] = f"{place}/{model}_{kind}.et"
            assert main(["fit", f"{place}/{kind}.csv", "-y", "y", "--model", model, "-o", found[model, kind]]) == 0
    return found


@pytest.mark.parametrize(("model", "kind"), KINDS, ids=" ".join)
def test_the_model_is_the_one_that_python_fits(here, capfd, model, kind):
    table, small = table_of(kind), ["--depth", "2"] if model == "exact" else []
    assert main(["fit", f"{kind}.csv", "-y", "y", "--model", model, "-o", "m.et", *small]) == 0
    said, ours = capfd.readouterr().err, et.load("m.et")
    parameters: dict[str, Any] = {"max_depth": 2} if small else {"random_state": 0}
    theirs = KINDS[model, kind](**parameters).fit(table.drop_columns(["y"]), table["y"])
    assert type(ours) is type(theirs)
    assert ours.get_params() == theirs.get_params()
    answers = [one.predict_proba(table) if kind == "class" else one.predict(table) for one in (ours, theirs)]
    np.testing.assert_array_equal(*answers)
    assert "for 'y', 200 rows" in said
    assert ("log evidence" in said) == (model not in ("boost", "ensemble"))
    if model == "exact":
        assert "had not seen" not in said
    else:
        assert said.endswith(f"m.et: {theirs.unseen_.sentence()}\n")
        assert ours.unseen_ == theirs.unseen_


@pytest.mark.parametrize(("model", "kind"), [(m, k) for m in ("boost", "ensemble") for k in ("class", "number")])
def test_boosted_models_predict_show_and_report(boosted, here, capfd, model, kind):
    path, table = boosted[model, kind], table_of(kind)
    fitted = et.load(path)
    options = ["--proba"] if kind == "class" else ["--interval", ".9", "--std"]
    said = says(capfd, "predict", path, f"{kind}.csv", *options)
    got = pyarrow.csv.read_csv(pa.BufferReader(said.encode()))
    if kind == "class":
        expected = fitted.predict_proba(table)
    else:
        expected = np.column_stack([*fitted.predict(table, return_std=True), fitted.predict_interval(table)])
    np.testing.assert_array_equal(np.column_stack(got.columns[1 if kind == "class" else 0 :]), expected)

    assert main(["show", path, "--top", "3"]) == 0
    said = capfd.readouterr().out
    beside = r" and a forest of 100" if model == "ensemble" else ""
    assert re.search(rf"model +{type(fitted).__name__} of [\d,]+ boosted trees{beside}\n", said)
    assert "200: " in said
    assert f"unseen    {fitted.unseen_.sentence()}" in said
    assert "the 3 most important of 5 columns" in said
    assert "evidence" not in said
    assert "tree of the largest" not in said

    assert main(["report", path, "-o", "page.html"]) == 0
    page = Path("page.html").read_text(encoding="utf-8")
    assert "boosted trees, each averaged" in page
    assert "had not seen" in page
    assert "The most probable trees" not in page


def test_the_report_judges_a_boosted_model_on_new_rows(boosted, here, capfd):
    table = table_of("class").slice(100)
    pyarrow.csv.write_csv(table.append_column("more", table["c0"]), "new.csv")
    assert main(["report", boosted["boost", "class"], "new.csv", "-o", "page.html"]) == 0
    assert "which are new to the model" in capfd.readouterr().err
    assert "This model, on rows it has not seen" in Path("page.html").read_text(encoding="utf-8")


def test_rows_are_not_added_to_boosted_models(boosted, here, capfd):
    for path in (boosted["boost", "class"], boosted["ensemble", "number"]):
        before = Path(path).read_bytes()
        assert "to which no rows can be added" in fails(capfd, "update", path, "class.csv", "--target", "y")
        assert "to which no rows can be added" in fails(capfd, "merge", path, path, "--out", "m.et")
        assert Path(path).read_bytes() == before
        assert not Path("m.et").exists()


def test_options_that_a_model_has_no_use_for(here, capfd):
    fit = ["fit", "class.csv", "-y", "y"]
    assert "--trees is for --model forest or ensemble" in fails(capfd, *fit, "--model", "boost", "--trees", "5")
    assert "--depth is for --model forest or" in fails(capfd, *fit, "--model", "ensemble", "--depth", "3")
    for model in ("boost", "ensemble"):
        assert f"--model {model} has no structures without rows" in fails(capfd, *fit, "--model", model, "--empty")
        said = fails(capfd, "fit", "number.csv", "-y", "y", "--model", model, "--family", "linear")
        assert f"--model {model} takes normal, poisson, exponential, lognormal" in said
    assert "--model" in fails(capfd, *fit, "--model", "bush", code=2)
    assert not Path("model.et").exists()


def test_quality_is_said_of_forests_that_are_not_empty(here, capfd):
    assert main(["fit", "class.csv", "-y", "y", "--trees", "5", "--empty"]) == 0
    assert "had not seen" not in capfd.readouterr().err
    assert main(["fit", "class.csv", "-y", "y", "--trees", "5", "-q", "--force"]) == 0
    assert capfd.readouterr().err == ""
    assert main(["show", "model.et"]) == 0
    assert "unseen    right for" in capfd.readouterr().out
