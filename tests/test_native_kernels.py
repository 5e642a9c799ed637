"""The kernels without Python: `tests/native` is compiled with the headers and run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "native"


@pytest.mark.posix
def test_kernels_agree_with_their_plain_meaning(tmp_path):
    # Under sanitizers, Python itself is started with their runtimes: they are not for the compiler.
    env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    command = ["make", "-C", str(HERE), "-j2", "run", f"BUILD={tmp_path}"]
    run = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert " checks, 0 failed" in run.stdout
