"""Text files as one table: types do not depend on where it is cut into pieces, or into files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest

from everytree.batches import text_pieces
from everytree.batches.file_sources import open_files
from everytree.batches.files import FilesError, find_files
from everytree.batches.text import TextReader
from everytree.batches.text_files import SeenTypes

N_ROWS = 40

COLUMNS = {
    "whole numbers, then fractions": ["1"] * 30 + ["2.5"] * 10,
    "fractions, then whole numbers": ["2.5"] * 10 + ["1"] * 30,
    "large numbers, then fractions": ["9007199254740993"] * 30 + ["0.5"] * 10,
    "numbers, then text": ["007"] * 30 + ["x"] * 10,
    "text, then numbers": ["x"] * 5 + ["007"] * 35,
    "0 and 1, then booleans": ["0", "1"] * 15 + ["true"] * 10,
    "booleans, then 0 and 1": ["false"] * 10 + ["0", "1"] * 15,
    "numbers, then booleans": ["0", "2"] * 15 + ["true"] * 10,
    "booleans, then numbers": ["true"] * 10 + ["1"] * 10 + ["2"] * 20,
    "booleans, then fractions": ["true"] * 30 + ["0.5"] * 10,
    "days, then times": ["2020-01-31"] * 30 + ["2020-01-31 12:30:00"] * 10,
    "times, then finer times": ["2020-01-31 12:30:00"] * 30 + ["2020-01-31 12:30:00.25"] * 10,
    "days, then finer times": ["2020-01-31"] * 30 + ["2020-01-31 12:30:00.25"] * 10,
    "days, then numbers": ["2020-01-31"] * 30 + ["7"] * 10,
    "times with a zone": ["2020-01-31T12:30:00Z"] * 30 + ["2020-01-31"] * 10,
    "times of day": ["12:30:00"] * 30 + ["7"] * 10,
    "missing, then numbers": ["NA"] * 30 + ["7"] * 10,
    "numbers, then missing": ["7"] * 10 + ["NA"] * 30,
    "nothing": ["NA"] * 40,
}


def at_once(text: str) -> pa.Table:
    """What pyarrow finds in all rows together."""
    missing = pyarrow.csv.ConvertOptions(null_values=["NA"], strings_can_be_null=True)
    return pyarrow.csv.read_csv(pa.BufferReader(text.encode()), convert_options=missing)


def whole(path: Path | str) -> pa.Table:
    return pa.concat_tables([part.table for part in open_files(find_files(str(path)), TextReader("")).whole()])


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("size", [70, 300, 10**6])
def test_types_are_those_of_all_rows_wherever_a_file_is_cut(name, size, tmp_path, monkeypatch):
    monkeypatch.setattr(text_pieces, "PIECE_BYTES", size)
    text = "n,x\n" + "".join(f"{k},{value}\n" for k, value in enumerate(COLUMNS[name]))
    (tmp_path / "t.csv").write_text(text)
    assert whole(tmp_path / "t.csv").equals(at_once(text))
    opened = open_files(find_files(str(tmp_path / "t.csv")), TextReader(""))
    seen = SeenTypes()
    for part in opened.parts():
        seen.add(part.table)
    again = pa.concat_tables([part.table for part in opened.with_types(seen.types).parts()])
    assert again.to_pydict() == at_once(text).to_pydict()


@pytest.mark.parametrize("name", COLUMNS)
def test_several_files_are_the_table_of_their_rows(name, tmp_path):
    rows = [f"{k},{value}\n" for k, value in enumerate(COLUMNS[name])]
    for start in range(0, N_ROWS, 8):
        (tmp_path / f"{start:02d}.csv").write_text("n,x\n" + "".join(rows[start : start + 8]))
    assert whole(tmp_path).equals(at_once("n,x\n" + "".join(rows)))


def test_files_may_have_their_columns_in_another_order(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "b.csv").write_text("y,x\n4,3\n")
    opened = open_files(find_files(str(tmp_path)))
    assert opened.columns == ["x", "y"]
    assert [part.table.select(["x", "y"]).to_pylist() for part in opened.whole()] == [
        [{"x": 1, "y": 2}],
        [{"x": 3, "y": 4}],
    ]


def test_a_file_in_no_named_folder_has_no_value_of_it(tmp_path):
    (tmp_path / "year=2020").mkdir()
    (tmp_path / "a.csv").write_text("x\n1\n")
    (tmp_path / "year=2020" / "b.csv").write_text("x\n2\n")
    assert whole(tmp_path).to_pydict() == {"x": [1, 2], "year": [None, 2020]}


def test_dates_of_two_kinds_in_a_column_that_must_hold_dates(tmp_path):
    (tmp_path / "a.csv").write_text("day\n" + "2020-01-31 12:30\n" * 30)
    (tmp_path / "b.csv").write_text("day\n" + "2020-01-31T12:30Z\n" * 10)
    opened = open_files(find_files(str(tmp_path)), TextReader("", kinds={"day": "date"}))
    with pytest.raises(
        FilesError, match=r"b.csv': column 'day' holds timestamp\[us, tz=UTC\], but timestamp\[us\] bef"
    ):
        opened.whole()
