"""Files need no other library."""

from __future__ import annotations

import sys

import pytest

import everytree as et


def test_safetensors_is_not_needed(tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    monkeypatch.setitem(sys.modules, "safetensors.numpy", None)
    model = et.MetaTreeClassifier(random_state=0).fit([[0.0], [1.0], [2.0]], [0, 0, 1])
    et.save(model, tmp_path / "model.et")
    assert et.load(tmp_path / "model.et").log_evidence_ == model.log_evidence_
