"""The command line: what it answers is what Python answers, and what is wrong is one sentence."""

from __future__ import annotations

import gzip
import os
import re
import runpy
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine

import everytree as et
from command import POSIX, fails, run
from corruptions import is_compressed
from everytree.__main__ import main
from everytree.families.registry import NUMBER_FAMILIES
from everytree.files import load_with_notes

DOCS = Path(__file__).parents[2] / "docs"
WRITERS = {
    "csv": pyarrow.csv.write_csv,
    "tsv": lambda table, path: pyarrow.csv.write_csv(table, path, pyarrow.csv.WriteOptions(delimiter="\t")),
    "parquet": pyarrow.parquet.write_table,
    "feather": pyarrow.feather.write_feather,
}
READERS = {
    "csv": pyarrow.csv.read_csv,
    "tsv": lambda path: pyarrow.csv.read_csv(path, parse_options=pyarrow.csv.ParseOptions(delimiter="\t")),
    "parquet": pyarrow.parquet.read_table,
    "feather": pyarrow.feather.read_table,
}


def patients() -> pa.Table:
    """Numbers to predict, from numbers and text with missing values."""
    raw = load_diabetes(scaled=False)
    columns: dict[str, Any] = dict(zip(raw.feature_names, raw.data.T, strict=True))
    rng = np.random.default_rng(0)
    columns["sex"] = pa.array(np.where(columns["sex"] > 1.0, "M", "F"), mask=rng.random(442) < 0.1)
    columns["bmi"] = pa.array(columns["bmi"], mask=rng.random(442) < 0.1)
    columns["ward"] = rng.choice(["1", "2", "north"], 442)  # some shards see only what looks like numbers
    return pa.table(columns | {"progress": raw.target})


def wine() -> pa.Table:
    """Classes to predict."""
    raw = load_wine()
    return pa.table(dict(zip(raw.feature_names, raw.data.T, strict=True)) | {"class": raw.target_names[raw.target]})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables and a model of each kind, for tests that only read."""
    place = tmp_path_factory.mktemp("cli")
    for name, table in (("patients", patients()), ("wine", wine())):
        for suffix, write in WRITERS.items():
            write(table, place / f"{name}.{suffix}")
    pyarrow.csv.write_csv(wine().slice(0, 0), place / "header.csv")
    iris = load_iris(as_frame=True).frame.rename(columns={"target": "species"})
    iris.iloc[::2].to_csv(place / "iris.csv", index=False)
    assert main(["fit", f"{place}/patients.parquet", "-y", "progress", "--trees", "6", "-o", f"{place}/p.et"]) == 0
    assert main(["fit", f"{place}/wine.csv", "-y", "class", "--trees", "6", "-o", f"{place}/w.et"]) == 0
    return place


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


# ---- what it answers ------------------------------------------------------------------------------------------------


def test_the_model_is_the_one_that_python_fits(folder):
    table = patients()
    ours, notes = load_with_notes(folder / "p.et")
    theirs = et.MetaForestRegressor(6, random_state=0).fit(table.drop_columns(["progress"]), table["progress"])
    assert ours.log_evidence_ == theirs.log_evidence_
    assert ours.get_params() == theirs.get_params()
    (counted,) = notes["command_line"]["counted"]
    assert (notes["command_line"]["target"], counted["table"], counted["rows"]) == ("progress", "patients.parquet", 442)


@pytest.mark.parametrize("suffix", WRITERS)
def test_every_format_in_and_out_gives_python_s_answers(folder, here, suffix):
    arguments = ["--quantiles", ".05,.5,.95", "--interval", ".9", "--std", "--keep", "sex,age", "-q"]
    path = f"answers.{suffix}"
    assert main(["predict", f"{folder}/p.et", f"{folder}/patients.{suffix}", "-o", path, *arguments]) == 0
    got = READERS[suffix](path)
    model, X = et.load(folder / "p.et"), patients()
    mean, std = model.predict(X, return_std=True)
    expected = np.column_stack([mean, std, model.predict_quantiles(X), model.predict_interval(X, 0.9)])
    names = ["prediction", "std", "q0.05", "q0.5", "q0.95", "lower", "upper"]
    assert got.column_names == ["sex", "age", *names]
    assert np.array_equal(np.column_stack([got[name] for name in names]), expected)  # to the last bit, in text too
    assert [value or None for value in got["sex"].to_pylist()] == X["sex"].to_pylist()


@pytest.mark.parametrize("suffix", WRITERS)
def test_a_fit_does_not_depend_on_the_format(folder, here, suffix):
    assert main(["fit", f"{folder}/patients.{suffix}", "-y", "progress", "--trees", "6", "-q"]) == 0
    assert et.load("model.et").log_evidence_ == et.load(folder / "p.et").log_evidence_


def test_pipes_in_and_out(folder):
    table = (folder / "wine.tsv").read_bytes()
    done = run("predict", folder / "w.et", "-", "--proba", "--format", "tsv", input=table)
    assert (done.returncode, done.stderr) == (0, b"")  # no bar in a pipe
    got = READERS["tsv"](pa.BufferReader(done.stdout))
    model = et.load(folder / "w.et")
    assert np.array_equal(np.column_stack(got.columns[1:]), model.predict_proba(wine()))
    assert got.column_names == ["prediction", *(f"p_{label}" for label in model.classes_)]
    assert got["prediction"].to_pylist() == model.predict(wine()).tolist()


@POSIX
def test_a_reader_that_stops_reading_is_no_error_to_speak_of(folder):
    command = f"{sys.executable} -m everytree predict {folder}/w.et {folder}/wine.csv"
    done = subprocess.run(f"{command} | head -c 1", shell=True, capture_output=True, check=False)
    assert (done.stdout, done.stderr) == (b"p", b"")


@pytest.mark.parametrize(
    "how", [[], ["--model", "tree"], ["--model", "exact", "--depth", "2"]], ids=["forest", "tree", "exact"]
)
@pytest.mark.parametrize("name", ["wine", "patients"])
def test_update_and_merge_equal_one_count_of_all_rows(folder, here, name, how):
    table, target = {"wine": (wine(), "class"), "patients": (patients(), "progress")}[name]
    n = table.num_rows
    for part, rows in enumerate(np.array_split(np.random.default_rng(0).permutation(n), 3)):
        WRITERS["csv"](table.take(np.sort(rows)), f"{part}.csv")
    options = ["-q", *how, *(["--trees", "4"] if not how else [])]
    assert main(["fit", "0.csv", "-y", target, "-o", "first.et", *options]) == 0
    assert main(["fit", "0.csv", "-y", target, "-o", "blank.et", "--empty", *options]) == 0
    for part in range(3):
        assert main(["update", "blank.et", f"{part}.csv", "-o", f"{part}.et", "-q"]) == 0
    assert main(["merge", "0.et", "1.et", "2.et", "-o", "merged.et", "-q"]) == 0
    assert main(["update", "first.et", "1.csv", "-q"]) == 0  # in place
    assert main(["update", "first.et", "2.csv", "-q"]) == 0
    at_once = et.load("blank.et").partial_fit(table.drop_columns([target]), table[target])
    for path in ("merged.et", "first.et"):
        model, notes = load_with_notes(path)
        assert [one["table"] for one in notes["command_line"]["counted"]] == ["0.csv", "1.csv", "2.csv"]
        assert model.log_evidence_ == pytest.approx(at_once.log_evidence_, abs=1e-9)
        answers = "predict_proba" if name == "wine" else "predict"
        assert np.allclose(getattr(model, answers)(table), getattr(at_once, answers)(table), rtol=1e-10, atol=1e-10)


def test_a_compressed_model_stays_compressed(folder, here):
    for part, rows in enumerate(np.array_split(np.arange(178), 2)):
        WRITERS["csv"](wine().take(rows * 97 % 178), f"{part}.csv")
    fit = ["fit", "0.csv", "-y", "class", "--trees", "4", "-q"]
    assert main([*fit, "-o", "plain.et"]) == 0
    assert main([*fit, "--compress", "-o", "small.et"]) == 0
    for model in ("plain", "small"):
        assert main(["update", f"{model}.et", "1.csv", "-q"]) == 0  # in place
        assert main(["update", f"{model}.et", "1.csv", "--allow-twice", "-o", f"{model} twice.et", "-q"]) == 0
    for which in ("", " twice"):
        plain, small = (Path(f"{model}{which}.et").read_bytes() for model in ("plain", "small"))
        assert is_compressed(small)
        assert not is_compressed(plain)
        assert len(small) < len(plain)
        assert et.load(f"small{which}.et").log_evidence_ == et.load(f"plain{which}.et").log_evidence_


def test_blank_has_no_rows_and_leaves_the_model_alone():
    X, y = load_wine(return_X_y=True)
    for model in (et.MetaForestClassifier(3, random_state=0), et.MetaTreeClassifier(), et.ExactTreeClassifier(2)):
        before = model.fit(X, y).log_evidence_
        blank = model.blank()
        assert blank.log_evidence_ == pytest.approx(0.0, abs=1e-9)
        blank.partial_fit(X[:50], y[:50])
        assert model.log_evidence_ == before


def test_counts_with_exposure_and_weights(here):
    rng = np.random.default_rng(0)
    x, years, weight = rng.normal(size=300), rng.uniform(0.5, 2.0, 300), rng.integers(1, 4, 300)
    claims = rng.poisson(years * np.exp(x))
    WRITERS["csv"](pa.table({"id": np.arange(300), "x": x, "years": years, "w": weight, "n": claims}), "claims.csv")
    options = ["--family", "poisson", "--exposure", "years", "--weight", "w", "--drop", "id", "--trees", "4", "-q"]
    assert main(["fit", "claims.csv", "-y", "n", *options]) == 0
    assert main(["predict", "model.et", "claims.csv", "-o", "answers.parquet", "-q"]) == 0
    model = et.MetaForestRegressor(4, family="poisson", random_state=0)
    model.fit(pa.table({"x": x}), claims, weight, exposure=years)
    expected = model.predict(pa.table({"x": x}), exposure=years)
    assert np.array_equal(pyarrow.parquet.read_table("answers.parquet")["prediction"], expected)


def test_without_a_header_columns_are_numbered_for_good(here, capfd):
    raw = load_wine()
    np.savetxt("rows.csv", np.column_stack([raw.data, raw.target]), delimiter=",", fmt="%g")
    assert main(["fit", "rows.csv", "--no-header", "-y", "column14", "--trees", "3", "-q"]) == 0
    np.savetxt("new.csv", raw.data[:5], delimiter=",", fmt="%g")
    assert main(["predict", "model.et", "new.csv"]) == 0
    assert capfd.readouterr().out == "prediction\n" + "0\n" * 5
    assert "say --no-header" in fails(capfd, "fit", "rows.csv", "-y", "target", "--force")
    Path("other.csv").write_text("a|b\n1|2\n")
    assert "give it by --delimiter" in fails(capfd, "fit", "other.csv", "-y", "b", "--force")


def test_rows_that_trees_cannot_place_are_mentioned(here, capfd):
    WRITERS["csv"](pa.table({"x": ["a", "b"] * 30, "y": [0, 1] * 30}), "known.csv")
    WRITERS["csv"](pa.table({"x": ["a", "c", "d"], "y": [0, 1, 1]}), "more.csv")
    assert main(["fit", "known.csv", "-y", "y", "--trees", "3", "-q"]) == 0
    assert main(["update", "model.et", "more.csv"]) == 0
    assert "of 3 trees, 3 cannot place them and leave out up to 2 rows" in capfd.readouterr().err


def test_text_that_looks_like_numbers_stays_text(folder, here):
    rows = patients().filter(pa.compute.equal(patients()["ward"], "1"))
    WRITERS["csv"](rows, "ward1.csv")
    assert main(["predict", f"{folder}/p.et", "ward1.csv", "-o", "a.parquet", "-q"]) == 0
    assert np.array_equal(READERS["parquet"]("a.parquet")["prediction"], et.load(folder / "p.et").predict(rows))


def test_text_with_commas_quotes_and_line_breaks_comes_back(here):
    labels = ['a,"b"', "c\nd"] * 20
    WRITERS["csv"](pa.table({"x": np.arange(40) % 2, "y": labels}), "odd.csv")
    assert main(["fit", "odd.csv", "-y", "y", "--trees", "2", "-q"]) == 0
    assert main(["predict", "model.et", "odd.csv", "-o", "answers.csv", "-q"]) == 0
    options = pyarrow.csv.ParseOptions(newlines_in_values=True)
    assert pyarrow.csv.read_csv("answers.csv", parse_options=options)["prediction"].to_pylist() == labels


def test_compressed_text_is_read(folder, here):
    Path("wine.csv.gz").write_bytes(gzip.compress((folder / "wine.csv").read_bytes()))
    assert main(["predict", f"{folder}/w.et", "wine.csv.gz", "-o", "answers.csv", "-q"]) == 0


def test_show_says_what_was_fitted_on_what(folder, here, capfd):
    assert main(["show", f"{folder}/w.et"]) == 0
    said = capfd.readouterr().out
    for part in (
        "6 trees",
        "class, 3 classes: class_0",
        "178: wine.csv (178)",
        "log p(y | X) = ",
        "█",
        "split  in tree",
    ):
        assert part in said
    et.save(et.MetaTree.complete([0, 1, 1]), "tree.et")
    assert main(["show", "tree.et"]) == 0
    assert "MetaTree" in capfd.readouterr().out
    assert main(["fit", f"{folder}/wine.csv", "-y", "class", "--model", "exact", "--depth", "2", "-q"]) == 0
    assert main(["show", "model.et"]) == 0
    assert "the most probable tree: 4 leaves, probability" in capfd.readouterr().out


def test_version_and_completion():
    assert run("--version").stdout.decode() == f"everytree {et.__version__}\n"
    done = run("--show-completion", "bash", env={**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"})
    assert b"_EVERYTREE_COMPLETE=complete_bash" in done.stdout


@pytest.mark.parametrize("command", ["fit", "predict", "update", "merge", "show", "explain", "report"])
def test_every_command_has_examples(command, capfd):
    assert main([command, "--help"]) == 0
    assert f"everytree {command} " in capfd.readouterr().out.split("Arguments")[0].split("\n", 3)[3]


@pytest.mark.long
@POSIX
def test_progress_is_shown_on_a_terminal_only(folder, here, capfd):
    import pty

    main_end, other_end = pty.openpty()
    fit = ["fit", f"{folder}/wine.csv", "-y", "class", "--trees", "3"]
    subprocess.run([sys.executable, "-m", "everytree", *fit], stderr=other_end, stdout=other_end, check=True)
    os.close(other_end)
    assert "growing" in os.read(main_end, 10_000).decode()
    os.close(main_end)
    assert main([*fit, "--force"]) == 0
    assert "growing" not in capfd.readouterr().err


# ---- what is wrong --------------------------------------------------------------------------------------------------

NAMED = "a,b,y\n1,x,0\n2,x,1\n3,z,1\n"
BROKEN = {
    "a short line": ("a,y\n1,0\n2\n3,1\n", "bad.csv, line 3: has 1 value, but line 1 has 2"),
    "a long line": ("a,y\n1,0\n\n2,1,9\n", "bad.csv, line 4: has 3 values, but line 1 has 2"),
    "after a line break in quotes": ('a,y\n"1\n2",0\n2,1,9\n', "bad.csv, line 4: has 3 values"),
    "an open quote": ('a,y\n"1,0\n2,1\n', "bad.csv, after line 1: unexpected end of data"),
    "no UTF-8": (b"a,y\n1,0\n\xff,1\n", "bad.csv, line 3: is not UTF-8 text: byte 0xff"),
    "zeros": (b"a,y\n1,0\n\0,1\n", "bad.csv, line 3: holds a zero byte"),
    "nothing": ("", "bad.csv: is empty"),
    "names alone": ("a,y\n", "bad.csv: there are no rows"),
    "a name twice": ("a,a,y\n1,2,3\n", "bad.csv: several columns are named 'a'"),
    "no target": ("a,y\n1,0\n2,\n", "bad.csv, line 3: the target 'y' is missing"),
    "an infinite number": ("a,y\n1,0\ninf,1\n", "bad.csv: column 'a', line 3: inf"),
    "nothing but the target": ("y\n0\n1\n", "bad.csv: no column is left to predict 'y' from"),
    "times of day": ("a,y\n12:30,0\n13:00,1\n", "bad.csv: column 'a' is of type Time"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_table(name, here, capfd):
    content, said = BROKEN[name]
    Path("bad.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    assert said in fails(capfd, "fit", "bad.csv", "-y", "y")
    assert os.listdir() == ["bad.csv"]


def test_files_that_are_not_what_they_should_be(folder, here, capfd):
    Path("a.csv").write_text(NAMED)
    assert "a.csv.et: there is no such file" in fails(capfd, "show", "a.csv.et")
    assert "ab.csv: there is no such file" in fails(capfd, "fit", "ab.csv", "-y", "y")
    Path("a.txt").write_text(NAMED)
    assert "a.txt is not a model file of this version" in fails(capfd, "predict", "a.txt", "a.csv")
    Path("a.parquet").write_text(NAMED)
    assert "a.parquet: is not a Parquet file" in fails(capfd, "fit", "a.parquet", "-y", "y")
    Path("a.feather").write_text(NAMED)
    assert "a.feather: is not a Feather file" in fails(capfd, "fit", "a.feather", "-y", "y")
    Path("a.dat").write_text(NAMED)
    assert "a.dat: the name has no known suffix" in fails(capfd, "fit", "a.dat", "-y", "y")
    Path("a.xls").write_text(NAMED)
    assert "a.xls: Excel files are not read; save the sheet as CSV" in fails(capfd, "fit", "a.xls", "-y", "y")
    damaged = bytearray((folder / "w.et").read_bytes())
    damaged[-1] ^= 1
    Path("damaged.et").write_bytes(damaged)
    assert "the file is damaged" in fails(capfd, "show", "damaged.et")
    et.save(et.MetaTree.complete([0, 1, 1]), "tree.et")
    assert "tree.et: holds a MetaTree, but a fitted estimator is needed" in fails(capfd, "predict", "tree.et", "a.csv")
    et.save(et.load(folder / "w.et"), "forged.et", notes={"command_line": {"target": 7}})
    assert "forged.et: notes.command_line: names must be text" in fails(capfd, "show", "forged.et")
    et.save(et.load(folder / "w.et"), "forged.et", notes={"command_line": {"compressed": "yes"}})
    assert "forged.et: notes.command_line: names must be text" in fails(capfd, "show", "forged.et")
    et.save(et.load(folder / "w.et"), "python.et")
    assert "name it by --target" in fails(capfd, "update", "python.et", f"{folder}/wine.csv")


def test_names_that_are_not_there(folder, here, capfd):
    table = f"{folder}/patients.csv"
    assert "no column 'Progres' for the target; the nearest is 'progress'\n" in fails(
        capfd, "fit", table, "-y", "Progres"
    )
    assert "there are 'age', 'sex'" in fails(capfd, "fit", table, "-y", "qqqq")
    assert "no column 'x' to drop" in fails(capfd, "fit", table, "-y", "progress", "--drop", "x")
    assert "no column 'w' for the weight" in fails(capfd, "fit", table, "-y", "progress", "--weight", "w")
    assert "no column 'id' to keep" in fails(capfd, "predict", f"{folder}/p.et", table, "--keep", "id")


def test_a_table_of_another_schema(folder, here, capfd):
    said = fails(capfd, "predict", f"{folder}/w.et", f"{folder}/patients.csv")
    assert "patients.csv: there is no column 'alcohol', which the model" in said
    rows = patients().slice(0, 3).to_pandas().assign(age=["50", "old", "60"])
    rows.to_csv("text.csv", index=False)
    said = fails(capfd, "predict", f"{folder}/p.et", "text.csv")
    assert "text.csv, line 3: column 'age' is 'old', but the model knows it as numbers" in said
    WRITERS["parquet"](pa.Table.from_pandas(rows), "text.parquet")
    assert "text.parquet: column 'age'" in fails(capfd, "predict", f"{folder}/p.et", "text.parquet")
    other = wine().slice(0, 2).set_column(13, "class", pa.array(["class_0", "class_9"]))
    WRITERS["csv"](other, "other.csv")
    said = fails(capfd, "update", f"{folder}/w.et", "other.csv", "-o", "new.et")
    assert "other.csv: 'class', line 3, is 'class_9', but the classes are" in said
    assert not Path("new.et").exists()


def test_models_that_do_not_belong_together(folder, here, capfd):
    assert "p.et: has no column 'alcohol', which" in fails(
        capfd, "merge", f"{folder}/w.et", f"{folder}/p.et", "-o", "m.et"
    )
    Path("shard.csv").write_bytes((folder / "wine.csv").read_bytes() + b"13,2,2,16,110,2,2,.3,1,5,1,3,900,class_1\n")
    assert main(["fit", "shard.csv", "-y", "class", "--trees", "6", "--seed", "1", "-q"]) == 0
    assert "has other cut points of column 'alcohol'" in fails(
        capfd, "merge", f"{folder}/w.et", "model.et", "-o", "m.et"
    )
    for seed in (1, 2):
        options = ["--trees", "6", "--seed", seed, "--empty", "-q", "-o", f"{seed}.et"]
        assert main(["fit", "shard.csv", "-y", "class", *map(str, options)]) == 0
    assert "2.et: does not fit 1.et" in fails(capfd, "merge", "1.et", "2.et", "-o", "m.et")
    said = fails(capfd, "merge", f"{folder}/w.et", f"{folder}/w.et", "-o", "m.et")
    assert "has the rows of wine.csv, which" in said
    assert "has these rows already" in fails(capfd, "update", f"{folder}/w.et", f"{folder}/wine.csv", "-o", "m.et")
    assert not Path("m.et").exists()
    assert main(["update", f"{folder}/w.et", f"{folder}/wine.csv", "-o", "m.et", "-q", "--allow-twice"]) == 0
    assert et.load("m.et").forest_.n_rows == 2 * 178


def test_options_that_do_not_go_together(folder, here, capfd):
    wines, numbers = (f"{folder}/w.et", f"{folder}/wine.csv"), (f"{folder}/p.et", f"{folder}/patients.csv")
    assert "are for numbers, but this model has classes" in fails(capfd, "predict", *wines, "--interval", ".9")
    assert "--proba is for classes" in fails(capfd, "predict", *numbers, "--proba")
    assert "between 0 and 1" in fails(capfd, "predict", *numbers, "--interval", "90")
    error = fails(capfd, "fit", wines[1], "-y", "class", "--model", "exact", "--trees", "3")
    assert "--trees is for --model forest or ensemble, but not for exact" in error
    assert "--family poisson is for numbers" in fails(
        capfd, "fit", wines[1], "-y", "class", "--kind", "class", "--family", "poisson"
    )
    wrong_usage = [
        ["fit"],
        ["nonsense"],
        ["merge", "a", "-o", "b"],
        ["fit", wines[1], "-y", "class", "--exact"],
        ["fit", wines[1], "-y", "class", "--trees", "0"],
        ["predict", *numbers, "--quantiles", "a"],
    ]
    for usage in wrong_usage:
        assert fails(capfd, *usage, code=2)


@pytest.mark.long
@POSIX
def test_an_output_that_cannot_be_written_leaves_nothing(folder, here, capfd):
    wines = (f"{folder}/w.et", f"{folder}/wine.csv")
    assert "cannot be written: there is no folder 'none'" in fails(capfd, "predict", *wines, "-o", "none/a.csv")
    assert "cannot be written: it is a folder" in fails(capfd, "fit", wines[1], "-y", "class", "-o", here)
    assert "cannot go to standard output" in fails(capfd, "fit", wines[1], "-y", "class", "-o", "-")
    Path("old.csv").write_text("as it was")

    def small_disk() -> None:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    done = run("predict", *wines, "-o", "old.csv", "--proba", cwd=here, preexec_fn=small_disk)
    assert (done.returncode, Path("old.csv").read_text()) == (1, "as it was")
    assert done.stderr == b"everytree: could not write old.csv (File too large); no partial file is left\n"
    done = run("fit", wines[1], "-y", "class", "--trees", "2", "-o", "m.et", cwd=here, preexec_fn=small_disk)
    assert done.returncode == 1
    assert os.listdir() == ["old.csv"]


@POSIX
def test_a_device_is_written_to_and_not_replaced(here):
    os.mkfifo("pipe")
    with subprocess.Popen(["cat", "pipe"], stdout=subprocess.PIPE) as reader:
        et.save(et.MetaTree.complete([0, 1, 1]), "pipe")
        said = reader.stdout.read()
    Path("copy.et").write_bytes(said)
    assert et.load("copy.et") == et.MetaTree.complete([0, 1, 1])
    assert not Path("pipe").is_file()


@POSIX
def test_an_interrupted_run_leaves_nothing(here):
    table = load_breast_cancer(as_frame=True).frame.sample(60_000, replace=True, random_state=0)
    pyarrow.parquet.write_table(pa.Table.from_pandas(table, preserve_index=False), "long.parquet")
    command = [sys.executable, "-m", "everytree", "fit", "long.parquet", "-y", "target", "--trees", "2000"]
    restore = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.default_int_handler)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, **restore) as process:
        warning = process.stderr.readline()  # when the rows have been read, before any tree is grown
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
    assert b"60000 of 60000 rows equal another row" in warning
    assert said.endswith(b"everytree: interrupted; nothing was written\n")
    assert process.returncode == 130
    assert os.listdir() == ["long.parquet"]


@pytest.mark.long
def test_without_the_extra_the_demo_works_and_other_commands_say_what_to_install(tmp_path):
    code = "import sys; sys.modules['typer'] = None; from everytree.__main__ import main; sys.exit(main())"
    for arguments, status in (["demo"], 0), (["fit", "a.csv"], 1):
        done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, check=False)
        assert done.returncode == status
    assert done.stderr.decode().endswith("pip install 'everytree[cli]'\n")


# ---- the report -----------------------------------------------------------------------------------------------------


def halves(table: pa.Table) -> tuple[pa.Table, pa.Table]:
    order = np.random.default_rng(0).permutation(table.num_rows)
    return tuple(table.take(np.sort(rows)) for rows in np.array_split(order, 2))


def heads(page: str) -> list[str]:
    """The heads of the tables of scores, without the first column."""
    found = re.findall(r'class="scores"><thead><tr>(.*?)</tr>', Path(page).read_text())
    return [", ".join(re.findall(r">(.*?)</th>", head)[1:]) for head in found]


def score(page: str, name: str) -> float:
    return float(re.search(rf'scope="row">{name}.*?<td>(.*?)</td>', Path(page).read_text())[1])


REFITTED = "the same estimator, refitted, plain forest"


@pytest.mark.long
def test_the_report_scores_the_model_itself_on_a_table_that_it_has_not_counted(here, capfd):
    known, new = halves(wine())
    WRITERS["csv"](known, "known.csv")
    WRITERS["csv"](new.append_column("leak", new["class"]), "new.csv")
    assert main(["fit", "known.csv", "-y", "class", "--trees", "4", "-q"]) == 0
    assert main(["report", "model.et", "new.csv", "-o", "page.html"]) == 0
    assert "bytes, judged by the rows of new.csv, which are new to the model\n" in capfd.readouterr().err
    assert heads("page.html") == ["this model", REFITTED]
    right = et.load("model.et").predict(new) == new["class"].to_numpy()
    assert score("page.html", "Accuracy") == pytest.approx(right.mean(), rel=1e-3)
    assert main(["report", "model.et", "new.csv", "--refit", "-q"]) == 0
    assert heads("report.html") == [REFITTED]
    assert main(["report", "model.et", "known.csv"]) == 0
    assert "the estimator judged by refitting it to parts of known.csv" in capfd.readouterr().err
    assert heads("report.html") == [REFITTED]
    assert main(["update", "model.et", "new.csv", "-q"]) == 0
    assert main(["report", "model.et", "new.csv", "-q"]) == 0
    assert heads("report.html") == [REFITTED]  # these rows are no longer new


def test_the_report_of_a_model_that_python_saved_does_not_take_rows_for_new(folder, here, capfd):
    et.save(et.load(folder / "w.et"), "python.et")
    assert "name it by --target" in fails(capfd, "report", "python.et", f"{folder}/wine.csv")
    assert main(["report", "python.et", f"{folder}/wine.csv", "-y", "class", "-q"]) == 0
    assert heads("report.html") == [REFITTED]
    assert main(["report", "python.et", "-q", "-o", "alone.html"]) == 0
    assert "made without a table" in Path("alone.html").read_text()


def test_the_report_refuses_a_table_of_another_schema(folder, here, capfd):
    leaky = wine().drop_columns(["alcohol", "ash"]).append_column("leak", wine()["class"])
    WRITERS["csv"](leaky, "leaky.csv")
    said = fails(capfd, "report", f"{folder}/w.et", "leaky.csv")
    assert "leaky.csv: there is no column 'alcohol', which the model" in said
    said = fails(capfd, "report", f"{folder}/w.et", f"{folder}/patients.csv")
    assert "there is no column 'class' for the target" in said
    other = wine().set_column(13, "class", pa.array(["class_0", "class_9"] * 89))
    WRITERS["csv"](other, "other.csv")
    assert "other.csv: 'class', line 3, is 'class_9', but the classes are" in fails(
        capfd, "report", f"{folder}/w.et", "other.csv"
    )
    assert not list(here.glob("*.html"))


def test_the_report_refuses_a_missing_target(folder, here, capfd):
    for name, table, model in (("class", wine(), "w.et"), ("progress", patients(), "p.et")):
        values = table[name].to_pylist()
        gaps = pa.array([None if row == 4 else value for row, value in enumerate(values)])
        WRITERS["csv"](table.set_column(table.column_names.index(name), name, gaps), "gaps.csv")
        said = fails(capfd, "report", f"{folder}/{model}", "gaps.csv")
        assert f"gaps.csv, line 6: the target '{name}' is missing" in said
    assert not list(here.glob("*.html"))


def claims(n_rows: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    x, years = rng.normal(size=n_rows), rng.uniform(0.2, 9.0, n_rows)
    w = rng.integers(0, 4, n_rows)
    return pa.table({"x": x, "years": years, "w": w, "n": rng.poisson(years * np.exp(x))})


@pytest.mark.long
def test_the_report_scores_with_weights_and_exposure(here, capfd):
    WRITERS["csv"](claims(300, 0), "known.csv")
    new = claims(200, 1)
    WRITERS["csv"](new, "new.csv")
    options = ["--family", "poisson", "--exposure", "years", "--weight", "w", "--trees", "4", "-q"]
    assert main(["fit", "known.csv", "-y", "n", *options]) == 0
    assert main(["report", "model.et", "new.csv", "-q"]) == 0
    assert heads("report.html") == ["this model", REFITTED]
    mean = et.load("model.et").predict(new.select(["x"]), exposure=new["years"])
    error = np.average((mean - new["n"].to_numpy()) ** 2, weights=new["w"].to_numpy()) ** 0.5
    assert score("report.html", "Root mean squared error") == pytest.approx(error, rel=1e-3)
    WRITERS["csv"](new.drop_columns(["years"]), "bare.csv")
    assert "bare.csv: there is no column 'years' for the exposure" in fails(capfd, "report", "model.et", "bare.csv")
    negative = new.set_column(1, "years", pa.array(np.full(200, -1.0)))
    WRITERS["csv"](negative, "negative.csv")
    assert "negative.csv: 'years', line 2, is -1, but must be positive" in fails(
        capfd, "report", "model.et", "negative.csv"
    )


def test_the_report_scores_times_that_were_cut_short(here):
    rng = np.random.default_rng(0)
    x, limit = rng.normal(size=300), rng.exponential(2.0, 300)
    times = rng.exponential(np.exp(x))
    table = pa.table({"x": x, "time": np.minimum(times, limit), "cut": (limit < times).astype(int)})
    WRITERS["csv"](table, "times.csv")
    options = ["--family", "exponential", "--censored", "cut", "--model", "tree", "-q"]
    assert main(["fit", "times.csv", "-y", "time", *options]) == 0
    assert main(["report", "model.et", "times.csv", "-q"]) == 0
    assert heads("report.html") == ["the same estimator, refitted"]


@POSIX
def test_a_report_that_cannot_be_written_says_so_in_a_sentence(folder, here, capfd):
    model = f"{folder}/w.et"
    assert "none/r.html: cannot be written: there is no folder 'none'" in fails(
        capfd, "report", model, "-o", "none/r.html"
    )
    if Path("/proc/self").is_dir():
        assert "everytree: could not write /proc/r.html (" in fails(capfd, "report", model, "-o", "/proc/r.html")
    assert "cannot go to standard output" in fails(capfd, "report", model, "-o", "-")
    Path("old.html").write_text("as it was")

    def small_disk() -> None:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    done = run("report", model, "-o", "old.html", cwd=here, preexec_fn=small_disk)
    assert done.returncode == 1
    assert done.stderr == b"everytree: could not write old.html (File too large); no partial file is left\n"
    assert (os.listdir(), Path("old.html").read_text()) == (["old.html"], "as it was")


def test_show_writes_splits_of_categories_as_sets(here, capfd):
    rng = np.random.default_rng(0)
    kind = rng.choice(list("abcdefgh"), 400)
    y = np.where(np.isin(kind, ["b", "e", "g"]), "yes", "no")
    WRITERS["csv"](pa.table({"kind": kind, "y": y}), "kinds.csv")
    assert main(["fit", "kinds.csv", "-y", "y", "--model", "tree", "-q"]) == 0
    assert main(["show", "model.et"]) == 0
    said = capfd.readouterr().out
    below, above = (re.search(rf"{line} (not in|in) (.*?)  ", said) for line in ("├─", "└─"))
    assert (below[1], above[1]) == ("not in", "in")
    assert set(below[2].split(", ")) == set(above[2].split(", ")) == {"b", "e", "g"}
    assert "≤" not in said


# ---- the page -------------------------------------------------------------------------------------------------------


@POSIX
@pytest.mark.slow  # three dozen processes, one after another; what they do is tested one by one besides
def test_the_transcript_in_the_page_is_what_the_commands_print():
    page = (DOCS / "command_line.md").read_text()
    again = runpy.run_path(str(DOCS / "make_transcript.py"))["transcript"](page)

    def rounded(text: str) -> str:
        return re.sub(r"\d+\.\d{5,}", lambda found: f"{float(found[0]):.4f}", text)

    assert rounded(again) == rounded(page)


# ---- several commands at once ---------------------------------------------------------------------------------------


@POSIX
def test_updates_at_the_same_time_all_count(here):
    rng = np.random.default_rng(0)
    for k in range(3):
        lines = [f"{a},{b},{'uv'[int(a > b)]}" for a, b in rng.normal(size=(250, 2)).round(3)]
        Path(f"{k}.csv").write_text("\n".join(["a,b,y", *lines]) + "\n")
    assert main(["fit", "0.csv", "-y", "y", "--trees", "3", "--empty", "-o", "m.et"]) == 0
    command = [sys.executable, "-m", "everytree", "update", "m.et"]
    jobs = [subprocess.Popen([*command, f"{k}.csv"], stderr=subprocess.PIPE) for k in range(3)]
    for job in jobs:
        assert job.communicate(timeout=120)[1].count(b"250 rows more") == 1
        assert job.returncode == 0
    model, notes = load_with_notes("m.et")
    assert model.forest_.n_rows == 750
    assert len(notes["command_line"]["counted"]) == 3
    assert {entry.name for entry in here.iterdir()} == {"m.et", *(f"{k}.csv" for k in range(3))}


@POSIX
def test_an_update_that_was_killed_is_in_nobodys_way(here):
    Path("t.csv").write_text("a,y\n" + "".join(f"{k},{k % 2}\n" for k in range(40)))
    os.mkfifo("never.csv")
    assert main(["fit", "t.csv", "-y", "y", "--trees", "2", "--empty", "-o", "m.et"]) == 0
    waiting = subprocess.Popen([sys.executable, "-m", "everytree", "update", "m.et", "never.csv"])
    pipe = os.open("never.csv", os.O_WRONLY)  # comes back when the command reads: it has the model by then
    other = subprocess.Popen([sys.executable, "-m", "everytree", "update", "m.et", "t.csv"], stderr=subprocess.PIPE)
    assert other.stderr is not None
    assert other.stderr.readline() == b"m.et: waiting for another command that writes it\n"
    waiting.kill()
    waiting.wait(30)
    os.close(pipe)
    assert b"40 rows more, 40 in all" in other.communicate(timeout=60)[1]
    assert other.returncode == 0


def test_a_model_that_changed_meanwhile_is_not_written_over(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("a,y\n" + "".join(f"{k},{k % 2}\n" for k in range(40)))
    assert main(["fit", "t.csv", "-y", "y", "--trees", "2", "--empty", "-q", "-o", "m.et"]) == 0
    from everytree.cli import updating

    work = updating._add_rows

    def work_while_another_saves(*arguments: Any) -> Any:
        et.save(et.load("m.et").partial_fit(np.zeros((5, 1)), [0, 1, 0, 1, 0]), "m.et")
        return work(*arguments)

    monkeypatch.setattr(updating, "_add_rows", work_while_another_saves)
    said = fails(capfd, "update", "m.et", "t.csv")
    assert said == "everytree: m.et: has changed since it was read; nothing was written, run the command again\n"
    assert et.load("m.et").forest_.n_rows == 5


def test_families_are_named_where_one_is_unknown(capfd):
    said = fails(capfd, "fit", "t.csv", "--target", "y", "--family", "poison", code=2)
    assert all(family in said for family in NUMBER_FAMILIES)
