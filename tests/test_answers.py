"""Every estimator answers on ten tables as it did when the answers were stored."""

from __future__ import annotations

import numpy as np
import pytest

from fixtures.write_answers import STORED, answers, versions

BEFORE = np.load(STORED)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(
    BEFORE["versions"].tolist() != versions(), reason=f"trees are grown by {BEFORE['versions'].tolist()}"
)
def test_answers_stay():
    """Bits depend on the machine's mathematics: `python tests/fixtures/write_answers.py` compares those."""
    found = dict(answers())
    assert {*found, "versions"} == {*BEFORE.files}
    for name, values in found.items():
        np.testing.assert_allclose(values, BEFORE[name], rtol=1e-9, atol=1e-12, err_msg=name)
