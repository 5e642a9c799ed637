"""What makes conformal intervals and sets, in a file."""

from __future__ import annotations

import numpy as np

from everytree.conformal.conformal import Conformal, Strata
from everytree.conformal.folds import FoldConformal
from everytree.conformal.forest import ForestConformal
from everytree.conformal.split import UNKNOWN, SplitConformal
from everytree.files.families import check_all
from everytree.files.models import Table, read_model, write_model
from everytree.files.plain import read_plain, write_plain
from everytree.files.sections import Reader, Writer
from everytree.models.model import Model

SALTS = 2**63


def write_conformal(writer: Writer, conformal: Conformal) -> None:
    if isinstance(conformal, SplitConformal):
        _write_split(writer, conformal)
    elif isinstance(conformal, FoldConformal):
        _write_folds(writer, conformal)
    else:
        assert isinstance(conformal, ForestConformal)
        _write_forest(writer, conformal)


def read_conformal(reader: Reader, model: Model, table: Table, kinds: tuple[str, ...]) -> Conformal | None:
    """None where no rows are behind a guarantee, and in files of earlier versions."""
    if "conformal" not in reader:
        return None
    section = reader.section("conformal")
    salt = section.value("salt", int)
    if not 0 <= salt < SALTS:
        raise section.error("salt", f"must be from 0 to 2**63, but is {salt}")
    if "n_folds" in section:
        return _read_folds(section, model, salt, table, kinds)
    return _read_forest(section, model, salt) if "unseen" in section else _read_split(section, model, salt)


# ---- rows that were set aside ----------------------------------------------------------------------------------------


def _write_split(writer: Writer, conformal: SplitConformal) -> None:
    writer.put(salt=conformal.salt)
    writer.put_arrays(scores=conformal.scores, target=conformal.target, stratum=conformal.stratum)
    if conformal.strata is not None:
        strata = writer.section("strata")
        strata.put(column=conformal.strata.column, name=conformal.strata.name)
        write_plain(strata, "labels", conformal.strata.labels)


def _read_split(section: Reader, model: Model, salt: int) -> SplitConformal:
    scores = section.array("scores", np.float64, (None,))
    target, stratum = (section.array(name, np.int64, (len(scores),)) for name in ("target", "stratum"))
    strata = _read_strata(section)
    n_strata = 1 if strata is None else len(strata.labels)
    check_all(section, "scores", scores, scores >= 0.0, "must be at least 0")
    check_all(section, "target", target, (target >= UNKNOWN) & (target < _n_classes(model)), "must be class numbers")
    check_all(section, "stratum", stratum, (stratum >= 0) & (stratum < n_strata), "must be numbers of categories")
    return SplitConformal(scores, target, stratum, salt, strata)


def _read_strata(reader: Reader) -> Strata | None:
    if "strata" not in reader:
        return None
    section = reader.section("strata")
    labels = read_plain(section, "labels")
    if not isinstance(labels, list):
        raise section.error("labels", f"must be a list, but is {labels!r:.200}")
    return Strata(section.value("column", int), section.value("name", str), labels)


def _n_classes(model: Model) -> int:
    return model.family.size if model.family.has_classes else 1


# ---- folds and trees that left rows out ------------------------------------------------------------------------------


def _write_folds(writer: Writer, conformal: FoldConformal) -> None:
    writer.put(salt=conformal.salt, n_folds=len(conformal.models))
    writer.put_arrays(scores=conformal.scores, target=conformal.target, fold=conformal.fold)
    for number, model in enumerate(conformal.models):
        write_model(writer.section(f"without_{number}"), model)


def _read_folds(section: Reader, model: Model, salt: int, table: Table, kinds: tuple[str, ...]) -> FoldConformal:
    n_folds = section.value("n_folds", int)
    if n_folds < 1:
        raise section.error("n_folds", f"must be positive, but is {n_folds}")
    models = [read_model(section.section(f"without_{number}"), table, kinds) for number in range(n_folds)]
    scores = section.array("scores", np.float64, (None,))
    target, fold = (section.array(name, np.int64, (len(scores),)) for name in ("target", "fold"))
    check_all(section, "scores", scores, scores >= 0.0, "must be at least 0")
    check_all(section, "target", target, (target >= 0) & (target < _n_classes(model)), "must be class numbers")
    check_all(section, "fold", fold, (fold >= 0) & (fold < n_folds), "must be numbers of folds")
    return FoldConformal(models, fold, scores, target, salt)


def _write_forest(writer: Writer, conformal: ForestConformal) -> None:
    writer.put(salt=conformal.salt)
    writer.put_as_they_are(codes=conformal.codes, unseen=conformal.unseen)
    writer.put_arrays(target=conformal.target.astype(np.float64), own=conformal.own)


def _read_forest(section: Reader, model: Model, salt: int) -> ForestConformal:
    forest = model.parts.averaged
    codes = section.array("codes", None, (None, forest.n_features))
    if codes.dtype not in (np.uint8, np.uint16):
        raise section.error("codes", f"must be uint8 or uint16, but is {codes.dtype}")
    target = section.array("target", np.float64, (len(codes),))
    own = section.array("own", np.float64, (len(codes), forest.family.n_statistics))
    unseen = section.array("unseen", np.bool_, (len(forest), len(codes)))
    check_all(section, "own", own, np.isfinite(own), "must be finite")
    has_tree = np.asarray(unseen.any(axis=0))
    check_all(section, "unseen", has_tree, has_tree, "must hold a tree for each row")
    if not model.family.has_classes:
        check_all(section, "target", target, np.isfinite(target), "must be finite")
        return ForestConformal(codes, target, own, unseen, salt)
    check_all(section, "target", target, np.isin(target, np.arange(_n_classes(model))), "must be class numbers")
    return ForestConformal(codes, target.astype(np.int64), own, unseen, salt)
