"""Files that older versions wrote are read, and their models answer as they did."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import everytree as et
from fixtures.write_files import answers, models

FOLDER = Path(__file__).parent / "fixtures" / "version1"
ANSWERS: dict[str, Any] = json.loads((FOLDER / "answers.json").read_text())


def assert_close(one: Any, other: Any) -> None:
    """Equal, numbers to the last digits that another library of mathematics may change."""
    if isinstance(other, dict):
        assert one.keys() >= other.keys()  # later versions may know more parameters
        for name in other:
            assert_close(one[name], other[name])
    elif isinstance(other, list) and other and isinstance(other[0], dict):
        for mine, theirs in zip(one, other, strict=True):
            assert_close(mine, theirs)
    elif isinstance(other, list) and other and not isinstance(other[0], str):
        np.testing.assert_allclose(np.array(one, dtype=float), np.array(other, dtype=float), rtol=1e-10, atol=1e-12)
    elif isinstance(other, float):
        assert one == pytest.approx(other, rel=1e-10)
    else:
        assert one == other


@pytest.mark.parametrize("mmap", [False, True], ids=["read", "mapped"])
@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_a_file_of_version_1(name, mmap):
    model = et.load(FOLDER / f"{name}.safetensors", mmap=mmap)
    expected = ANSWERS[name]
    X = expected["X"]
    row_data = {key: np.array(values) for key, values in expected["row_data"].items()}
    if X is not None and isinstance(X[0], list) and not isinstance(X[0][-1], str):
        X = np.array([[np.nan if value is None else value for value in row] for row in X])
    assert_close(answers(model, X, row_data), expected["answers"])


def test_there_is_a_file_of_every_kind():
    kinds = {type(et.load(file)).__name__ for file in FOLDER.glob("*.safetensors")}
    assert kinds >= {
        "MetaTree", "Posterior", "GrowingPosterior", "ExactPosterior", "Schema", "Forest", "MetaForestClassifier",
        "MetaForestRegressor", "MetaTreeClassifier", "MetaTreeRegressor", "ExactTreeClassifier",
        "OnlineForestClassifier", "OnlineForestRegressor",
    }  # fmt: skip
    assert {file.stem for file in FOLDER.glob("*.safetensors")} == ANSWERS.keys() == models().keys()
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) < 300_000
