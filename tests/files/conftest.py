"""A place for a file."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a model may be saved; nothing else is there."""
    return tmp_path / "model.safetensors"
