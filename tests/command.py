"""The command in this process and in one of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from everytree.__main__ import main

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="needs signals, pipes and a shell of POSIX")


def run(*arguments: object, cwd: Path | None = None, **options: Any) -> subprocess.CompletedProcess[bytes]:
    """The command in a process of its own."""
    command = [sys.executable, "-m", "everytree", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, cwd=cwd, check=False, **options)


def fails(capfd: pytest.CaptureFixture[str], *arguments: object, code: int = 1) -> str:
    """The one sentence that a command says."""
    assert main([str(argument) for argument in arguments]) == code
    out, error = capfd.readouterr()
    assert out == ""
    assert "Traceback" not in error
    if code != 2:
        assert error.startswith("everytree: ")
        assert error.count("\n") == 1
    return error


def says(capfd: pytest.CaptureFixture[str], *arguments: object) -> str:
    """What a command that succeeds prints."""
    capfd.readouterr()
    assert main([str(argument) for argument in arguments]) == 0
    return capfd.readouterr().out
