"""What the documentation says, run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import everytree

ROOT = Path(__file__).parents[1]
OUTPUTS = runpy.run_path(str(ROOT / "docs" / "make_outputs.py"))
OMITTED = ("__main__",)  # the command
MODULES = [m.name for m in pkgutil.walk_packages(everytree.__path__, "everytree.") if not m.name.endswith(OMITTED)]


@pytest.mark.parametrize("name", [name for name in MODULES if "_kernels" not in name])
def test_docstring_examples(name):
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


@pytest.mark.parametrize("page", OUTPUTS["pages"](), ids=lambda p: p.name)
def test_code_blocks_of_a_page_run_in_order_and_print_what_stands_below_them(page):
    for code, said, found in OUTPUTS["printed"](page.read_text(encoding="utf-8"), page.name):
        problem = OUTPUTS["differs"](said, found)
        assert not problem, f"{problem}\nafter\n{code}\nrun python docs/make_outputs.py {page.name}"


def test_outputs_are_compared_word_by_word_and_number_by_number():
    differs = OUTPUTS["differs"]
    assert not differs("p = 0.500 of x1\n", "p = 0.501  of x1\n")
    assert not differs("12,000 rows", "12,001 rows")
    assert differs("p = 0.5", "p = 0.9")
    assert differs("p = 0.5", "q = 0.5")
    assert differs("p = 0.5", "p = 0.5 0.5")
    assert differs("", "something")


def test_the_derivation_names_every_equation_of_the_paper_once():
    rows = re.findall(r"^\| (\(.*?\)) \|", (ROOT / "docs" / "derivation.md").read_text(), flags=re.MULTILINE)
    spans = [[int(number) for number in re.findall(r"\d+", row)] for row in rows]
    assert [number for span in spans for number in range(span[0], span[-1] + 1)] == list(range(1, 20))


@pytest.mark.long
@pytest.mark.parametrize("example", sorted((ROOT / "examples" / "gallery").glob("*.py")), ids=lambda p: p.stem)
def test_examples_of_the_gallery_draw_a_picture(example):
    plt = importlib.import_module("matplotlib.pyplot")
    runpy.run_path(str(example), run_name="__main__")
    assert plt.gcf().axes


def test_demo_predicts_first_and_shows_all_ways_of_fitting_equal_last():
    run = subprocess.run([sys.executable, "-m", "everytree", "demo"], capture_output=True, text=True, check=True)
    order = ["benign with probability", "90% interval", "one tree to read", "evidence is", "average of all prunings"]
    places = [run.stdout.index(words) for words in [*order, "in one batch"]]
    assert places == sorted(places)
    patient = run.stdout[: run.stdout.index("what it was")]
    prob = float(re.search(r"with probability ([\d.]+)", patient)[1])
    base, *added = (float(number) for number in re.findall(r" ([+-]?\d\.\d{3})$", patient, flags=re.MULTILINE)[-5:])
    assert base + sum(added) == pytest.approx(prob, abs=0.004)  # rounded to three digits
    n_inside, n_all, share = re.search(r"(\d+) of (\d+) held-out patients \((\d+)%\)", run.stdout).groups()
    assert 85 < int(share) == round(100 * int(n_inside) / int(n_all)) < 97
    evidences = re.findall(r"(?:one batch|row by row|merged) +(-[\d.]+) +([\d.e+-]+)", run.stdout)
    assert len(evidences) == 3
    assert len({evidence for evidence, _ in evidences}) == 1
    assert all(float(apart) < 1e-10 for _, apart in evidences)


def test_every_public_name_has_its_place_in_the_reference():
    pages = {page.name: page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "reference").glob("*.md")}
    overview = pages.pop("index.md")
    documented = [name for page in pages.values() for name in re.findall(r"^::: (\S+)", page, flags=re.MULTILINE)]
    assert len(documented) == len(set(documented))
    assert set(everytree.__all__) <= {name.rpartition(".")[2] for name in documented}
    assert not [name for name in documented if pkgutil.resolve_name(name) is None]
    assert sorted(re.findall(r"\]\[(\S+?)\]", overview)) == sorted(documented)
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert all(f"reference/{name}" in navigation and f"]({name})" in overview for name in pages)


def test_the_page_about_estimators_names_each_of_them():
    """Estimators are found, not listed: a new one is missing on the page until it is written there."""
    names = [*everytree.__all__, *everytree._OF_EXTRAS]
    found = [n for n in names if any(hasattr(getattr(everytree, n), each) for each in ("predict", "predict_one"))]
    assert {"MetaForestClassifier", "MetaTreeRegressor", "OnlineForestRegressor"} <= set(found)
    page = (ROOT / "docs" / "which_estimator.md").read_text(encoding="utf-8")
    of_table = {name for row in page.splitlines() if row.startswith("| `") for name in re.findall(r"`(\w+)`", row)}
    assert not set(found) - of_table


FIGURE = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?:e-?\d+)?[x%]?")


@pytest.mark.parametrize("name", ["README.md", "docs/index.md"])
def test_figures_of_the_front_pages_stand_on_the_page_that_they_cite(name):
    """There is one set of figures: whoever renews a page finds here where else they are quoted."""
    page = ROOT / name
    text = page.read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in re.findall(r"^\|.*\|$", text, re.MULTILINE)]
    quoted = [(row[-2], row[-1]) for row in rows if "](" in row[-1]]
    quoted += [tuple(one.split(": [", 1)) for one in re.findall(r"\*\*Measured\*\* (.*?\))\.\n", text, re.DOTALL)]
    assert len(quoted) >= 6
    for figures, links in quoted:
        linked = [page.parent / path for path in re.findall(r"\]\(([^)#]+)", links)]
        assert linked
        if ROOT / "docs" / "benchmarks.md" in linked:
            linked.append(ROOT / "benchmarks" / "RESULTS.md")  # is part of that page
        known = {figure for path in linked for figure in FIGURE.findall(path.read_text(encoding="utf-8"))}
        assert not set(FIGURE.findall(figures)) - known, (figures, links)


@pytest.mark.parametrize("name", ["README.md", "docs/index.md", "docs/boosting.md", "docs/tasks/comparing.md"])
def test_times_of_fits_are_those_of_the_benchmarks(name):
    paragraphs = (ROOT / name).read_text(encoding="utf-8").split("\n\n")
    quoted = [figure for each in paragraphs if "#fits-at-defaults" in each for figure in re.findall(r"\b[\d.]+x", each)]
    assert quoted
    known = re.findall(r"\b[\d.]+x", (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8"))
    assert not set(quoted) - set(known)


def test_import_brings_no_extra():
    extras = ("dask", "matplotlib", "onnx", "pandas", "river", "sklearn", "scipy.stats")
    code = f"import sys, everytree; print([m for m in {extras} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_the_architecture_page_is_drawn_from_the_code():
    made = runpy.run_path(str(ROOT / "docs" / "make_architecture.py"))
    assert made["PICTURE"].read_text() == made["picture"](), "run python docs/make_architecture.py"
