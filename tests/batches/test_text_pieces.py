"""Text in pieces: the rows of all pieces are those of the file, wherever it is cut, and lines keep their numbers."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from everytree.batches import text_pieces
from everytree.batches.text import TextError, TextReader
from everytree.batches.text_pieces import pieces

TEXTS = {
    "plain": "a,b\n1,x\n2,y\n3,z\n",
    "no line break at the end": "a,b\n1,x\n2,y",
    "line breaks in quotes": 'a,b\n1,"x\ny"\n2,"say ""so""\n, or so"\n3,z\n',
    "a name with a line break": '"a\nb",c\n1,2\n3,4\n',
    "windows": "a,b\r\n1,x\r\n2,y\r\n",
    "byte order mark": "\ufeffa,b\n1,x\n2,y\n",
    "empty lines": "\n\na,b\n\n1,x\n\n2,y\n",
    "names alone": "a,b\n",
    "nothing": "",
}


def rows_of(text: str) -> list[list[str]]:
    return [row for row in csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline="")) if row]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 1000])
@pytest.mark.parametrize("has_header", [True, False])
@pytest.mark.parametrize("name", TEXTS)
def test_pieces_have_all_rows_in_their_order(name, has_header, size, monkeypatch):
    monkeypatch.setattr(text_pieces, "PIECE_BYTES", size)
    text = TEXTS[name]
    expected = rows_of(text)
    found = [rows_of(piece.content.decode()) for piece in pieces(io.BytesIO(text.encode()), has_header)]
    if has_header and expected:
        assert all(rows[0] == expected[0] for rows in found)
        assert [row for rows in found for row in rows[1:]] == expected[1:]
    else:
        assert [row for rows in found for row in rows] == expected
    assert found
    assert len(found) > 1 or size > 1 or len(expected) <= 2


@pytest.mark.parametrize("name", TEXTS)
def test_lines_keep_their_numbers(name, monkeypatch):
    monkeypatch.setattr(text_pieces, "PIECE_BYTES", 4)
    text = TEXTS[name].encode()
    all_lines = text.split(b"\n")
    for piece in [*pieces(io.BytesIO(text), True), *pieces(io.BytesIO(text), True, 2**20)]:
        for number, line in enumerate(piece.content.split(b"\n"), start=1):
            assert line in (all_lines[piece.line(number) - 1], b"")


@pytest.mark.parametrize("wrong", [0, 1, 17, 98, 99])
@pytest.mark.parametrize("kind", ["number", "date", "boolean"])
def test_the_first_wrong_value_is_found_by_halving(wrong, kind):
    right = {"number": "1.5", "date": "2020-01-31", "boolean": "true"}[kind]
    values = np.array([right] * 100, dtype=object)
    values[5::7] = ""
    values[[wrong, 99]] = "nonsense"
    content = "a,b\n" + "".join(f"{value},x\n" for value in values)
    reader = TextReader("t.csv", kinds={"a": kind})
    with pytest.raises(TextError) as error:
        reader.read(next(pieces(io.BytesIO(content.encode()), True, 2**20)))
    assert error.value.line == wrong + 2
    assert str(error.value).startswith(f"t.csv, line {wrong + 2}: column 'a' is 'nonsense', but the model knows it as ")


def test_lines_of_old_macs_are_one_piece(monkeypatch):
    monkeypatch.setattr(text_pieces, "PIECE_BYTES", 4)
    (piece,) = pieces(io.BytesIO(b"a,b\r1,x\r2,y\r"), True)
    assert TextReader("t.csv").read(piece).to_pydict() == {"a": [1, 2], "b": ["x", "y"]}
