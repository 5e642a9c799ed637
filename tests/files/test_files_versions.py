"""Files that older versions wrote are read, and their models answer as they did."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import everytree as et
from everytree.files.container import VERSION, read
from fixtures.write_files import LAYOUTS, answers, models

FOLDERS = {version: Path(__file__).parents[1] / "fixtures" / f"version{version}" for version in range(1, VERSION + 1)}
ANSWERS: dict[int, dict[str, Any]] = {
    version: json.loads((folder / "answers.json").read_text()) for version, folder in FOLDERS.items()
}
EVERY_FILE = [(version, name) for version, expected in ANSWERS.items() for name in sorted(expected)]
EVERY_WAY = [
    (version, name, mmap)
    for version, name in EVERY_FILE
    for mmap in ([False] if version > 2 and LAYOUTS.get(name) == "compressed" else [False, True])
]
versions = pytest.mark.parametrize("version", FOLDERS)


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


@pytest.mark.parametrize(("version", "name", "mmap"), EVERY_WAY)
def test_a_file_of_every_version(version, name, mmap):
    model = et.load(FOLDERS[version] / f"{name}.safetensors", mmap=mmap)
    expected = ANSWERS[version][name]
    X = expected["X"]
    row_data = {key: np.array(values) for key, values in expected["row_data"].items()}
    if X is not None and isinstance(X[0], list) and not isinstance(X[0][-1], str):
        X = np.array([[np.nan if value is None else value for value in row] for row in X])
    assert_close(answers(model, X, row_data), expected["answers"])


@versions
def test_there_is_a_file_of_every_kind(version):
    files = [*FOLDERS[version].glob("*.safetensors")]
    kinds = {type(et.load(file)).__name__ for file in files}
    assert kinds >= {
        "MetaTree", "Posterior", "GrowingPosterior", "ExactPosterior", "Schema", "Forest", "MetaForestClassifier",
        "MetaForestRegressor", "MetaTreeClassifier", "MetaTreeRegressor", "ExactTreeClassifier",
        "OnlineForestClassifier", "OnlineForestRegressor",
    }  # fmt: skip
    assert {file.stem for file in files} == ANSWERS[version].keys() <= models().keys()
    assert sum(file.stat().st_size for file in FOLDERS[version].iterdir()) < 300_000


@pytest.mark.parametrize(("version", "name"), EVERY_FILE)
def test_a_file_of_every_version_is_saved_again_in_the_newest(version, name, tmp_path):
    """A model from an old file is a model like any other: it says the same after another round through a file."""
    model = et.load(FOLDERS[version] / f"{name}.safetensors")
    et.save(model, tmp_path / "again.safetensors")
    again = read(tmp_path / "again.safetensors")
    assert again.metadata["version"] == str(VERSION)
    et.save(et.load(tmp_path / "again.safetensors"), tmp_path / "third.safetensors")
    assert (tmp_path / "third.safetensors").read_bytes() == (tmp_path / "again.safetensors").read_bytes()


@pytest.mark.parametrize("name", ["posterior_normal", "posterior_poisson", "online_regressor", "forest_regressor"])
def test_a_model_of_version_1_learns_on(name):
    """Statistics that were plain numbers then are pairs now, with nothing in their second part."""
    model = et.load(FOLDERS[1] / f"{name}.safetensors")
    post = getattr(model, "forest_", model)
    post = post.posteriors[0] if isinstance(post, et.Forest) else post
    if isinstance(post, et.Posterior):
        n_rows, log_evidence = post.n_rows, post.log_evidence
        codes = np.zeros((3, post.tree.n_features), dtype=np.uint8)
        post.update(codes, np.array([1.0, 2.0, 1.0]), np.array([0.1, 0.2, 0.3]))
        assert post.n_rows == n_rows + 3
        assert post.log_evidence != log_evidence
        assert np.isfinite(post.subtree_log_evidence).all()
    else:
        before = model.predict_one({"number": 0.5})
        model.learn_many([{"number": 0.5}] * 50, [7.0] * 50)
        assert abs(model.predict_one({"number": 0.5}) - 7.0) < abs(before - 7.0)
