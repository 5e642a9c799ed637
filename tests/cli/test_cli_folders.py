"""Folders and patterns of files: one table, whose rows are those of the files in their order."""

from __future__ import annotations

import gzip
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

import everytree as et
from command import fails, run, says
from everytree.__main__ import main
from everytree.batches import arrow_files, text_pieces
from everytree.cli.tables import OpenTable
from everytree.files import load_with_notes

N_ROWS, N_FILES = 1200, 4
WRITERS = {
    "csv": pyarrow.csv.write_csv,
    "parquet": pyarrow.parquet.write_table,
    "feather": pyarrow.feather.write_feather,
}
FIT = ["-y", "y", "--trees", "4", "-q", "--force"]


def rows() -> pa.Table:
    rng = np.random.default_rng(0)
    a, kind = rng.normal(size=N_ROWS), rng.choice(["x", "y", "z, w"], N_ROWS)
    return pa.table({
        "id": np.arange(N_ROWS),
        "a": pa.array(a, mask=rng.random(N_ROWS) < 0.1),
        "kind": kind,
        "w": rng.integers(1, 4, N_ROWS),
        "y": np.where(a + (kind == "x") > rng.normal(size=N_ROWS), "yes", "no"),
    })  # fmt: skip


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table in each format as one file and as a folder of several."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(text_pieces, "PIECE_BYTES", 5000)
    monkeypatch.setattr(arrow_files, "batch_rows", lambda n_columns: 170)
    size = N_ROWS // N_FILES
    for suffix, write in WRITERS.items():
        write(rows(), f"t.{suffix}")
        Path(suffix).mkdir()
        for k in range(N_FILES):
            write(rows().slice(k * size, size), f"{suffix}/{k}.{suffix}")
    return tmp_path


def counted(path: str) -> list[tuple[str, int]]:
    notes = load_with_notes(path)[1]["command_line"]
    return [(one["table"], one["rows"]) for one in notes["counted"]]


def same_model(one: str, other: str) -> None:
    """The same structures, statistics and answers."""
    mine, theirs, X = et.load(one), et.load(other), rows()
    assert mine.log_evidence_ == pytest.approx(theirs.log_evidence_, rel=1e-12)
    assert np.allclose(mine.predict_proba(X), theirs.predict_proba(X), rtol=1e-12)


# ---- what it answers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", WRITERS)
@pytest.mark.parametrize("table", ["{}", "{}/", "{}/*.{}", "{}/[0-3].*", "./{}/**/*.{}"])
def test_a_fit_of_several_files_is_that_of_one_with_their_rows(suffix, table, here):
    assert main(["fit", f"t.{suffix}", *FIT, "-o", "one.et"]) == 0
    assert main(["fit", table.format(suffix, suffix), *FIT, "-o", "several.et"]) == 0
    one, several = et.load("one.et"), et.load("several.et")
    assert one.log_evidence_ == several.log_evidence_  # to the last bit
    assert np.array_equal(one.predict_proba(rows()), several.predict_proba(rows()))
    assert counted("several.et") == [(f"{k}.{suffix}", N_ROWS // N_FILES) for k in range(N_FILES)]


@pytest.mark.parametrize("suffix", WRITERS)
def test_predictions_of_several_files_come_in_their_order(suffix, here, capfd):
    assert main(["fit", "t.parquet", *FIT]) == 0
    expected = says(capfd, "predict", "model.et", f"t.{suffix}", "--proba", "--keep", "id,kind")
    assert says(capfd, "predict", "model.et", suffix, "--proba", "--keep", "id,kind") == expected
    assert expected.count("\n") == N_ROWS + 1


@pytest.mark.parametrize("suffix", WRITERS)
def test_an_update_by_several_files_is_that_by_one(suffix, here):
    assert main(["fit", "t.parquet", *FIT, "--empty", "-o", "blank.et"]) == 0
    assert main(["update", "blank.et", f"t.{suffix}", "-q", "-o", "one.et"]) == 0
    assert main(["update", "blank.et", suffix, "-q", "-o", "several.et"]) == 0
    same_model("one.et", "several.et")
    assert et.load("several.et").forest_.n_rows == N_ROWS
    assert counted("several.et") == [(f"{k}.{suffix}", N_ROWS // N_FILES) for k in range(N_FILES)]


def test_types_are_those_of_all_files(here):
    """Text in one file alone makes text of a column, as it was written."""
    for name, code in (("0", "007"), ("1", "7"), ("2", "seven")):
        lines = "".join(f"{code},{k % 2},{k}\n" for k in range(40))
        Path(f"codes{name}.csv").write_text("code,y,k\n" + lines)
    together = "".join(Path(f"codes{k}.csv").read_text().partition("\n")[2] for k in range(3))
    Path("all.csv").write_text("code,y,k\n" + together)
    assert main(["fit", "codes?.csv", *FIT, "-o", "several.et"]) == 0
    assert main(["fit", "all.csv", *FIT, "-o", "one.et"]) == 0
    several, one = et.load("several.et"), et.load("one.et")
    assert several.log_evidence_ == one.log_evidence_
    assert set(several.schema_.columns[0].categories) == set(one.schema_.columns[0].categories) == {"007", "7", "seven"}


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_folders_may_name_a_column(suffix, here, capfd):
    for year in (2020, 2021):
        Path(f"by/year={year}").mkdir(parents=True)
        WRITERS[suffix](rows().slice(600 * (year - 2020), 600), f"by/year={year}/t.{suffix}")
    assert main(["fit", "by", *FIT]) == 0
    assert et.load("model.et").schema_.input_names == ["id", "a", "kind", "w", "year"]
    said = says(capfd, "predict", "model.et", "by", "--keep", "year").splitlines()
    assert [line.split(",")[0] for line in said] == ["year", *["2020"] * 600, *["2021"] * 600]
    assert main(["update", "model.et", "by", "--allow-twice", "-q"]) == 0
    assert et.load("model.et").forest_.n_rows == 2 * N_ROWS


def test_names_that_do_not_tell_a_format(here, capfd):
    for k in range(N_FILES):
        os.rename(f"csv/{k}.csv", f"csv/part-{k}")
    assert "files must be all of one of" in fails(capfd, "fit", "csv", *FIT)
    assert main(["fit", "csv", "--format", "csv", *FIT]) == 0
    assert et.load("model.et").forest_.n_rows == N_ROWS


def test_a_name_with_brackets_is_a_name(here):
    WRITERS["csv"](rows(), "t[1].csv")
    assert main(["fit", "t[1].csv", *FIT]) == 0
    assert counted("model.et") == [("t[1].csv", N_ROWS)]


def test_show_does_not_list_hundreds_of_files(here, capfd):
    Path("days").mkdir()
    for k in range(40):
        WRITERS["csv"](rows().slice(30 * k, 30), f"days/{k:02d}.csv")
    assert main(["fit", "days", *FIT]) == 0
    said = says(capfd, "show", "model.et")
    assert "1200: 00.csv (30), 01.csv (30)" in said
    assert "11.csv (30) and 28 more" in said


def test_the_command_itself(here):
    assert main(["fit", "parquet", *FIT]) == 0
    assert run("predict", "model.et", "csv/*.csv", "-o", "answers.csv", cwd=here).returncode == 0
    assert Path("answers.csv").read_text().count("\n") == N_ROWS + 1


# ---- rows that were counted -----------------------------------------------------------------------------------------


def test_no_file_of_a_folder_counts_twice(here, capfd):
    assert main(["fit", "csv/[01].csv", *FIT]) == 0
    said = fails(capfd, "update", "model.et", "csv")
    assert said == "everytree: csv: model.et has the rows of csv/0.csv already; --allow-twice counts them once more\n"
    assert "has these rows already" in fails(capfd, "update", "model.et", "csv/1.csv")
    assert main(["update", "model.et", "csv/[23].csv", "-q"]) == 0
    assert counted("model.et") == [(f"{k}.csv", 300) for k in range(4)]
    assert "has the rows of csv/0.csv already" in fails(capfd, "update", "model.et", "csv")


def test_an_output_is_no_file_of_an_input(here, capfd):
    assert main(["fit", "t.csv", *FIT]) == 0
    for table in ("csv", "csv/*.csv"):
        before = Path("csv/2.csv").read_bytes()
        assert "is the same file as csv/2.csv" in fails(capfd, "predict", "model.et", table, "-o", "csv/2.csv")
        assert "is the same file as csv/2.csv" in fails(capfd, "fit", table, *FIT, "-o", "csv/2.csv")
        assert Path("csv/2.csv").read_bytes() == before


# ---- what is wrong --------------------------------------------------------------------------------------------------

COMMANDS = {"fit": ["fit", "{}", *FIT], "predict": ["predict", "m.et", "{}"], "update": ["update", "m.et", "{}"]}


@pytest.mark.parametrize("command", COMMANDS)
def test_folders_and_patterns_that_are_no_table(command, here, capfd):
    assert main(["fit", "t.csv", *FIT, "--empty", "-o", "m.et"]) == 0
    before = Path("m.et").read_bytes()

    def said(table: str) -> str:
        return fails(capfd, *(argument.format(table) for argument in COMMANDS[command]))

    Path("none").mkdir()
    assert said("none") == "everytree: the folder 'none' holds no files\n"
    assert said("no*.csv") == "everytree: no*.csv: no file has a name like this\n"
    assert "nowhere: the name has no known suffix" in said("nowhere")
    assert re.search(r"files must be all of one of \[.*\], but '\[ct\]\*' has", said("[ct]*"))
    Path("mixed").mkdir()
    WRITERS["csv"](rows(), "mixed/a.csv")
    WRITERS["parquet"](rows(), "mixed/b.parquet")
    assert "but 'mixed' has ['.csv', '.parquet']" in said("mixed")
    for suffix in WRITERS:
        WRITERS[suffix](rows().drop_columns(["a"]), f"{suffix}/9.{suffix}")
        found = said(suffix)
        assert f"{suffix}/9.{suffix}' has the columns ['id', 'kind', 'w', 'y'], but " in found
        assert f"{suffix}/0.{suffix}' has ['a', 'id', 'kind', 'w', 'y']" in found
    assert Path("m.et").read_bytes() == before
    assert not Path("model.et").exists()


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_columns_of_another_kind(suffix, here, capfd):
    WRITERS[suffix](rows().set_column(1, "a", rows()["kind"]), f"{suffix}/9.{suffix}")
    assert f"{suffix}/9.{suffix}' has a column of another kind than the files before" in fails(
        capfd, "fit", suffix, *FIT
    )


@pytest.mark.parametrize("suffix", WRITERS)
def test_a_file_among_others_that_is_none(suffix, here, capfd):
    Path(f"{suffix}/2.{suffix}").write_bytes(b"\0\xff nothing of the kind")
    assert f"2.{suffix}" in fails(capfd, "fit", suffix, *FIT)


def test_a_row_is_named_with_its_file(here, capfd):
    lines = Path("csv/2.csv").read_text().splitlines()
    lines[250] = lines[250].rpartition(",")[0] + ","
    Path("csv/2.csv").write_text("\n".join(lines) + "\n")
    assert "csv, 2.csv, line 251: the target 'y' is missing" in fails(capfd, "fit", "csv", *FIT)
    table = rows().slice(300, 300).to_pandas()
    table.loc[250, "a"] = np.inf
    pyarrow.parquet.write_table(pa.Table.from_pandas(table), "parquet/1.parquet")
    assert "parquet: column 'a', 1.parquet, row 250: inf" in fails(capfd, "fit", "parquet", *FIT)


@pytest.mark.parametrize("suffix", WRITERS)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_that_vanishes(command, suffix, here, capfd, monkeypatch):
    """After the command has listed the files of a folder, and looked at the names of their columns."""
    assert main(["fit", "t.csv", *FIT, "--empty", "-o", "m.et"]) == 0
    before = Path("m.et").read_bytes()
    columns = OpenTable.columns.func

    def then_one_is_gone(self: Any) -> list[str]:
        names: list[str] = columns(self)
        Path(f"{suffix}/3.{suffix}").unlink(missing_ok=True)
        return names

    monkeypatch.setattr(OpenTable.columns, "func", then_one_is_gone)
    arguments = [argument.format(suffix) for argument in COMMANDS[command]]
    out = ["-o", "answers.csv"] if command == "predict" else []
    assert f"{suffix}/3.{suffix}: there is no such file" in fails(capfd, *arguments, *out, "-q")
    assert Path("m.et").read_bytes() == before
    assert not [name for name in os.listdir() if name.startswith(("model", "answers"))]


@pytest.mark.parametrize("command", ["fit", "update"])
def test_a_file_that_changes_while_it_is_read(command, here, capfd, monkeypatch):
    assert main(["fit", "t.csv", *FIT, "--empty", "-o", "m.et"]) == 0
    before = Path("m.et").read_bytes()
    columns = OpenTable.columns.func

    def then_one_changes(self: Any) -> list[str]:
        os.utime("csv/1.csv", ns=(1, 1))
        return list(columns(self))

    monkeypatch.setattr(OpenTable.columns, "func", then_one_changes)
    arguments = [argument.format("csv") for argument in COMMANDS[command]]
    said = fails(capfd, *arguments, "-q")
    assert said == "everytree: csv/1.csv: has changed while it was read; nothing was written, run the command again\n"
    assert Path("m.et").read_bytes() == before
    assert not Path("model.et").exists()


def test_rows_that_trees_cannot_place_are_mentioned(here, capfd):
    assert main(["fit", "t.csv", *FIT, "--empty"]) == 0
    other = rows().set_column(2, "kind", pa.array(["new"] * N_ROWS))
    WRITERS["csv"](other, "other.csv")
    assert main(["update", "model.et", "other.csv"]) == 0
    assert f"cannot place them and leave out up to {N_ROWS:,} rows" in capfd.readouterr().err


@pytest.mark.parametrize("suffix", WRITERS)
def test_a_table_means_the_same_as_a_whole_and_in_parts(suffix, here):
    from everytree.cli.tables import Reading, open_table

    for path in (suffix, f"t.{suffix}"):
        table = open_table(path, Reading())
        whole, parts = table.read(), list(table.parts(table.columns))
        assert len(parts) > 4
        assert whole.columns == parts[0].columns == table.columns == rows().column_names
        assert pa.concat_tables([part.table for part in parts]).equals(whole.table)
        for name in rows().column_names:
            assert whole.table.schema.field(name).type == rows().schema.field(name).type


# ---- files that are read in other ways ------------------------------------------------------------------------------


def test_compressed_parquet(here):
    assert main(["fit", "t.parquet", *FIT, "-o", "expected.et"]) == 0
    Path("t.parquet.gz").write_bytes(gzip.compress(Path("t.parquet").read_bytes()))
    assert main(["fit", "t.parquet.gz", *FIT]) == 0
    same_model("model.et", "expected.et")


def test_a_name_that_begins_like_another(here):
    """Parquet takes `a` for all of a.b and a.c where these are parts of a column."""
    table = rows().rename_columns(["id", "a", "a.kind", "w", "y"])
    for k in range(2):
        pyarrow.parquet.write_table(table.slice(600 * k, 600), f"dots{k}.parquet")
    pyarrow.csv.write_csv(table, "dots.csv")
    assert main(["fit", "dots?.parquet", *FIT]) == 0
    assert main(["fit", "dots.csv", *FIT, "-o", "csv.et"]) == 0
    assert et.load("model.et").log_evidence_ == pytest.approx(et.load("csv.et").log_evidence_, rel=1e-12)


def test_files_whose_numbers_and_text_are_of_other_widths(here):
    wide = (
        rows()
        .set_column(2, "kind", rows()["kind"].cast(pa.large_string()))
        .set_column(3, "w", rows()["w"].cast("double"))
    )
    pyarrow.parquet.write_table(wide.slice(300, 300), "parquet/1.parquet")
    assert main(["fit", "parquet", *FIT]) == 0
    assert main(["fit", "t.parquet", *FIT, "-o", "expected.et"]) == 0
    same_model("model.et", "expected.et")
