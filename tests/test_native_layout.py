"""The kernels: folders in one order, each with its namespace, no Python below `bind`, headers that compile alone."""

from __future__ import annotations

import ast
import importlib.resources
import os
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import everytree
from everytree import _kernels

NATIVE = Path(everytree.__file__).parent / "_native"
BEFORE = {
    "numerics": set(),
    "core": {"numerics"},
    "distributions": {"numerics", "core"},
    "held_out": {"numerics", "core"},
    "exact": {"numerics", "core"},
    "online": {"numerics", "core"},
    "columns": {"numerics", "core"},
    "explain": {"numerics", "core"},
    "grow": {"numerics", "core"},
    "boost": {"numerics", "core", "grow"},
    "sampling": {"numerics", "core", "exact"},
}
BEFORE["bind"] = set(BEFORE)
"""Folders that a file of a folder may include, besides its own."""

SOURCES = sorted(path.relative_to(NATIVE).as_posix() for path in NATIVE.rglob("*.[hc]pp"))
HEADERS = [name for name in SOURCES if name.endswith(".hpp")]
KERNELS = [name for name in SOURCES if not name.startswith("bind/")]


def included(name: str, brackets: str = '""') -> list[str]:
    """What a file includes, in quotes or in angle brackets."""
    opening, closing = (re.escape(each) for each in brackets)
    return re.findall(rf"^#include {opening}(.+){closing}$", (NATIVE / name).read_text(), re.MULTILINE)


pytestmark = pytest.mark.skipif(not SOURCES, reason="the sources of the kernels are not installed")


def test_every_file_lies_in_a_folder_of_the_plan():
    assert {name.partition("/")[0] for name in SOURCES} == set(BEFORE)
    assert {name for name in SOURCES if name.endswith(".cpp")} == {
        n for n in SOURCES if re.fullmatch(r"bind/\w+.cpp", n)
    }


@pytest.mark.parametrize("name", SOURCES)
def test_includes_follow_the_order_of_the_folders(name):
    folder = name.partition("/")[0]
    for other in included(name):
        assert other in HEADERS, f"{name} includes {other}, which is no header by its full name"
        assert other.partition("/")[0] in BEFORE[folder] | {folder}, f"{name} includes {other}"


def test_no_header_includes_itself_by_a_detour():
    done: set[str] = set()

    def visit(name: str, above: tuple[str, ...]) -> None:
        assert name not in above, " -> ".join([*above, name])
        if name not in done:
            for other in included(name):
                visit(other, (*above, name))
            done.add(name)

    for name in SOURCES:
        visit(name, ())


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_know_nothing_of_python(name):
    text = (NATIVE / name).read_text()
    assert not [other for other in included(name, "<>") if "nanobind" in other or "Python" in other]
    assert not re.search(r"\b(nb|nanobind)::|\bPy[A-Z]\w+\(|\bPyObject\b", text)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in HEADERS if name in KERNELS])
def test_headers_compile_alone(name, tmp_path):
    compiler = os.environ.get("CXX") or shutil.which("c++")
    if compiler is None or os.name == "nt":
        pytest.skip("no compiler that takes the options below")
    alone = tmp_path / "alone.cpp"
    alone.write_text(f'#include "{name}"\n')
    options = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", f"-I{NATIVE}"]
    found = subprocess.run([compiler, *options, str(alone)], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr


# ---- namespaces ------------------------------------------------------------------------------------------------------
# Translation units are linked together: two definitions of one name in one namespace are undefined behaviour that no
# compiler reports, also if no unit includes both. clang-format starts what stands in a namespace at the beginning of a
# line. Overloads of a function are allowed, in one file.

DEFINITIONS = [
    re.compile(r"(?:template <.*> )?(?:struct|class|union|enum(?: class)?|concept) (\w+)\b(?!;|<)"),
    re.compile(r"(?:template <.*> )?using (\w+) ="),
    re.compile(r"inline (?:constexpr|const|thread_local) [\w:<>, ]+?[ &*](\w+)(?:\[.*\])? ?[={;]"),
    re.compile(r"(?!using |return )[\w:][\w:<>,&* ]*[ &*](\w+)\((?!.*;$)"),
]
"""Types and concepts, aliases, constants, functions (a line that ends in a semicolon only declares one)."""


def names_by_namespace(text: str) -> Iterator[tuple[str, str]]:
    """Namespace and name of each definition in a namespace; what only this file sees is left out."""
    within: list[str] = []
    for line in text.splitlines():
        if opened := re.match(r"namespace ?([\w:]*) \{", line):
            within.append(opened[1])
        elif line.startswith("}  // namespace"):
            within.pop()
        elif all(within):
            yield from (("::".join(within), found[1]) for each in DEFINITIONS if (found := each.match(line)))


def test_no_name_is_defined_twice_in_a_namespace():
    files = defaultdict(set)
    for name in SOURCES:
        for namespace, defined in names_by_namespace((NATIVE / name).read_text()):
            files[f"{namespace}::{defined}"].add(name)
    assert len(files) > 300
    assert not {defined: sorted(names) for defined, names in files.items() if len(names) > 1}


@pytest.mark.parametrize("name", SOURCES)
def test_each_folder_has_its_own_namespace(name):
    folder = name.partition("/")[0]
    own = "everytree" if folder == "core" else f"everytree::{folder}"
    opened = set(re.findall(r"^namespace ([\w:]+) \{", (NATIVE / name).read_text(), re.MULTILINE))
    assert opened <= {own}  # none where there are only macros
    assert {namespace for namespace, _ in names_by_namespace((NATIVE / name).read_text())} <= {own}


def test_names_are_found_where_they_are_defined():
    text = """
namespace everytree::exact {
struct Declared;
using other::Name;
using Number = double;
template <class T>
class Table {
    struct Inner {};
};
template <>
struct Table<int> {};
inline constexpr double step = 0.5;
inline const std::array<double, 3>& steps() {
    return steps();
}
void declared(int a);
template <class T>
std::vector<T> defined(const T& a,
                       int b) {
namespace {
struct Local {};
}  // namespace
enum class Kind { one };
}  // namespace everytree::exact
"""
    names = ["Number", "Table", "step", "steps", "defined", "Kind"]
    assert list(names_by_namespace(text)) == [("everytree::exact", name) for name in names]


# ---- the stub --------------------------------------------------------------------------------------------------------

ARRAY = re.compile(r"(?:numpy\.)?ndarray\[dtype=(\w+)[^\]]*\]")


def stub_definitions() -> dict[str, ast.FunctionDef | ast.AnnAssign]:
    """Functions, methods, properties and constants of the stub, by their names."""
    stub = importlib.resources.files(everytree).joinpath("_kernels.pyi").read_text()
    found: dict[str, Any] = {}

    def add(statements: list[ast.stmt], within: str) -> None:
        for each in statements:
            if isinstance(each, ast.ClassDef):
                add(each.body, f"{each.name}.")
            elif isinstance(each, ast.FunctionDef):
                found[within + each.name] = each
            elif isinstance(each, ast.AnnAssign):
                found[within + ast.unparse(each.target)] = each

    add(ast.parse(stub).body, "")
    return found


def module_definitions() -> dict[str, tuple[str, ...]]:
    """The same of the module: the signatures of each, as nanobind writes them; none for constants."""
    found: dict[str, tuple[str, ...]] = {}

    def add(name: str, member: Any) -> None:
        if isinstance(member, property):
            member = member.fget
        if hasattr(member, "__nb_signature__"):
            found[name] = tuple(each[0] for each in member.__nb_signature__)
        elif not name.rpartition(".")[2].startswith("_"):
            found[name] = ()

    for name, member in vars(_kernels).items():
        if isinstance(member, type):
            for inner, each in vars(member).items():
                add(f"{name}.{inner}", each)
        elif not name.startswith("_"):
            add(name, member)
    return found


STUB, MODULE = stub_definitions(), module_definitions()


def parsed(signature: str) -> ast.FunctionDef:
    """A signature of nanobind as Python would read it, with arrays as the stub writes them."""
    plain = ARRAY.sub(lambda found: f"NDArray[np.{found[1].replace('bool', 'bool_')}]", signature)
    plain = plain.replace("\\0", "...").replace("everytree._kernels.", "").replace("collections.abc.", "")
    plain = re.sub(r"^def \(", "def property(", plain)
    (function,) = ast.parse(plain + ": ...").body
    assert isinstance(function, ast.FunctionDef)
    return function


def parameters(function: ast.FunctionDef) -> list[str]:
    """Their names, with a star where names become compulsory."""
    given = function.args
    names = [each.arg for each in given.posonlyargs + given.args]
    names += [f"*{given.vararg.arg}"] if given.vararg else ["*"] if given.kwonlyargs else []
    return names + [each.arg for each in given.kwonlyargs]


def annotations(function: ast.FunctionDef) -> dict[str, str]:
    given = function.args
    types = {each.arg: each.annotation for each in given.args + given.kwonlyargs} | {"return": function.returns}
    return {name: ast.unparse(each) for name, each in types.items() if each is not None}


def test_stub_and_module_have_the_same_names():
    assert sorted(STUB) == sorted(MODULE)


@pytest.mark.parametrize("name", [name for name in STUB if isinstance(STUB[name], ast.FunctionDef)])
def test_stub_says_what_the_module_takes(name):
    """Names, which of them are compulsory, defaults, and the types of all that is not any object."""
    said = STUB[name]
    assert isinstance(said, ast.FunctionDef)
    overloads = [parsed(signature) for signature in MODULE[name]]
    assert overloads
    for taken in overloads:
        assert parameters(said) == parameters(taken)
        assert len(said.args.defaults) == len(taken.args.defaults)
        for parameter, kind in annotations(taken).items():
            if "object" in kind or kind in ("dict", "list", "Callable"):
                continue
            of_stub = annotations(said)[parameter]
            assert kind == of_stub or (len(overloads) > 1 and kind in of_stub.split(" | ")), (parameter, kind, of_stub)


def test_no_stub_takes_just_anything():
    stars = {name for name, each in STUB.items() if isinstance(each, ast.FunctionDef) and each.args.vararg}
    assert {name.rpartition(".")[2] for name in stars} == {"__exit__"}


# ---- records that NumPy keeps ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "header", "struct"),
    [
        (_kernels.ONLINE_NODE, "online/nodes.hpp", "OnlineNode"),
        (_kernels.GROWING_NODE, "core/growing.hpp", "GrowingNode"),
    ],
    ids=["online", "growing"],
)
def test_dtypes_are_those_of_the_structs(dtype, header, struct):
    """Every field in the order of the declaration, without gaps; those that mean nothing have no name."""
    body = re.search(rf"struct {struct} \{{(.+?)^\}};", (NATIVE / header).read_text(), re.DOTALL | re.MULTILINE)
    assert body is not None
    formats = {"std::int32_t": "i4", "std::int64_t": "i8", "double": "f8"}
    declared = [
        (field.strip(), formats[kind])
        for kind, fields in re.findall(r"^    (\S+) ([\w, ]+);", body[1], re.MULTILINE)
        for field in fields.split(",")
    ]
    expected = np.dtype(declared)
    assert dtype.itemsize == expected.itemsize
    assert dtype.names == tuple(name for name, _ in declared if name != "unused")
    assert {name: dtype.fields[name] for name in dtype.names} == {name: expected.fields[name] for name in dtype.names}
