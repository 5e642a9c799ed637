"""Tables and arguments that a report refuses."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import everytree as et
from everytree.report import report_html, write_report
from report_cases import classes_of, mixed_table


def test_a_table_of_other_columns_or_classes_is_refused(fitted):
    table = mixed_table(100)
    labels = classes_of(table)
    with pytest.raises(ValueError, match=r"table lacks the columns \['colour'\], which the model reads"):
        report_html(fitted["forest"], table.drop(columns="colour").assign(leak=labels), target=labels)
    with pytest.raises(ValueError, match=r"table lacks the columns .*'colour'.* it has \['other', 'more'\]"):
        report_html(fitted["forest"], pd.DataFrame({"other": [1, 2], "more": [1, 2]}))
    with pytest.raises(ValueError, match="table has 1 columns, but the model reads 2"):
        report_html(et.MetaTreeClassifier().fit(np.eye(2), [0, 1]), np.zeros((60, 1)), target=[0, 1] * 30)
    with pytest.raises(ValueError, match=r"y\[7\] is 'never', but the classes are"):
        report_html(fitted["forest"], table, target=np.where(np.arange(100) == 7, "never", labels))
    with pytest.raises(ValueError, match="NaN"):
        report_html(fitted["normal"], table, target=np.full(100, np.nan))


def test_bad_arguments_are_named(fitted, tmp_path):
    table = mixed_table(100)
    with pytest.raises(TypeError, match="model must be a fitted"):
        report_html(RandomForestClassifier())
    steps = make_pipeline(StandardScaler(), et.MetaTreeClassifier(random_state=0)).fit(np.eye(4), [0, 1, 0, 1])
    with pytest.raises(TypeError, match=r"model is a Pipeline.*write_report\(pipeline\[-1\], table, path"):
        report_html(steps, np.eye(4), target=[0, 1, 0, 1])
    with pytest.raises(ValueError, match="target is 'nothing'"):
        report_html(fitted["forest"], table, target="nothing")
    with pytest.raises(ValueError, match="target must say which column"):
        report_html(fitted["forest"], table)
    with pytest.raises(ValueError, match="target has 3 entries"):
        report_html(fitted["forest"], table, target=[0, 1, 0])
    old = tmp_path / "report.html"
    old.write_text("old")
    with pytest.raises(ValueError, match="target"):
        write_report(fitted["forest"], table, old, target="nothing")
    assert old.read_text() == "old"


def test_paths_and_tables_in_each_others_place_are_told_apart(fitted, tmp_path):
    table, model = mixed_table(60), fitted["tree"]
    with pytest.raises(TypeError, match=r"path must be the name of the file to write, but is of type DataFrame"):
        model.report(table, tmp_path / "page.html")
    with pytest.raises(TypeError, match=r"write_report\(model, table, path\)"):
        write_report(model, tmp_path / "page.html", table)
    for path in ("customers.csv", tmp_path / "customers.csv"):
        with pytest.raises(TypeError, match=r"table is '.*customers.csv', but must be a table in memory"):
            model.report(tmp_path / "page.html", path)
    assert list(tmp_path.iterdir()) == []


def test_a_query_is_a_table(fitted):
    table = mixed_table(60).assign(y=classes_of(mixed_table(60)))
    frame = pl.from_pandas(table)
    assert report_html(fitted["tree"], frame.lazy(), target="y") == report_html(fitted["tree"], frame, target="y")
