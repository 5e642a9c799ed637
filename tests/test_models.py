"""Models are asked what they can do, never for their class."""

from __future__ import annotations

import ast
import inspect
import pkgutil
from importlib import import_module
from pathlib import Path

import pytest

import everytree as et
import everytree.models
from everytree.estimators.registry import STRUCTURES, estimator_named, estimator_names, estimators_of, is_estimator
from everytree.files.models import KINDS
from everytree.models.model import Model

SOURCES = sorted(Path(et.__file__).parent.rglob("*.py"))


def kinds_of_models() -> dict[str, type[Model]]:
    """Every class of the package `models` that is a model, by its kind."""
    found = {}
    for one in pkgutil.iter_modules(everytree.models.__path__):
        for _, kind in inspect.getmembers(import_module(f"everytree.models.{one.name}"), inspect.isclass):
            if issubclass(kind, Model) and not inspect.isabstract(kind):
                found[kind.kind] = kind
    return found


MODELS = kinds_of_models()


def asked_for(tree: ast.AST) -> set[str]:
    """Names of the classes that `isinstance` and `issubclass` ask for."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    asking = [call for call in calls if getattr(call.func, "id", "") in ("isinstance", "issubclass")]
    return {node.id for call in asking for node in ast.walk(call.args[1]) if isinstance(node, ast.Name)}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(SOURCES[0].parent)))
def test_nobody_asks_for_the_class_of_a_model(path):
    if path.parent.name == "models":
        return
    tree = ast.parse(path.read_text())
    classes = {kind.__name__ for kind in MODELS.values()} | set(estimator_names())
    assert not asked_for(tree) & classes
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not attributes & {"is_exact", "is_boosted"}


def test_such_questions_are_seen():
    code = "if isinstance(model, BoostedClasses | (A.B, ExactModel)): pass"
    assert {"BoostedClasses", "ExactModel"} <= asked_for(ast.parse(code))


def test_hardly_anybody_tries_whether_a_model_has_something():
    """`hasattr` of estimators and their models; trees of other libraries, tables and families are not these."""
    probes = []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "hasattr":
                of = ast.unparse(node.args[0]).split(".")[-1]
                if of in ("model", "estimator", "fitted", "kind") and "importers" not in path.parts:
                    probes.append(f"{path.name}: {ast.unparse(node)}")
    assert len(probes) < 10, probes


def test_every_kind_of_model_can_be_written_to_files():
    assert KINDS.keys() == MODELS.keys()
    assert {kind for name in estimator_names() for kind in estimator_named(name).model_kinds} == MODELS.keys()


def test_all_estimators_are_registered():
    public = {name for name in et.__all__ if name.endswith(("Classifier", "Regressor")) and "Online" not in name}
    assert public == set(estimator_names())
    for structure in STRUCTURES:
        assert [kind.has_classes for kind in estimators_of(structure)] == [True, False]


@pytest.mark.parametrize("name", estimator_names())
def test_no_estimator_is_a_tower_of_classes(name):
    own = [kind for kind in estimator_named(name).__mro__ if kind.__module__.startswith("everytree")]
    assert len(own) <= 4


def test_an_estimator_is_known_by_its_class_or_one_above_it():
    class OfAnother(et.MetaTreeClassifier):
        """An estimator of somebody else's."""

    assert is_estimator(OfAnother())
    assert not is_estimator(et.OnlineForestClassifier())
    with pytest.raises(LookupError, match="no estimator Tree"):
        estimator_named("Tree")
