"""Numbers of things in words."""

from __future__ import annotations

import numpy as np

import everytree as et
from everytree.base.words import number_of, short_number, with_article
from everytree.fitting.held_out.scores import ClassScores
from everytree.report import report_html


def test_one_is_singular():
    assert [number_of(n, "row") for n in (0, 1, 2, 12000)] == ["0 rows", "1 row", "2 rows", "12,000 rows"]
    assert number_of(1, "leaf", "leaves") == "1 leaf"
    assert number_of(2, "leaf", "leaves") == "2 leaves"
    assert [with_article(name) for name in ("MetaTree", "ExactTree")] == ["a MetaTree", "an ExactTree"]


def test_large_numbers_have_commas_and_no_exponents():
    given = {712_644.2: "712,600", 1_421_600.0: "1,422,000", 12_345.0: "12,340", 1999.0: "1999", 0.12345: "0.1235",
             -65_500.0: "-65,500", 9999.6: "10,000", 2.5e12: "2.5e+12", 1e-9: "1e-09"}  # fmt: skip
    assert {value: short_number(value, 4) for value in given} == given
    assert short_number(12_345.6, 7) == "12,345.6"


def test_summaries_of_one_row_and_one_column():
    assert repr(ClassScores(1, 0.1, 1.0, 0.7, 0.5)).startswith("1 row that the trees")
    page = report_html(et.MetaTreeClassifier(random_state=0).fit(np.zeros((1, 1)), [0]))
    assert "Fitted to 1 row of 1 column." in page
