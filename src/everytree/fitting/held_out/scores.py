"""Held-out scores of a model, beside those of a constant prediction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

from everytree.base.words import number_of

UNSEEN = "rows that the trees had not seen"

HEADS = ("", "model", "same for every row")


class Line(NamedTuple):
    """A score in words, of the model and of a prediction that is the same for every row; None where there is none."""

    name: str
    model: float | None
    baseline: float | None


@dataclass(frozen=True, repr=False)
class Scores(ABC):
    """Scores of rows of `fit`, each predicted by trees that had not seen it.

    Attributes
    ----------
    n_rows : int
        Number of rows that were scored: all, or of a long table a random sample.
    """

    n_rows: int

    @abstractmethod
    def lines(self) -> list[Line]:
        """The scores, the most important one first."""

    @abstractmethod
    def sentence(self, which: str = UNSEEN) -> str:
        """The scores in one sentence, without a capital letter and a full stop; `which` rows they are of."""

    def __repr__(self) -> str:
        rows = [HEADS, *((line.name, _text(line.model), _text(line.baseline)) for line in self.lines())]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        table = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows]
        return "\n".join([self._title(), *table])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(name)}</th>" for name in HEADS)
        rows = "".join(
            f"<tr><th>{escape(line.name)}</th><td>{_text(line.model)}</td><td>{_text(line.baseline)}</td></tr>"
            for line in self.lines()
        )
        return f"<table><caption>{self._title()}</caption><tr>{head}</tr>{rows}</table>"

    def _title(self) -> str:
        return f"{number_of(self.n_rows, 'row')} that the trees had not seen"


@dataclass(frozen=True, repr=False)
class ClassScores(Scores):
    """Scores of classes; rows count by their weights.

    Attributes
    ----------
    n_rows : int
        Number of rows that were scored: all, or of a long table a random sample.
    log_loss, accuracy : float
        Minus the mean log probability of the true class, and the share of rows whose most probable class is the true
        one. Classes tie for the most probable one if so many rows cannot tell them apart, and are right by their share:
        otherwise, on noise, a row would name the wrong class just because it is left out.
    baseline_log_loss, baseline_accuracy : float
        The same for the frequencies of the classes among the other rows as the prediction of every row.
    """

    log_loss: float
    accuracy: float
    baseline_log_loss: float
    baseline_accuracy: float

    def lines(self) -> list[Line]:
        return [
            Line("log-loss (less is better)", self.log_loss, self.baseline_log_loss),
            Line("accuracy", self.accuracy, self.baseline_accuracy),
        ]

    def sentence(self, which: str = UNSEEN) -> str:
        return (
            f"right for {_percent(self.accuracy)} of {which} (always naming the largest class: "
            f"{_percent(self.baseline_accuracy)}); log-loss {self.log_loss:.2f} (guessing by class frequencies: "
            f"{self.baseline_log_loss:.2f})"
        )


@dataclass(frozen=True, repr=False)
class NumberScores(Scores):
    """Scores of numbers; rows count by their weights.

    Attributes
    ----------
    n_rows : int
        Number of rows that were scored: all, or of a long table a random sample.
    log_score : float
        Mean log density or probability of the target; of a censored one, log of the probability to exceed it.
    baseline_log_score : float
        The same for one distribution of the model's family, learnt from the other rows, as the prediction of every row.
    r2 : float or None
        Coefficient of determination of the mean: the share of the variance that it explains. The mean of the other
        rows' targets as the prediction of every row has 0. None where there are censored rows, where a predicted mean
        is infinite, and where all targets are equal.
    coverage : float or None
        Share of the rows whose targets are in the interval of 90%. None where there are censored rows.
    """

    log_score: float
    baseline_log_score: float
    r2: float | None
    coverage: float | None

    def lines(self) -> list[Line]:
        of_mean = [] if self.r2 is None else [Line("R2 of the mean", self.r2, 0.0)]
        of_interval = [] if self.coverage is None else [Line("in intervals of 90%", self.coverage, None)]
        return [*of_mean, Line("mean log score", self.log_score, self.baseline_log_score), *of_interval]

    def sentence(self, which: str = UNSEEN) -> str:
        log_score = f"mean log score {self.log_score:.2f}"
        start = f"{log_score} on {which}" if self.r2 is None else f"R2 {self.r2:.2f} on {which}; {log_score}"
        end = "" if self.coverage is None else f"; intervals of 90% hold {_percent(self.coverage)} of them"
        return f"{start} (one distribution for all rows: {self.baseline_log_score:.2f}){end}"


@dataclass(frozen=True, repr=False)
class CurveScores(Scores):
    """Scores of survival curves; rows count by their weights.

    The baseline hazard is that of other rows, and so is the curve for all rows.

    Attributes
    ----------
    n_rows : int
        Number of rows that were scored: all, or of a long table a random sample.
    brier, baseline_brier : float
        Integrated Brier score, of the curves and of one Kaplan-Meier curve for all rows; less is better. Up to the time
        from which on less than a fifth of the rows is at risk.
    concordance : float or None
        Harrell's C of the expected number of events up to then: the share of pairs of rows in the right order, 0.5
        for one curve for all. None where the order of no pair is known.
    """

    brier: float
    baseline_brier: float
    concordance: float | None

    def lines(self) -> list[Line]:
        of_order = [] if self.concordance is None else [Line("concordance", self.concordance, 0.5)]
        return [Line("integrated Brier score (less is better)", self.brier, self.baseline_brier), *of_order]

    def sentence(self, which: str = UNSEEN) -> str:
        order = "" if self.concordance is None else f"; concordance {self.concordance:.2f}"
        return (
            f"integrated Brier score {self.brier:.3f} on {which} (one Kaplan-Meier curve for all rows: "
            f"{self.baseline_brier:.3f}){order}"
        )


@dataclass(frozen=True)
class NoScores:
    """Why a model has none.

    Attributes
    ----------
    why : str
    """

    why: str


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _percent(share: float) -> str:
    """A share in whole percent; 100% only where it is all of them."""
    n = round(100.0 * share)
    return "more than 99%" if n == 100 and share < 1.0 else f"{n}%"


GROWN_ON_ALL = NoScores("every tree was grown on all rows, so that no rows are held out")
