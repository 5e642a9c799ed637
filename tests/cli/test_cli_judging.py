"""How the command line judges models by a table: rows that belong together, and what it says of them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import everytree as et
from command import fails, says
from everytree.__main__ import main
from report_cases import visits

FEW = ["--trees", "5"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    visits().to_csv(tmp_path / "visits.csv", index=False)
    visits().drop(columns="patient").to_csv(tmp_path / "strangers.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def accuracies(page: str) -> list[float]:
    line = re.search(r'<th scope="row">Accuracy.*?</tr>', Path(page).read_text())
    return [] if line is None else [float(score) for score in re.findall(r"<td>(.*?)</td>", line[0])]


def test_the_report_keeps_the_groups_of_fit_together(here, capfd):
    assert main(["fit", "visits.csv", "-y", "y", "--groups", "patient", *FEW, "-q"]) == 0
    assert main(["report", "model.et", "visits.csv", "-q"]) == 0
    assert max(accuracies("report.html")) < 0.8
    assert main(["report", "model.et", "strangers.csv", "--refit", "-q"]) == 0
    assert accuracies("report.html") == []
    assert "fitted with groups of rows" in Path("report.html").read_text()
    assert "no column 'nobody' for the groups" in fails(capfd, "report", "model.et", "visits.csv", "--groups", "nobody")


def test_the_report_takes_groups_that_fit_was_not_told(here):
    assert main(["fit", "visits.csv", "-y", "y", "--drop", "patient", *FEW, "-q"]) == 0
    assert main(["report", "model.et", "visits.csv", "-q"]) == 0
    assert min(accuracies("report.html")) > 0.95
    assert main(["report", "model.et", "visits.csv", "--groups", "patient", "-q"]) == 0
    assert max(accuracies("report.html")) < 0.8


def test_the_report_knows_the_groups_of_a_model_that_python_saved(here):
    model = et.MetaForestClassifier(n_estimators=5, random_state=0).fit(visits(), "y", groups="patient")
    et.save(model, "python.et")
    assert main(["report", "python.et", "visits.csv", "-y", "y", "-q"]) == 0
    assert max(accuracies("report.html")) < 0.8


def test_rows_that_the_model_has_are_known_in_another_file_and_order(here, capfd):
    """They would count twice, and a model that has seen them is not judged by them as if they were new."""
    assert main(["fit", "strangers.csv", "-y", "y", *FEW, "-q"]) == 0
    visits().drop(columns="patient").sample(frac=1.0, random_state=0).to_csv("shuffled.csv", index=False)
    said = fails(capfd, "update", "model.et", "shuffled.csv")
    assert "shuffled.csv: model.et has these rows already, from another file; --allow-twice counts them" in said
    assert main(["report", "model.et", "shuffled.csv"]) == 0
    assert "judged by refitting it to parts of shuffled.csv" in capfd.readouterr().err
    assert main(["update", "model.et", "shuffled.csv", "--allow-twice", "-q"]) == 0
    assert et.load("model.et").forest_.n_rows == 2 * len(visits())


def test_a_page_without_a_table_has_the_name_of_the_target(here):
    assert main(["fit", "strangers.csv", "-y", "y", *FEW, "-q"]) == 0
    assert main(["report", "model.et", "-q"]) == 0
    page = Path("report.html").read_text()
    assert "<h1>Predicting y</h1>" in page
    assert "nothing to judge it by" not in page


def test_the_page_and_explain_count_rows_alike(here, capfd):
    assert main(["fit", "strangers.csv", "-y", "y", *FEW, "-q"]) == 0
    assert main(["report", "model.et", "strangers.csv", "-q"]) == 0
    page = Path("report.html").read_text()
    label, values = re.search(r'"label":"row (\d+): \w+","truth":"\w+","values":\[(.*?)\]', page).groups()
    row = visits()[["a", "b"]].iloc[int(label)]
    assert [float(value) for value in values.split(",")] == row.tolist()
    said = says(capfd, "explain", "model.et", "strangers.csv", "--row", label)
    assert said.startswith(f"strangers.csv, row {label} (line {int(label) + 2}): ")


def test_columns_of_many_texts_in_the_page_are_named(here, capfd):
    place = np.arange(len(visits())) % 30
    table = visits().assign(place=[f"Place {k}" for k in place], y=np.where(place < 15, "no", "yes"))
    table[["place", "y"]].to_csv("places.csv", index=False)
    assert main(["fit", "places.csv", "-y", "y", *FEW, "-q"]) == 0
    assert main(["report", "model.et", "places.csv"]) == 0
    assert "report.html: It contains all texts of the column place\n" in capfd.readouterr().err
