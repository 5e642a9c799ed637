"""Priors that were chosen, and what is known of held-out rows, in a file."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from everytree.families.base import NativeFamily
from everytree.files.families import check_all
from everytree.files.plain import read_plain, write_plain
from everytree.files.sections import Reader, Writer
from everytree.fitting.held_out.helpful_splits import HelpfulSplits
from everytree.fitting.held_out.out_of_bag import OutOfBag
from everytree.fitting.held_out.scores import ClassScores, CurveScores, NoScores, NumberScores, Scores
from everytree.fitting.held_out.search import Choice
from everytree.fitting.targets.target import Target
from everytree.models.model import Model


def write_choice(writer: Writer, choice: Choice) -> None:
    for name in ("split_prior", "parameters", "score", "sharpness"):
        write_plain(writer, name, getattr(choice, name))


def read_choice(reader: Reader, family: NativeFamily) -> Choice:
    choice = Choice(family, *(read_plain(reader, name) for name in ("split_prior", "parameters", "score", "sharpness")))
    for name in ("score", "sharpness"):
        if not isinstance(getattr(choice, name), float):
            raise reader.error(name, f"must be a number, but is {getattr(choice, name)!r:.200}")
    if not isinstance(choice.parameters, dict):
        raise reader.error("parameters", f"must be a dict, but is {choice.parameters!r:.200}")
    return choice


def write_out_of_bag(writer: Writer, oob: OutOfBag) -> None:
    write_plain(writer, "score", oob.score)
    writer.put_arrays(prediction=oob.prediction)
    if oob.log_scores is not None:
        writer.put_arrays(log_scores=oob.log_scores)


def read_out_of_bag(reader: Reader, target: Target) -> OutOfBag:
    """Predictions of the rows of a fit, as wide as there are classes."""
    n_classes = target.attributes().get("n_classes_")
    shape = (None,) if n_classes is None else (None, n_classes)
    prediction = reader.array("prediction", np.float64, shape)
    log_scores = reader.array("log_scores", np.float64, (len(prediction),)) if "log_scores" in reader else None
    score = read_plain(reader, "score")
    if not isinstance(score, float):
        raise reader.error("score", f"must be a number, but is {score!r:.200}")
    return OutOfBag(prediction, log_scores, score)


def read_helpful(reader: Reader, model: Model) -> HelpfulSplits | None:
    """Which splits help other rows; files of earlier versions do not say it."""
    if "helpful" not in reader:
        return None
    section = reader.section("helpful")
    tree, n_rows = section.value("tree", int), section.value("n_rows", int)
    forest = model.parts.forest
    if forest is None or not 0 <= tree < len(forest) or n_rows < 1:
        raise section.error("tree", f"must be a tree of the forest, judged by some rows, but is {tree}")
    shape = forest.trees[tree]
    prob = section.array("prob", np.float64, (shape.n_nodes,))
    is_right = np.where(shape.is_terminal, np.isnan(prob), (prob >= 0.0) & (prob <= 1.0))
    check_all(section, "prob", prob, is_right, "must be probabilities at splits and NaN at leaves")
    return HelpfulSplits(tree, prob, n_rows, section.value("is_cross_fitted", bool))


def read_scores(reader: Reader, is_classes: bool, *, are_curves: bool = False) -> Scores | NoScores:
    """Scores, or why there are none; files of earlier versions of the library have neither."""
    if "unseen" not in reader:
        return NoScores("its file was written by a version of everytree that did not keep it")
    section = reader.section("unseen")
    if "why" in section:
        return NoScores(section.value("why", str))
    n_rows = section.value("n_rows", int)
    if n_rows < 1:
        raise section.error("n_rows", f"must be positive, but is {n_rows}")
    kind: type[Scores] = ClassScores if is_classes else CurveScores if are_curves else NumberScores
    names = [field.name for field in fields(kind) if field.name != "n_rows"]
    return kind(n_rows, *(_read_score(section, name) for name in names))


def _read_score(reader: Reader, name: str) -> Any:
    """A number; of R2, coverage and concordance also nothing."""
    value = read_plain(reader, name)
    if not isinstance(value, float) and not (value is None and name in ("r2", "coverage", "concordance")):
        raise reader.error(name, f"must be a number, but is {value!r:.200}")
    return value


def write_helpful(writer: Writer, helpful: HelpfulSplits) -> None:
    writer.put(tree=helpful.tree, n_rows=helpful.n_rows)
    writer.put(is_cross_fitted=helpful.is_cross_fitted)
    writer.put_arrays(prob=helpful.prob)


def write_scores(writer: Writer, scores: Scores | NoScores) -> None:
    for field in fields(scores):
        write_plain(writer, field.name, getattr(scores, field.name))
