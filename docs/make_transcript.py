"""Runs the commands of `command_line.md` and puts what they print into the page.

`python docs/make_transcript.py` renews the page; `transcript(page)` is what the tests compare it with.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from sklearn.datasets import load_diabetes, load_wine

PAGE = Path(__file__).parent / "command_line.md"


def write_tables(folder: Path) -> None:
    """scikit-learn's tables, the second with text and missing values."""
    wine = load_wine()
    names = [name.replace("/", "_") for name in wine.feature_names]
    table = pa.table(dict(zip(names, wine.data.T, strict=True)) | {"vineyard": wine.target_names[wine.target]})
    for name, rows in {"one": slice(0, None, 3), "two": slice(1, None, 3), "new": slice(2, None, 3)}.items():
        pyarrow.csv.write_csv(table.take(np.arange(len(wine.target))[rows]), folder / f"{name}.csv")
    raw = load_diabetes(scaled=False)
    columns = dict(zip(raw.feature_names, raw.data.T, strict=True)) | {"progress": raw.target}
    columns["sex"] = np.where(columns["sex"] > 1.0, "M", "F")
    absent = np.random.default_rng(0).random(len(raw.target)) < 0.1
    patients = pa.table(columns | {"bmi": pa.array(columns["bmi"], mask=absent)})
    pyarrow.parquet.write_table(patients, folder / "patients.parquet")
    (folder / "days").mkdir()
    for name, day in {"one": "2024-01-01", "two": "2024-01-02"}.items():
        (folder / "days" / f"{day}.csv").write_bytes((folder / f"{name}.csv").read_bytes())


def transcript(page: str) -> str:
    """The page with each command followed by what it prints now."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tables(folder)
        command = folder / "bin" / "everytree"
        command.parent.mkdir()
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m everytree "$@"\n')
        command.chmod(0o755)
        return re.sub(r"(?<=^```console\n).*?(?=^```)", lambda found: _run(found[0], folder), page, flags=re.M | re.S)


def _run(block: str, folder: Path) -> str:
    """The commands of a block, those that are continued by a backslash as one, and their output."""
    commands = re.findall(r"^\$ ((?:.*\\\n)*.*)", block, flags=re.MULTILINE)
    environment = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "COLUMNS": "100"}
    said = []
    for command in commands:
        run = subprocess.run(
            command, shell=True, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
        said.append(f"$ {command}\n{run.stdout}")
    return "\n".join(part.rstrip() + "\n" for part in said)


if __name__ == "__main__":
    PAGE.write_text(transcript(PAGE.read_text()))
