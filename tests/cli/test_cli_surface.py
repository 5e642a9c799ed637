"""The command line as a new user meets it: files that stay, words that say what happened, narrow terminals."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest

import everytree as et
from command import POSIX, fails, run, says
from everytree.__main__ import main
from everytree.base.progress import Progress
from everytree.cli.showing import bar
from everytree.cli.tables import decimal_sign

ROWS = "a,b,y\n" + "".join(f"{k},{k % 3},{'yes' if k > 20 else 'no'}\n" for k in range(40))
FIT = ["fit", "t.csv", "-y", "y", "--trees", "3"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text(ROWS)
    return tmp_path


# ---- files ----------------------------------------------------------------------------------------------------------


def test_a_model_is_replaced_only_by_force(capfd):
    assert main([*FIT, "-q"]) == 0
    before = Path("model.et").read_bytes()
    said = fails(capfd, *FIT, "--seed", "3")
    assert said == "everytree: model.et already exists; use --force to overwrite, or another name with --out\n"
    assert Path("model.et").read_bytes() == before
    assert main([*FIT, "--seed", "3", "-q", "--force"]) == 0
    assert Path("model.et").read_bytes() != before


def test_predict_says_what_it_wrote(capfd):
    assert main([*FIT, "-q"]) == 0
    capfd.readouterr()
    assert main(["predict", "model.et", "t.csv", "--proba", "-o", "new.csv"]) == 0
    assert capfd.readouterr().err == "new.csv: 40 rows, 3 columns: prediction, p_no, p_yes\n"
    Path("one.csv").write_text("a,b\n1,1\n")
    assert main(["predict", "model.et", "one.csv", "-o", "new.csv"]) == 0
    assert capfd.readouterr().err == "new.csv: 1 row, 1 column: prediction\n"
    assert main(["predict", "model.et", "one.csv", "-o", "new.csv", "-q"]) == 0
    assert main(["predict", "model.et", "one.csv"]) == 0
    assert capfd.readouterr() == ("prediction\nno\n", "")


def test_a_table_is_no_model(capfd):
    for name in ("t.csv", "t.tsv", "t.parquet"):
        Path(name).write_text(ROWS)
        for command in (["show"], ["predict"], ["report"]):
            more = ["t.csv"] if command == ["predict"] else []
            said = fails(capfd, *command, name, *more, "-o", "x.csv") if more else fails(capfd, *command, name)
            assert (
                f"{name}: this is a {name[2:].upper() if name != 't.parquet' else 'Parquet'} table, not a model" in said
            )
    Path("other").write_bytes(b"something else")
    assert "other is not a model file of this version" in fails(capfd, "show", "other")


def test_targets_from_which_nothing_can_be_learnt_are_said(capfd):
    more = ["--trees", "2", "-q", "--force"]
    cases = {
        "one row, whose target 'y' is 'no'": "a,y\n1,no\n",
        "the target 'y' is 'no' in every row": "a,y\n" + "1,no\n2,no\n" * 200,
        "the target 'y' is 2.5 in every row": "a,y\n" + "1,2.5\n2,2.5\n" * 200,
    }
    for said, text in cases.items():
        Path("same.csv").write_text(text)
        assert main(["fit", "same.csv", "-y", "y", *more]) == 0
        error = capfd.readouterr().err
        assert said in error
        assert "a model of it is useless" in error
    assert main([*FIT, "-q", "--force"]) == 0
    assert capfd.readouterr().err == ""


# ---- explanations ---------------------------------------------------------------------------------------------------


def test_a_row_is_explained_as_python_explains_it(capfd):
    assert main([*FIT, "-q"]) == 0
    model, table = et.load("model.et"), pyarrow.csv.read_csv("t.csv")
    said = says(capfd, "explain", "model.et", "t.csv", "--row", "30")
    head, text = said.split("\n", 1)
    assert head == "t.csv, row 30 (line 32): yes"
    expected = model.explain(table.select(["a", "b"]).slice(30, 1))
    assert text == expected.of_row(0).text() + "\n"
    assert "P(no)" in says(capfd, "explain", "model.et", "t.csv", "--row", "30", "--class", "no")
    assert main(["explain", "model.et", "t.csv", "-o", "why.csv"]) == 0
    assert capfd.readouterr().err == "why.csv: 40 rows, what each of 2 columns adds\n"
    why = pyarrow.csv.read_csv("why.csv").to_pandas()
    assert list(why.columns) == ["class", "prediction", "base", "from_a", "from_b"]
    assert np.abs(why["base"] + why["from_a"] + why["from_b"] - why["prediction"]).max() < 1e-10
    assert np.allclose(why["prediction"], model.predict_proba(table).max(axis=1), rtol=0, atol=1e-12)


def test_rows_and_classes_that_are_not_there(capfd):
    assert main([*FIT, "-q"]) == 0
    said = fails(capfd, "explain", "model.et", "t.csv", "--row", "40")
    assert said == "everytree: t.csv: there is no row 40; it has 40 rows, counted from 0\n"
    said = fails(capfd, "explain", "model.et", "t.csv", "--class", "Yes")
    assert "--class is 'Yes', which is not a class of model.et; the nearest is 'yes'" in said
    assert main(["fit", "t.csv", "-y", "a", "--trees", "2", "-q", "-o", "numbers.et"]) == 0
    assert "--class is for classes" in fails(capfd, "explain", "numbers.et", "t.csv", "--class", "yes")
    assert main(["explain", "numbers.et", "t.csv", "-o", "why.parquet", "-q"]) == 0


# ---- options --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [[], ["fit"], ["predict"], ["merge"]], ids=str)
def test_flags_take_no_value_in_the_help(command, capfd):
    said = says(capfd, *command, "--help")
    assert "<bool>" not in said
    assert "BOOLEAN" not in said


def test_the_size_of_leaves_and_the_columns_of_splits():
    for option, value in (("3", 3), ("0.5", 0.5), ("sqrt", "sqrt"), ("log2", "log2"), ("all", 1.0)):
        assert main([*FIT, "-q", "--force", "--min-leaf", "4", "--max-features", option]) == 0
        model = et.load("model.et")
        assert (model.min_samples_leaf, model.max_features) == (4, value)
    assert main(["fit", "t.csv", "-y", "y", "-q", "--force", "--model", "tree", "--min-leaf", "7"]) == 0
    assert et.load("model.et").min_samples_leaf == 7


def test_options_of_trees_that_have_no_use_for_them(capfd):
    fit = ["fit", "t.csv", "-y", "y", "--model"]
    assert "--min-leaf is for --model forest or boost or tree" in fails(capfd, *fit, "ensemble", "--min-leaf", "3")
    assert "--min-leaf is for --model forest or boost or tree" in fails(capfd, *fit, "exact", "--min-leaf", "3")
    assert "--max-features is for --model forest or boost" in fails(capfd, *fit, "tree", "--max-features", "2")
    assert "boosting takes a share" in fails(capfd, *fit, "boost", "--max-features", "2")
    for wrong in ("0", "1.5", "-1", "many"):
        assert "--max-features" in fails(capfd, *FIT, f"--max-features={wrong}", code=2)


# ---- narrow terminals and closed pipes ------------------------------------------------------------------------------


class Terminal:
    """Standard error as a terminal of some columns that keeps what is written."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None: ...

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return 2


@pytest.mark.parametrize("columns", [5, 20, 50, 200])
def test_a_bar_fits_its_terminal_and_leaves_nothing(columns, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(os, "get_terminal_size", lambda fd: os.terminal_size((columns, 24)))
    with Progress("choosing priors", 2000, show=True, unit="rows") as progress:
        for k in range(2000):
            progress._last = -1.0  # every step is shown
            progress.step()
            if k == 1000:
                assert terminal.text.rsplit("\r", 1)[1].startswith("choosing priors"[: columns - 1])
    written = terminal.text.split("\r")
    assert max(map(len, written)) < columns
    assert written[-1] == ""  # the cursor is at the beginning of the line
    assert written[-2].strip() == ""  # and the line is empty
    assert any("█" in line and "░" in line for line in written) == (columns >= 50)
    widest = max(len(line.rstrip()) for line in written)
    assert len(written[-2]) >= len(written[-3].rstrip())
    assert widest >= min(columns, 20) - 10


@POSIX
def test_stages_of_a_fit_on_a_narrow_terminal():
    import fcntl
    import pty
    import termios

    main_end, other_end = pty.openpty()
    fcntl.ioctl(other_end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 20, 0, 0))
    subprocess.run([sys.executable, "-m", "everytree", *FIT], stderr=other_end, stdout=other_end, check=True)
    os.close(other_end)
    *bars, said = os.read(main_end, 100_000).decode().split("\n")[0].rstrip("\r").split("\r")
    os.close(main_end)
    assert said.startswith("model.et: MetaForestClassifier")  # in a line that is empty otherwise
    assert max(map(len, bars)) < 20
    stages = dict.fromkeys(line.split(" ")[0] for line in bars if line.strip())
    assert [name for name in stages if name != "counting"] == ["reading", "growing", "choosing"]


@POSIX
def test_a_narrow_terminal_and_a_closed_pipe(capfd):
    assert main([*FIT, "-q"]) == 0
    done = run("--help", env={**os.environ, "COLUMNS": "20", "TERMINAL_WIDTH": "20"})
    assert done.returncode == 0
    assert max(map(len, done.stdout.decode().splitlines())) <= 20
    python = f"{sys.executable} -m everytree"
    done = subprocess.run(f"{python} show model.et | true", shell=True, capture_output=True, check=False)
    assert done.stderr == b""
    closed = subprocess.run(f"{python} {' '.join(FIT)} --force 2>&-", shell=True, capture_output=True, check=False)
    assert closed.returncode == 0


# ---- what is shown and told ------------------------------------------------------------------------------------------


def test_a_forest_is_shown_without_the_probability_of_one_pruning(capfd):
    assert main([*FIT, "-q"]) == 0
    shown = says(capfd, "show", "model.et")
    leaves = np.mean([post.expected_leaves() for post in et.load("model.et").posteriors_])
    assert (
        f"one of 3 trees, that of the largest evidence, to be read from the top; pruned, a tree has {leaves:.3g}"
        in shown
    )
    assert "most probable pruning" not in shown
    assert main(["fit", "t.csv", "-y", "y", "--model", "tree", "-q", "--force"]) == 0
    assert "its most probable pruning has 2 leaves, probability" in says(capfd, "show", "model.et")


def test_splits_that_do_not_help_are_counted_and_shown_when_asked_for(capfd):
    rng = np.random.default_rng(0)
    x, noise = rng.normal(size=(2, 200))
    label = np.where((x > 0) ^ (rng.random(200) < 0.2), "yes", "no")
    Path("n.csv").write_text(
        "\n".join(["x,noise,y", *(f"{a},{b},{c}" for a, b, c in zip(x, noise, label, strict=True))])
    )
    assert main(["fit", "n.csv", "-y", "y", "--model", "tree", "-q", "--force"]) == 0
    shown, every = says(capfd, "show", "model.et"), says(capfd, "show", "model.et", "--all-splits", "--depth", "9")
    assert "left out; --all-splits shows" in shown
    assert "left out" not in every
    assert every.count("leaf  ") > shown.count("leaf  ")


def test_an_explained_count_is_that_of_one_unit_of_exposure(capfd):
    rows = [f"{k % 5},{1 + k % 2},{k % 5 * (1 + k % 2)}" for k in range(60)]
    Path("counts.csv").write_text("\n".join(["x,years,n", *rows]) + "\n")
    fit = ["fit", "counts.csv", "-y", "n", "--family", "poisson", "--exposure", "years", "--model", "tree", "-q"]
    assert main(fit) == 0
    mean = et.load("model.et").predict(pyarrow.csv.read_csv("counts.csv").select(["x"])[3:4], exposure=[1.0])[0]
    capfd.readouterr()
    assert main(["explain", "model.et", "counts.csv", "--row", "3"]) == 0
    out, error = capfd.readouterr()
    assert out.startswith(f"counts.csv, row 3 (line 5): {mean:.6g} where 'years' is 1\n")
    assert error == ""


def test_an_event_is_the_opposite_of_censored(capfd):
    rng = np.random.default_rng(0)
    died = rng.random(80) < 0.6
    lines = [f"{k % 5},{time:.3f},{int(seen)},{int(not seen)}" for k, (time, seen) in
             enumerate(zip(rng.exponential(2.0, 80), died, strict=True))]  # fmt: skip
    Path("times.csv").write_text("\n".join(["x,time,died,alive", *lines]) + "\n")
    fit = ["fit", "times.csv", "-y", "time", "--family", "exponential", "--model", "tree"]
    assert main([*fit, "--event", "died", "--drop", "alive", "-o", "e.et", "-q"]) == 0
    assert main([*fit, "--censored", "alive", "--drop", "died", "-o", "c.et", "-q"]) == 0
    assert et.load("e.et").log_evidence_ == et.load("c.et").log_evidence_
    assert et.load("e.et").feature_names_in_.tolist() == ["x"]
    assert "event     column died" in says(capfd, "show", "e.et")
    assert main(["update", "e.et", "times.csv", "--allow-twice", "-q"]) == 0
    assert main(["report", "e.et", "times.csv", "-q"]) == 0
    assert "were cut short" in Path("report.html").read_text()
    assert "the opposite of --censored" in fails(capfd, *fit, "--event", "died", "--censored", "alive", code=2)
    assert "--event is for --family exponential" in fails(capfd, "fit", "times.csv", "-y", "time", "--event", "died")
    Path("times.csv").write_text("x,time,died\n1,2,yes\n2,3,no\n")
    assert "in which rows the event was seen" in fails(capfd, *fit, "--event", "died", "-o", "n.et")


def test_times_beyond_the_longest_that_was_seen_are_not_told(capfd):
    rng = np.random.default_rng(0)
    load = rng.random(300)
    lifetime = rng.exponential(np.where(load > 0.5, 1.0, 40.0))
    rows = [f"{a},{min(t, 5.0)},{int(t <= 5.0)}" for a, t in zip(load, lifetime, strict=True)]
    Path("study.csv").write_text("\n".join(["load,time,died", *rows]) + "\n")
    fit = ["fit", "study.csv", "-y", "time", "--family", "exponential", "--event", "died", "--model", "tree"]
    assert main([*fit, "-q", "-o", "s.et"]) == 0
    capfd.readouterr()
    Path("new.csv").write_text("load\n0.1\n0.9\n")
    assert main(["predict", "s.et", "new.csv", "-o", "out.csv", "--quantiles", "0.01,0.9"]) == 0
    assert "the longest seen is 5: mean_up_to is the mean of times up to it" in capfd.readouterr().err
    names, long, short = (line.split(",") for line in Path("out.csv").read_text().splitlines())
    assert names == ["prediction", "median", "mean_up_to", "q0.01", "q0.9"]
    mean = et.load("s.et").predict(np.array([[0.1], [0.9]]))
    np.testing.assert_allclose([float(long[0]), float(short[0])], mean)
    assert (long[1], long[4]) == ("inf", "inf")
    assert 0.0 < float(short[1]) < float(short[2]) < float(long[2]) < 5.0
    assert "beyond 5" in says(capfd, "show", "s.et")
    assert ": median beyond 5, mean of times up to 5 " in says(capfd, "explain", "s.et", "new.csv")


@pytest.mark.filterwarnings("always:X. column")
def test_a_surprising_target_or_column_is_said(capfd):
    rows = [f"customer {k},{k % 3},{k % 4}" for k in range(60)]
    Path("ids.csv").write_text("\n".join(["who,a,n", *rows]) + "\n")
    fit = ["fit", "ids.csv", "--trees", "2", "--force"]
    assert main([*fit, "-y", "n"]) == 0
    said = capfd.readouterr().err
    assert "everytree: column 'who' has 60 different texts in 60 rows, such as 'customer 0': nearly every row" in said
    assert "ids.csv: 'n' has 4 different whole numbers, which are taken as classes; --kind number takes them as" in said
    assert main([*fit, "-y", "n", "--kind", "class", "--drop", "who"]) == 0
    assert capfd.readouterr().err.startswith("model.et: ")


def test_semicolons_and_decimal_commas_of_spreadsheets_need_no_options(capfd):
    rows = [(k / 4, k % 3 + 0.5, 10.0 * k) for k in range(40)]
    Path("plain.csv").write_text("a,b,y\n" + "".join(f"{a},{b},{y}\n" for a, b, y in rows))
    commas = "".join(f"{a};{b};{y}\n".replace(".", ",") for a, b, y in rows)
    Path("commas.csv").write_text("a;b;y\n" + commas)
    Path("points.csv").write_text("a;b;y\n" + commas.replace(",", "."))
    Path("tabs.tsv").write_text("a;b;y\n".replace(";", "\t") + commas.replace(";", "\t"))
    answers = []
    for table in ("plain.csv", "commas.csv", "points.csv", "tabs.tsv"):
        assert main(["fit", table, "-y", "y", "--trees", "2", "-o", f"{table}.et", "-q"]) == 0
        answers.append(says(capfd, "predict", f"{table}.et", table).split())
    assert answers[0] == answers[1] == answers[2] == answers[3]


@pytest.mark.parametrize(
    ("start", "delimiter", "found"),
    [
        (b"a;b\n1,5;x,y\n", ";", (",", "")),
        (b"a;b\n1,5;2.5\n", ";", (".", "")),  # both: text in one of the columns
        (b"a,b\n1,5\n", ",", (".", "")),
        (b"a\tb\n1,234\t12,345\n", "\t", (".", "1,234")),
        (b"a;b\n-1,234;2\r\n12,345;3\r\n", ";", (".", "-1,234")),
        (b"a;b\n1,234;2\n12,3456;3\n", ";", (",", "")),
        (b"a;b\n1,234;2\n0,345;3\n", ";", (",", "")),  # nobody writes a thousand as 0,345 ...
        (b"a;b\n1,234;2\n1234,345;3\n", ";", (",", "")),  # ... nor a million as 1234,345
        (b"a;b\n1,234;2.5\n", ";", (".", "")),
        (b"a;b\n1;2\n", ";", (".", "")),
    ],
)
def test_a_comma_is_the_decimal_sign_only_where_it_cannot_be_thousands(start, delimiter, found):
    assert decimal_sign(start, delimiter) == found


@pytest.mark.parametrize(("name", "delimiter"), [("t.tsv", "\t"), ("s.csv", ";")])
def test_thousands_are_not_read_as_decimals(capfd, name, delimiter):
    """They are text, and that is said; the file is longer than what is looked at, which ends within a number."""
    rows = [f"{k % 9 + 1},{k % 7}00{delimiter}{'no' if k % 9 < 4 else 'yes'}" for k in range(9000)]
    Path(name).write_text("\n".join([f"turnover{delimiter}y", *rows]) + "\n")
    assert main(["fit", name, "-y", "y", "--trees", "2", "-o", "turnover.et", "-q"]) == 0
    assert capfd.readouterr().err == (
        f"everytree: {name}: the comma of numbers such as 1,000 may come before thousands or before decimals, so they "
        "are read as text; write 1000 or 1.000 instead\n"
    )
    column, *_ = et.load("turnover.et").schema_.columns
    assert column.kind == "categorical"
    assert "1,000" in column.categories


def test_a_table_that_is_not_there_comes_before_a_model_that_is(capfd):
    Path("model.et").write_text("old")
    assert "t2.csv: there is no such file" in fails(capfd, "fit", "t2.csv", "-y", "y")


# ---- bars -----------------------------------------------------------------------------------------------------------


def test_small_importances_have_bars_of_their_own():
    drawn = [bar(share, 30) for share in (1.0, 0.5, 0.02, 0.002, 0.0001)]
    assert drawn[0] == "█" * 30
    assert drawn[1] == "█" * 15 + " " * 15
    assert drawn[2] != drawn[3]
    assert all(text.strip() and len(text) == 30 for text in drawn)
    assert [len(bar(k / 240, 30).rstrip()) for k in (8, 9, 16)] == [1, 2, 2]
