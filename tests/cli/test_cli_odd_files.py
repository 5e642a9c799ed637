"""The command line on files and options as people have them: nothing changes in silence, and no traceback is shown."""

from __future__ import annotations

import csv
import decimal
import gzip
import io
import os
import re
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

import everytree as et
from command import POSIX, fails, run, says
from everytree.__main__ import main

N_ROWS = 40
SIZE = "größe, cm"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table of each kind of column, and a model of it."""
    monkeypatch.chdir(tmp_path)
    with open("odd.csv", "w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["id", "big", "day", "ok", "kind", "std", "lower", "q0.5", SIZE, "y"])
        for k in range(N_ROWS):
            day = f"2020-01-{k % 28 + 1:02d}"
            ok, kind = ("true", "false")[k % 2], "ab"[k % 2]
            rows.writerow([f"{k:05d}", 104409473489718130 + 7 * k, day, ok, kind, k, 2 * k, "NA", 0.5 * k, 1.5 * k])
    drop = ["--drop", "id,std,lower", "--drop", "q0.5"]
    assert main(["fit", "odd.csv", "-y", "y", "--trees", "3", "-q", "-o", "odd.et", *drop]) == 0
    return tmp_path


csv.field_size_limit(2**31 - 1)


def columns_of(text: str, delimiter: str = ",") -> dict[str, list[str]]:
    """The columns of a text file, as text."""
    first, *rows = csv.reader(io.StringIO(text), delimiter=delimiter)
    return {name: list(values) for name, values in zip(first, zip(*rows, strict=True), strict=True)}


def table_of(text: str, name: str = "t.csv") -> str:
    Path(name).write_text(text)
    return name


# ---- text that holds dates and numbers -------------------------------------------------------------------------------


@pytest.mark.filterwarnings("always:X. column")
def test_dates_and_numbers_written_as_text_are_read_as_at_fit(here, capfd):
    """Also with a mark of a missing number, in later files, and in rows that are added."""
    days = [datetime(2020, 1, 1) + timedelta(days=7 * k) for k in range(50)]
    rows = [f"{day:%d/%m/%Y},{'?' if k % 9 == 4 else k / 4},{day.month}" for k, day in enumerate(days)]
    table_of("day,size,y\n" + "\n".join(rows) + "\n")
    assert main(["fit", "t.csv", "-y", "y", "--kind", "number", "--trees", "3", "-o", "t.et"]) == 0
    said = capfd.readouterr().err
    assert "column 'day' holds dates written as text" in said
    assert "column 'size' holds numbers written as text" in said
    assert "every row" not in said
    model = et.load("t.et")
    assert [column.text for column in model.schema_.columns] == ["day-month-year", "number"]
    before = says(capfd, "predict", "t.et", "t.csv", "-q").split()[1:]
    table = pd.DataFrame({"day": days, "size": [np.nan if k % 9 == 4 else k / 4 for k in range(50)]})
    np.testing.assert_allclose(np.array(before, dtype=float), model.predict(table))
    assert main(["update", "t.et", "t.csv", "--allow-twice", "-q"]) == 0
    table_of("day,size,y\n01/02/2020,?,2\n12/31/2020,1.5,12\n", "bad.csv")
    assert "column 'day', line 3: '12/31/2020', but must be a date" in fails(capfd, "predict", "t.et", "bad.csv", "-q")


# ---- columns that are kept ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("out", ["-", "answers.tsv", "answers.csv.gz", "answers.parquet"])
def test_kept_columns_are_repeated_character_by_character(out, here, capfd):
    keep = ["id", "big", "day", "ok", "kind", "q0.5", SIZE]
    quoted = ",".join(f'"{name}"' for name in keep)
    said = says(capfd, "predict", "odd.et", "odd.csv", "--keep", quoted, "-o", out, "-q")
    if out == "answers.parquet":
        got = pyarrow.parquet.read_table(out).to_pydict()
    elif out == "answers.csv.gz":
        got = columns_of(gzip.decompress(Path(out).read_bytes()).decode())
    else:
        got = columns_of(said) if out == "-" else columns_of(Path(out).read_text(), "\t")
    expected = columns_of(Path("odd.csv").read_text())
    assert list(got) == [*keep, "prediction"]
    for name in keep:
        assert got[name] == expected[name]


def test_kept_columns_of_a_binary_file_keep_their_values(here, capfd):
    table = pa.table({
        "big": [2**62 + k for k in range(N_ROWS)],
        "price": [decimal.Decimal("1.10")] * N_ROWS,
        "label": pa.array(["a", "b,c"] * (N_ROWS // 2)).dictionary_encode(),
        "pair": [[1, 2]] * N_ROWS,
        "y": np.arange(N_ROWS) / 2,
    })  # fmt: skip
    pyarrow.parquet.write_table(table, "t.parquet")
    assert main(["fit", "t.parquet", "-y", "y", "--drop", "pair", "--trees", "2", "-q"]) == 0
    got = columns_of(says(capfd, "predict", "model.et", "t.parquet", "--keep", "big,price,label"))
    assert got["big"] == [str(2**62 + k) for k in range(N_ROWS)]
    assert (set(got["price"]), got["label"][:2]) == ({"1.10"}, ["a", "b,c"])
    said = fails(capfd, "predict", "model.et", "t.parquet", "--keep", "pair")
    assert "standard output: the column 'pair' of type list<element: int64> cannot be written as text" in said


def test_text_has_quotes_where_it_needs_them_and_nowhere_else(here, capfd):
    table = table_of('x,note,y\n1,"a, b",0.5\n2,"say ""so""",1.5\n3,plain,2.5\n')
    assert main(["fit", table, "-y", "y", "--drop", "note", "--trees", "2", "-q"]) == 0
    lines = says(capfd, "predict", "model.et", table, "--keep", "note").splitlines()
    assert [line.rpartition(",")[0] for line in lines] == ["note", '"a, b"', '"say ""so"""', "plain"]


def test_no_answer_takes_the_name_of_a_kept_column(here, capfd):
    how = ["--std", "--interval", ".9", "--quantiles", ".5"]
    for name in ("std", "lower", "q0.5"):
        said = fails(capfd, "predict", "odd.et", "odd.csv", *how, "--keep", name)
        assert f"odd.csv: a column {name!r} cannot be kept, since a column of predictions has that name" in said
    assert columns_of(says(capfd, "predict", "odd.et", "odd.csv", "--keep", "std"))["std"][7] == "7"


def test_every_quantile_has_a_column_of_its_own(here, capfd):
    got = columns_of(says(capfd, "predict", "odd.et", "odd.csv", "--quantiles", ".05,.05000001,.9999999"))
    assert list(got) == ["prediction", "q0.05", "q0.05000001", "q0.9999999"]
    assert got["q0.05"] != got["q0.05000001"]
    assert "--quantiles has 0.5 twice" in fails(capfd, "predict", "odd.et", "odd.csv", "--quantiles", ".5,0.50")


# ---- names in lists -------------------------------------------------------------------------------------------------


def test_names_with_commas_are_named_in_quotes(here, capfd):
    assert SIZE in et.load("odd.et").schema_.names
    assert main(["fit", "odd.csv", "-y", "y", "--trees", "2", "-q", "--drop", f'id, "{SIZE}"', "--drop", "big"]) == 0
    assert et.load("model.et").schema_.names == ["day", "ok", "kind", "std", "lower", "q0.5"]
    said = fails(capfd, "fit", "odd.csv", "-y", "y", "--drop", SIZE, "--force")
    assert f"no column 'größe' to drop; the nearest is {SIZE!r}; a name with a comma needs quotes of its own" in said
    assert "quote" in fails(capfd, "predict", "odd.et", "odd.csv", "--keep", '"größe', code=2)


def test_names_that_are_empty_or_have_spaces_and_quotes(here, capfd):
    table = table_of(',a b," c","d ""e""",y\n7,1,2,3,0.5\n8,2,3,4,1.5\n9,3,5,5,2.5\n')
    assert main(["fit", table, "-y", "y", "--trees", "2", "-q"]) == 0
    got = columns_of(says(capfd, "predict", "model.et", table, "--keep", '"", a b ," c","d ""e"""'))
    assert list(got) == ["", "a b", " c", 'd "e"', "prediction"]
    assert got[""] == ["7", "8", "9"]


# ---- columns as the model knows them --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "known", "line"),
    [("2020-01-99", "dates", 4), ("maybe", "booleans", 7), ("much", "numbers", 3), ("2020-01-04T00:00Z", "dates", 5)],
)
def test_the_first_value_that_is_not_what_the_model_knows_is_named(wrong, known, line, here, capfd):
    names = {"dates": "day", "booleans": "ok", "numbers": "big"}
    lines = Path("odd.csv").read_text().splitlines()
    for k in (line - 1, line + 4):  # the first of two
        values = next(csv.reader([lines[k]]))
        values[lines[0].split(",").index(names[known])] = wrong
        lines[k] = ",".join(values)
    table = table_of("\n".join(lines) + "\n", "wrong.csv")
    said = fails(capfd, "predict", "odd.et", table)
    assert f"wrong.csv, line {line}: column {names[known]!r} is {wrong!r}, but the model knows it as {known}" in said


def test_dates_and_booleans_are_read_in_every_way_they_are_written(here, capfd):
    expected = says(capfd, "predict", "odd.et", "odd.csv")
    text = Path("odd.csv").read_text()
    assert says(capfd, "predict", "odd.et", table_of(text.replace("true", "1").replace("false", "0"))) == expected
    for some, at_midnight in (
        ("01", "T00:00"), ("01", " 00:00:00"), ("01", " 00:00:00.000000000"), (r"\d\d", "T00:00:00Z"),
        (r"\d\d", " 01:00:00+01:00"),
    ):  # fmt: skip
        again = re.sub(rf"(2020-01-{some}),", rf"\g<1>{at_midnight},", text)
        assert again != text
        assert says(capfd, "predict", "odd.et", table_of(again)) == expected


def test_later_targets_and_weights_are_numbers_too(here, capfd):
    table_of("x,w,y\n" + "".join(f"{k},1,{k / 2}\n" for k in range(20)))
    assert main(["fit", "t.csv", "-y", "y", "--weight", "w", "--trees", "2", "-q"]) == 0
    said = fails(capfd, "update", "model.et", table_of("x,w,y\n1,1,2.5\n2,1,high\n", "more.csv"))
    assert "more.csv, line 3: column 'y' is 'high', but the model knows it as numbers" in said
    said = fails(capfd, "update", "model.et", table_of("x,w,y\n1,heavy,2.5\n", "more.csv"))
    assert "more.csv, line 2: column 'w' is 'heavy', but the model knows it as numbers" in said


def test_classes_of_another_kind_are_called_text(here, capfd):
    table_of("x,y\n" + "".join(f"{k},{k % 2}\n" for k in range(20)))
    assert main(["fit", "t.csv", "-y", "y", "--trees", "2", "-q"]) == 0
    said = fails(capfd, "update", "model.et", table_of("x,y\n1,yes\n", "more.csv"))
    assert "more.csv: the target 'y' has text such as 'yes', but the classes are [0, 1]" in said


# ---- targets --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["forest", "tree", "exact"])
def test_a_target_of_one_class_is_shown(model, here, capfd):
    table = table_of("x,y\n" + "".join(f"{k},yes\n" for k in range(20)))
    assert main(["fit", table, "-y", "y", "-q", "--model", model]) == 0
    said = says(capfd, "show", "model.et")
    assert "1 class: yes" in said
    assert "P(any other)" in said


def test_a_target_that_is_neither_class_nor_number_is_refused_before_the_fit(here, capfd):
    said = fails(capfd, "fit", "odd.csv", "-y", "day")
    assert said == "everytree: odd.csv: the target 'day' holds dates, but must hold classes or numbers\n"
    days = pa.table({"x": [1, 2], "y": [timedelta(1), timedelta(2)], "at": [datetime(2020, 1, 1)] * 2, "l": [[1]] * 2})
    pyarrow.parquet.write_table(days, "t.parquet")
    assert "the target 'y' holds durations" in fails(capfd, "fit", "t.parquet", "-y", "y")
    assert "the target 'at' holds dates" in fails(capfd, "fit", "t.parquet", "-y", "at", "--kind", "number")
    assert "the target 'l' holds values of type list" in fails(capfd, "fit", "t.parquet", "-y", "l")


def test_whole_numbers_beyond_those_that_floats_tell_apart_are_numbers(here):
    table = table_of("x,y\n" + "".join(f"{k},{10**20 + k % 2 * 10**19}\n" for k in range(20)))
    assert main(["fit", table, "-y", "y", "--trees", "2", "-q"]) == 0
    assert isinstance(et.load("model.et"), et.MetaForestRegressor)


def test_warnings_of_libraries_are_one_line(here):
    table = table_of("x,y\n" + "".join(f"{k},n{k}\n" for k in range(30)))
    done = run("fit", table, "-y", "y", "--trees", "2", "-q")
    assert done.returncode == 0
    assert done.stderr.decode().startswith("everytree: The number of unique classes")
    assert done.stderr.count(b"\n") == 1


# ---- options in their own words -------------------------------------------------------------------------------------

SAID = {
    "a weight that is text": (["--weight", "kind"], "odd.csv, line 2: the weight 'kind' is 'a', which is not a number"),
    "no weight at all": (["--weight", "none"], "odd.csv: the weight 'none' is zero for every row"),
    "a number that is text": (
        ["-y", "kind", "--kind", "number"],
        "line 2: the target 'kind' is 'a', which is not a num",
    ),
    "a class that is no class": (["--kind", "class"], "odd.csv, line 3: the target 'y' is 1.5, but classes are whole"),
    "an exposure of no counts": (
        ["--exposure", "std"],
        "--exposure is for --family poisson or negative_binomial, but",
    ),
    "no times": (
        ["--censored", "ok"],
        "--censored is for --family exponential or survival or weibull, but",
    ),
    "too deep": (["--model", "exact", "--depth", "12"], "odd.csv: --depth 12 on these columns"),
    "a delimiter that is none": (["--delimiter", "é"], "--delimiter must be one ASCII character"),
    "a delimiter of two": (["--delimiter", ";;"], "--delimiter must be one ASCII character"),
    "a quote between values": (["--delimiter", '"'], "--delimiter must be one ASCII character"),
    "no place": (["--out", ""], "--out must be the name of a file"),
}


@pytest.mark.parametrize("name", SAID)
def test_what_is_wrong_is_said_in_the_words_of_options(name, here, capfd):
    options, sentence = SAID[name]
    lines = Path("odd.csv").read_text().splitlines()
    table_of("\n".join([lines[0] + ",none", *(line + ",0" for line in lines[1:])]) + "\n", "odd.csv")
    said = fails(capfd, "fit", "odd.csv", "-y", "y", *options)
    assert sentence in said
    for word in ("np.", "sample_weight", "n_jobs", "max_depth", "max_regions", "family="):
        assert word not in said


@pytest.mark.parametrize("jobs", ["0", "-2", "-7"])
def test_a_number_of_threads_that_is_none(jobs, here, capfd):
    assert "--jobs" in fails(capfd, "fit", "odd.csv", "-y", "y", "--jobs", jobs, code=2)
    assert main(["predict", "odd.et", "odd.csv", "--jobs", "-1", "-q"]) == 0


def test_a_tab_may_be_said_as_shells_have_it(here):
    table = table_of("x\ty\n" + "".join(f"{k}\t{k / 2}\n" for k in range(20)))
    assert main(["fit", table, "-y", "y", "--delimiter", r"\t", "--trees", "2", "-q"]) == 0


@pytest.mark.parametrize("command", ["update", "report"])
def test_an_option_that_an_error_names_is_there(command, here, capfd):
    et.save(et.load("odd.et"), "python.et")
    assert "name it by --target" in fails(capfd, command, "python.et", "odd.csv")
    twice = ["--allow-twice"] if command == "update" else []
    assert main([command, "python.et", "odd.csv", "--target", "y", "-q", *twice]) == 0


# ---- where things are written ---------------------------------------------------------------------------------------


@POSIX
def test_an_output_is_never_an_input(here, capfd):
    os.symlink("odd.csv", "link.csv")
    os.link("odd.et", "twin.et")
    before = Path("odd.csv").read_bytes(), Path("odd.et").read_bytes()
    for arguments in (
        ["fit", "odd.csv", "-y", "y", "-o", "odd.csv"],
        ["fit", "link.csv", "-y", "y", "-o", "odd.csv"],
        ["fit", "odd.csv", "-y", "y", "-o", "./link.csv"],
        ["predict", "odd.et", "odd.csv", "-o", "odd.csv"],
        ["predict", "odd.et", "odd.csv", "-o", "twin.et", "--format", "csv"],
        ["report", "odd.et", "-o", "odd.et"],
        ["report", "odd.et", "odd.csv", "-o", "odd.csv"],
        ["merge", "odd.et", "odd.et", "-o", "odd.et"],
        ["update", "odd.et", "odd.csv", "-o", "odd.csv", "--allow-twice"],
    ):
        assert "is the same file as" in fails(capfd, *arguments)
    assert (Path("odd.csv").read_bytes(), Path("odd.et").read_bytes()) == before
    assert main(["update", "odd.et", "odd.csv", "-o", "odd.et", "--allow-twice", "-q"]) == 0


def test_only_text_is_compressed(here, capfd):
    assert main(["predict", "odd.et", "odd.csv", "-o", "answers.TSV.GZ", "-q"]) == 0
    assert gzip.decompress(Path("answers.TSV.GZ").read_bytes()).startswith(b"prediction\n")
    for name in ("a.parquet.gz", "a.feather.gz"):
        assert "has its own compression" in fails(capfd, "predict", "odd.et", "odd.csv", "-o", name)
        assert not Path(name).exists()


@pytest.mark.long
@POSIX
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize(
    "command",
    ["predict odd.et odd.csv", "show odd.et"],
)
def test_a_full_output_is_said_in_one_sentence(here, command):
    done = subprocess.run(
        f"{sys.executable} -m everytree {command} > /dev/full", shell=True, capture_output=True, check=False
    )
    said = b"everytree: standard output: cannot be written: No space left on device\n"
    assert (done.returncode, done.stderr) == (1, said)


@pytest.mark.long
@POSIX
def test_streams_that_are_closed(here):
    for command, said in (
        ("fit - -y y <&-", b"everytree: standard input is closed\n"),
        ("predict odd.et odd.csv >&-", b"everytree: standard output is closed\n"),
    ):
        shell = f"{sys.executable} -m everytree {command}"
        done = subprocess.run(shell, shell=True, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (1, said)


# ---- files that are read --------------------------------------------------------------------------------------------


def test_damaged_compression(here, capfd):
    whole = gzip.compress(Path("odd.csv").read_bytes())
    for name, content in {
        "short.csv.gz": whole[: len(whole) // 2],
        "none.csv.gz": b"x,y\n1,2\n",
        "changed.csv.gz": whole[:100] + b"\xff" * 50 + whole[150:],
        "sum.csv.gz": whole[:-8] + b"\0" * 8,
    }.items():
        Path(name).write_bytes(content)
        assert f"{name}: cannot be read: " in fails(capfd, "fit", name, "-y", "y")


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "byte order mark"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_and_byte_order_marks_change_nothing(mark, end, here, capfd):
    table = Path("odd.csv").read_text()
    expected = says(capfd, "predict", "odd.et", "odd.csv", "--keep", "id,big")
    Path("t.csv").write_bytes(mark + table.replace("\n", end).encode())
    assert says(capfd, "predict", "odd.et", "t.csv", "--keep", "id,big") == expected


def test_line_breaks_in_quotes_are_kept(here, capfd):
    table = table_of('note,x,y\n"one\ntwo",1,0.5\nplain,2,1.5\n,3,2.5\n')
    assert main(["fit", table, "-y", "y", "--drop", "note", "--trees", "2", "-q"]) == 0
    got = columns_of(says(capfd, "predict", "model.et", table, "--keep", "note"))
    assert got["note"] == ["one\ntwo", "plain", ""]


def test_values_may_be_long(here, capfd):
    long = "a" * 1_500_000
    table = table_of("note,x,y\n" + "".join(f"{long}{k},{k},{k / 2}\n" for k in range(3)))
    assert main(["fit", table, "-y", "y", "--drop", "note", "--trees", "2", "-q"]) == 0
    got = columns_of(says(capfd, "predict", "model.et", table, "--keep", "note"))
    assert got["note"] == [f"{long}{k}" for k in range(3)]
    said = fails(capfd, "fit", table_of(f"note,x,y\n{long},1,0.5\n{long},1\n"), "-y", "y", "--force")
    assert "t.csv, line 3: has 2 values, but line 1 has 3" in said


def test_kept_columns_of_a_file_without_names(here, capfd):
    table = table_of("".join(f"{k:03d},{k / 2}\n" for k in range(20)))
    assert main(["fit", table, "--no-header", "-y", "column2", "--trees", "2", "-q"]) == 0
    got = columns_of(says(capfd, "predict", "model.et", table, "--keep", "column1"))
    assert got["column1"] == [f"{k:03d}" for k in range(20)]


# ---- what nobody thought of -----------------------------------------------------------------------------------------


def test_a_fault_is_one_sentence_and_its_traceback_can_be_asked_for(here, capfd, monkeypatch):
    def stumble(*_: object, **__: object) -> None:
        raise ZeroDivisionError("float division\nby zero")

    monkeypatch.setattr("everytree.cli.showing.show_model", stumble)
    said = fails(capfd, "show", "odd.et", code=70)
    assert "a fault of everytree, please report it: ZeroDivisionError: float division by zero" in said
    assert "EVERYTREE_TRACEBACK=1" in said
    monkeypatch.setenv("EVERYTREE_TRACEBACK", "1")
    assert main(["show", "odd.et"]) == 70
    assert "in stumble" in capfd.readouterr().err


@pytest.mark.long
@POSIX
@pytest.mark.parametrize("module", ["numpy", "typer", "sklearn", "pyarrow"])
def test_an_interrupt_during_the_imports_is_one_sentence(module, here):
    (here / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}:\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
    )
    done = run("fit", "odd.csv", "-y", "y", "-o", "new.et", env={**os.environ, "PYTHONPATH": str(here)})
    assert (done.returncode, done.stderr) == (130, b"everytree: interrupted; nothing was written\n")
    assert not Path("new.et").exists()


def test_the_package_is_imported_without_the_libraries_it_needs():
    code = "import sys, everytree; print({'numpy', 'scipy', 'sklearn'} & set(sys.modules), everytree.MetaTree.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout == b"set() MetaTree\n"


# ---- long headers, formulas -----------------------------------------------------------------------------------------


def test_a_header_longer_than_what_is_read_at_a_time(here):
    names = [f"{k}_{'x' * 200_000}" for k in range(6)]
    rows = [",".join([*(str((k + 1) * r) for k in range(6)), str(r % 2)]) for r in range(30)]
    name = table_of("\n".join([",".join([*names, "y"]), *rows]) + "\n")
    assert os.path.getsize(name) > 2**20
    assert main(["fit", name, "-y", "y", "--trees", "2", "-q", "-o", "long.et"]) == 0
    assert list(et.load("long.et").feature_names_in_) == names
    batched = et.MetaForestClassifier(n_estimators=2).fit_batches(name, target="y")
    assert list(batched.feature_names_in_) == names
    assert batched.forest_.n_rows == 30
