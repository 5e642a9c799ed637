"""Long tables are predicted part by part."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

import everytree as et
from command import fails, says
from everytree.__main__ import main
from everytree.batches import arrow_files, text_pieces
from everytree.cli.tables import OpenTable

N_ROWS = 3000
WRITERS = {
    "csv": pyarrow.csv.write_csv,
    "parquet": lambda table, path: pyarrow.parquet.write_table(table, path, row_group_size=500),
    "feather": lambda table, path: pyarrow.feather.write_feather(table, path, chunksize=500),
}


def rows() -> pa.Table:
    rng = np.random.default_rng(0)
    a, kind = rng.normal(size=N_ROWS), rng.choice(["x", "y", "z, w"], N_ROWS)
    return pa.table({
        "id": np.arange(N_ROWS),
        "a": pa.array(a, mask=rng.random(N_ROWS) < 0.1),
        "kind": kind,
        "day": np.datetime64("2020-01-01") + rng.integers(0, 900, N_ROWS),
        "w": rng.integers(1, 4, N_ROWS),
        "years": rng.uniform(0.5, 2.0, N_ROWS),
        "n": rng.poisson(np.exp(0.5 * a)),
        "y": np.where(a + (kind == "x") > rng.normal(size=N_ROWS), "yes", "no"),
    })  # fmt: skip


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table in every format, in several parts."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(text_pieces, "PIECE_BYTES", 20_000)
    monkeypatch.setattr(arrow_files, "batch_rows", lambda n_columns: 700)
    for suffix, write in WRITERS.items():
        write(rows(), f"t.{suffix}")
    return tmp_path


def in_memory(*roles: str) -> pa.Table:
    return rows().drop_columns(["id", *roles])


# ---- predict --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", WRITERS)
@pytest.mark.parametrize("out", ["-", "answers.csv", "answers.csv.gz", "answers.parquet", "answers.feather"])
def test_predictions_are_written_part_by_part(suffix, out, here, capfd, monkeypatch):
    assert main(["fit", "t.parquet", "-y", "y", "--drop", "id", "--trees", "3", "-q"]) == 0
    n_parts = 0
    parts = OpenTable.parts

    def counted(self: Any, *arguments: Any) -> Any:
        nonlocal n_parts
        for part in parts(self, *arguments):
            n_parts += 1
            yield part

    monkeypatch.setattr(OpenTable, "parts", counted)
    said = says(capfd, "predict", "model.et", f"t.{suffix}", "--proba", "--keep", "id,kind", "-o", out)
    assert n_parts > 3
    if out.endswith((".parquet", ".feather")):
        got = (pyarrow.parquet if out.endswith(".parquet") else pyarrow.feather).read_table(out)
    else:
        text = said.encode() if out == "-" else Path(out).read_bytes()
        text = gzip.decompress(text) if out.endswith(".gz") else text
        got = pyarrow.csv.read_csv(pa.BufferReader(text))
    model, X = et.load("model.et"), in_memory("y")
    assert [str(value) for value in got["id"].to_pylist()] == [str(k) for k in range(N_ROWS)]
    assert got["kind"].to_pylist() == rows()["kind"].to_pylist()
    assert np.array_equal(np.column_stack([got["p_no"], got["p_yes"]]), model.predict_proba(X))
    assert got["prediction"].to_pylist() == model.predict(X).tolist()


def test_a_failure_in_a_late_part_leaves_no_file(here, capfd):
    assert main(["fit", "t.parquet", "-y", "y", "--drop", "id,w", "--trees", "3", "-q"]) == 0
    lines = Path("t.csv").read_text().splitlines()
    lines[2900] = lines[2900].replace(",", ",much", 1)
    Path("t.csv").write_text("\n".join(lines) + "\n")
    said = fails(capfd, "predict", "model.et", "t.csv", "-o", "answers.csv")
    assert "t.csv, line 2901: column 'a' is 'much" in said
    assert not [name for name in os.listdir() if "answers" in name]
