"""Tables that take more memory than they may: fitted in batches, predicted part by part."""

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
import typer

import everytree as et
from command import fails, run, says
from everytree.__main__ import main
from everytree.batches import arrow_files, text_pieces
from everytree.cli import memory
from everytree.cli.tables import OpenTable
from everytree.estimators import base
from everytree.files import load_with_notes

N_ROWS = 3000
TINY = ["--memory", "1K", "--trees", "4"]
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
    """A table in every format; a sample has few of its rows, a batch fewer."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(text_pieces, "PIECE_BYTES", 20_000)
    monkeypatch.setattr(arrow_files, "batch_rows", lambda n_columns: 700)
    for suffix, write in WRITERS.items():
        write(rows(), f"t.{suffix}")
    return tmp_path


@pytest.fixture
def small_sample(monkeypatch: pytest.MonkeyPatch) -> int:
    """Fewer rows in the sample than there are."""
    fit_batches = base.fit_batches

    def fit(model: Any, batches: Any, roles: Any, sample_rows: int) -> None:
        del sample_rows
        fit_batches(model, batches, roles, 1000)

    monkeypatch.setattr(base, "fit_batches", fit)
    return 1000


def in_memory(*roles: str) -> pa.Table:
    return rows().drop_columns(["id", *roles])


# ---- fit ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", WRITERS)
def test_a_long_table_gives_the_model_of_fit_batches(suffix, here, small_sample, capfd):
    assert main(["fit", f"t.{suffix}", "-y", "y", "--drop", "id,w,years,n", *TINY]) == 0
    said = capfd.readouterr().err
    assert f"t.{suffix}: its rows take about " in said
    assert "in memory, more than --memory 1 KiB: fitting in batches, structures from a sample of 100,000 rows" in said
    assert "right for" in said  # rows of the sample, by trees that had not seen them
    assert said.count("\n") == 3
    model, notes = load_with_notes("model.et")
    X = rows().drop_columns(["id", "w", "years", "n"])
    parts = [X.slice(start, 400) for start in range(0, N_ROWS, 400)]
    expected = et.MetaForestClassifier(4, random_state=0).fit_batches(parts, "y")
    assert model.forest_.n_rows == N_ROWS
    assert model.log_evidence_ == pytest.approx(expected.log_evidence_, rel=1e-12)
    assert np.allclose(model.predict_proba(X), expected.predict_proba(X), rtol=1e-12)
    assert model.get_params() == expected.get_params()
    assert [one["rows"] for one in notes["command_line"]["counted"]] == [N_ROWS]
    assert "has these rows already" in fails(capfd, "update", "model.et", f"t.{suffix}")


def test_weights_groups_and_exposure_go_along(here, small_sample):
    options = ["--weight", "w", "--groups", "id", "--family", "poisson", "--exposure", "years", "--drop", "y", "-q"]
    assert main(["fit", "t.parquet", "-y", "n", *TINY, *options]) == 0
    model = et.MetaForestRegressor(4, family="poisson", random_state=0)
    roles = {"sample_weight": "w", "groups": "id", "exposure": "years"}
    model.fit_batches([rows().drop_columns(["y"])], "n", **roles)
    assert et.load("model.et").log_evidence_ == pytest.approx(model.log_evidence_, rel=1e-12)


@pytest.mark.parametrize("suffix", WRITERS)
@pytest.mark.parametrize("options", [[], ["--memory", "1G"]], ids=["by itself", "told"])
def test_a_table_that_fits_gives_the_model_of_fit(suffix, options, here, capfd):
    assert main(["fit", f"t.{suffix}", "-y", "y", "--drop", "id", "--trees", "4", *options]) == 0
    assert "batches" not in capfd.readouterr().err
    X = in_memory("y")
    expected = et.MetaForestClassifier(4, random_state=0).fit(X, rows()["y"])
    model = et.load("model.et")
    assert model.log_evidence_ == expected.log_evidence_
    assert np.array_equal(model.predict_proba(X), expected.predict_proba(X))


def test_compressed_text_and_other_delimiters(here, small_sample):
    assert main(["fit", "t.csv", "-y", "y", "--drop", "id", *TINY, "-q"]) == 0
    expected = et.load("model.et").log_evidence_
    Path("t.csv.gz").write_bytes(gzip.compress(Path("t.csv").read_bytes()))
    options = pyarrow.csv.WriteOptions(delimiter=";")
    pyarrow.csv.write_csv(rows(), "semicolons.csv", options)
    for table, more in (("t.csv.gz", []), ("semicolons.csv", ["--delimiter", ";"])):
        assert main(["fit", table, "-y", "y", "--drop", "id", *TINY, "-q", "--force", *more]) == 0
        assert et.load("model.et").log_evidence_ == expected


def test_types_are_those_of_all_rows_not_of_the_first(here, small_sample):
    """Whole numbers that have fractions later on, and text after what looked like numbers."""
    late = ["1"] * 2500 + ["2.5"] * 500
    text = ["7"] * 2900 + ["seven"] * 100
    table = pa.table({"a": rows()["a"], "late": late, "text": text, "y": rows()["y"]})
    pyarrow.csv.write_csv(table, "late.csv", pyarrow.csv.WriteOptions(quoting_style="none"))
    assert main(["fit", "late.csv", "-y", "y", *TINY, "-q"]) == 0
    kinds = {column.name: column.kind for column in et.load("model.et").schema_.columns}
    assert kinds == {"a": "numeric", "late": "numeric", "text": "categorical"}


def test_what_targets_are_is_told_by_all_rows(here, small_sample, capfd):
    few = np.arange(N_ROWS) % 10
    many = np.where(np.arange(N_ROWS) == N_ROWS - 1, 10, few)
    for values, kind in (
        (few, et.MetaForestClassifier),
        (many, et.MetaForestRegressor),
        (few / 2, et.MetaForestRegressor),
    ):
        pyarrow.csv.write_csv(pa.table({"x": few, "y": values}), "k.csv")
        assert main(["fit", "k.csv", "-y", "y", *TINY, "-q", "--force"]) == 0
        assert isinstance(et.load("model.et"), kind)
    said = fails(capfd, "fit", "k.csv", "-y", "y", *TINY, "--kind", "class", "-q", "--force")
    assert "k.csv, line 3: the target 'y' is 0.5, but classes are whole or text" in said


def test_exact_trees_say_what_to_do(here, capfd):
    said = fails(capfd, "fit", "t.parquet", "-y", "y", "--model", "exact", "--memory", "1K")
    assert "but --model exact needs all rows in memory" in said
    assert "allow more by --memory, give it fewer rows, or fit a forest" in said
    assert not Path("model.et").exists()


WRONG = {
    "no target": ({"y": None}, [], "t.csv, line 2502: the target 'y' is missing"),
    "infinity": ({"a": np.inf}, [], "t.csv: column 'a', line 2502: inf"),
    "a weight below 0": ({"w": -1}, ["--weight", "w"], "t.csv: 'w', batch"),
    "no number": (
        {"kind": "q"},
        ["--weight", "kind"],
        "t.csv, line 2: the weight 'kind' is 'z', which is not a number",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said_with_its_line(name, here, capfd):
    change, options, said = WRONG[name]
    frame = rows().drop_columns(["day"]).to_pandas().replace({"kind": {"z, w": "z"}})
    for column, value in change.items():
        frame.loc[2500, column] = value
    frame.to_csv("t.csv", index=False)
    assert said in fails(capfd, "fit", "t.csv", "-y", "y", *TINY, *options, "-q")
    assert not Path("model.et").exists()


def test_names_that_are_not_there(here, capfd):
    for suffix in WRITERS:
        assert "no column 'yy' for the target; the nearest is 'y'" in fails(
            capfd, "fit", f"t.{suffix}", "-y", "yy", *TINY, "-q"
        )
        assert "no column 'v' for the weight" in fails(
            capfd, "fit", f"t.{suffix}", "-y", "y", *TINY, "--weight", "v", "-q"
        )


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


# ---- sizes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "size"), [("2G", 2**31), ("500M", 500 * 2**20), ("1.5 GiB", 3 * 2**29), ("100", 100), ("1kb", 1024)]
)
def test_sizes(text, size):
    assert memory.parse_size("--memory", text) == size


@pytest.mark.parametrize("text", ["", "G", "much", "-1G", "0", "nan", "2X", "1e300"])
def test_sizes_that_are_none(text, here, capfd):
    with pytest.raises(typer.BadParameter, match="not an amount of memory"):
        memory.parse_size("--memory", text)
    assert fails(capfd, "fit", "t.csv", "-y", "y", "--memory", text, code=2)


def test_the_default_is_half_of_what_is_free(tmp_path, monkeypatch):
    (tmp_path / "meminfo").write_text("MemTotal: 9000 kB\nMemFree: 10 kB\nMemAvailable: 4000 kB\n")
    (tmp_path / "max").write_text("max\n")
    (tmp_path / "current").write_text("1000000\n")
    for name, file in (("MEMORY", "meminfo"), ("LIMIT", "max"), ("USED", "current")):
        monkeypatch.setattr(memory, name, tmp_path / file)
    assert memory.default_size() == 2000 * 1024
    (tmp_path / "max").write_text("1500000\n")
    assert memory.default_size() == 250_000
    monkeypatch.setattr(memory, "MEMORY", tmp_path / "none")
    (tmp_path / "max").write_text("max\n")
    assert memory.default_size() > 2**20


def test_sizes_are_estimated_without_reading(here, monkeypatch):
    from everytree.batches.files import bytes_in_memory, find_files

    size = rows().nbytes
    assert size / 2 < bytes_in_memory(find_files("t.parquet")) < 2 * size
    assert bytes_in_memory(find_files("t.csv")) == os.path.getsize("t.csv")
    assert size / 3 < bytes_in_memory(find_files("t.feather")) < 2 * size
    assert bytes_in_memory(find_files("t.c*")) == os.path.getsize("t.csv")


def test_the_command_itself(here):
    done = run("fit", "t.parquet", "-y", "y", *TINY, cwd=here)
    assert (done.returncode, done.stderr.count(b"\n")) == (0, 3)
