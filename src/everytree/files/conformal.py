"""What makes conformal intervals and sets, in a file."""

from __future__ import annotations

import numpy as np

from everytree.conformal.conformal import Conformal, Strata
from everytree.conformal.split import UNKNOWN, SplitConformal
from everytree.files.families import check_all
from everytree.files.plain import read_plain, write_plain
from everytree.files.sections import Reader, Writer
from everytree.models.model import Model


def write_conformal(writer: Writer, conformal: Conformal) -> None:
    assert isinstance(conformal, SplitConformal)
    writer.put(salt=conformal.salt)
    writer.put_arrays(scores=conformal.scores, target=conformal.target, stratum=conformal.stratum)
    if conformal.strata is not None:
        strata = writer.section("strata")
        strata.put(column=conformal.strata.column, name=conformal.strata.name)
        write_plain(strata, "labels", conformal.strata.labels)


def read_conformal(reader: Reader, model: Model) -> SplitConformal | None:
    """None where no rows were set aside, and in files of earlier versions."""
    if "conformal" not in reader:
        return None
    section = reader.section("conformal")
    scores = section.array("scores", np.float64, (None,))
    target, stratum = (section.array(name, np.int64, (len(scores),)) for name in ("target", "stratum"))
    strata = _read_strata(section)
    n_classes = model.family.size if model.family.has_classes else 1
    n_strata = 1 if strata is None else len(strata.labels)
    check_all(section, "scores", scores, scores >= 0.0, "must be at least 0")
    check_all(section, "target", target, (target >= UNKNOWN) & (target < n_classes), "must be numbers of classes")
    check_all(section, "stratum", stratum, (stratum >= 0) & (stratum < n_strata), "must be numbers of categories")
    salt = section.value("salt", int)
    if not 0 <= salt < 2**63:
        raise section.error("salt", f"must be from 0 to 2**63, but is {salt}")
    return SplitConformal(scores, target, stratum, salt, strata)


def _read_strata(reader: Reader) -> Strata | None:
    if "strata" not in reader:
        return None
    section = reader.section("strata")
    labels = read_plain(section, "labels")
    if not isinstance(labels, list):
        raise section.error("labels", f"must be a list, but is {labels!r:.200}")
    return Strata(section.value("column", int), section.value("name", str), labels)
