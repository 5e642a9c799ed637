"""Predictions along one feature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from everytree.base.arrays import FloatArray, as_codes
from everytree.base.checks import whole_number
from everytree.base.errors import ArgumentError
from everytree.view.colours import class_colour
from everytree.view.describe import (
    CodeNames,
    Names,
    grouped,
    repeated,
)

if TYPE_CHECKING:
    from everytree.posterior.posterior import Posterior
from everytree.view.plot.axes import legend, matplotlib_module, new_axes, plain_numbers
from everytree.view.plot.layout import clipped
from everytree.view.plot.model_along import along_model
from everytree.view.plot.style import palette_of


def plot_predictive(
    post: Any,
    feature: int | str,
    *,
    at: Any = None,
    codes: ArrayLike | None = None,
    coverage: float = 0.9,
    ax: Any = None,
    feature_names: Sequence[Any] | None = None,
    code_names: CodeNames | None = None,
    class_names: Sequence[Any] | None = None,
    **row_data: Any,
) -> Any:
    """Draw the predictions along one feature, averaged over every pruned tree, with all other columns fixed.

    Families of classes have a line for each class, or stacked bars if the feature has multiway splits only and has no
    order; all others have the mean and an interval.

    Parameters
    ----------
    post : Posterior or fitted estimator
        Estimators know the names of their columns and classes, and `codes` is not for them.
    feature : int or str
        Number of a column, or its name: in `feature_names`, or in the table of an estimator.
    at : (n_features,) array_like of codes, optional
        The row to vary; zeros by default. It may be longer if the tree has no declared number of columns. For an
        estimator, one row of a table, a dict or a pandas Series; by default the median of each column of numbers, and
        the middle category in the order of their codes.
    codes : sequence of int, optional
        Codes of the feature to draw, -1 for missing; by default all that the tree distinguishes.
    coverage : float
        Probability of the interval.
    ax : matplotlib.axes.Axes, optional
    feature_names
        As in `plot_tree`. Names that are numbers are drawn as the cuts between codes.
    code_names
        As in `plot_tree`. Names that are numbers are drawn as the cuts between codes.
    class_names
        As in `plot_tree`. Names that are numbers are drawn as the cuts between codes.
    **row_data
        Row data of the family, such as `inputs` or `exposure`: one value, for all codes.

    Returns
    -------
    matplotlib.axes.Axes
    """
    if not hasattr(post, "tree"):
        if codes is not None:
            raise ArgumentError("codes", "is for a Posterior: a model has values, and all of them are drawn")
        return along_model(post, feature, at, coverage, ax, row_data)
    names, tree = Names(post.tree, feature_names, code_names), post.tree
    row = _row(at, tree.n_features)
    column = column_of(len(row), feature, feature_names)
    asked = tree.feature == column
    is_ordered = bool((tree.threshold[asked] >= 0).any())
    along = _Along.of(post, column, names, codes, is_ordered)
    table = np.repeat(row[None], len(along.codes), axis=0)
    table[:, column] = along.codes
    extra: dict[str, Any] = repeated(row_data, len(table))
    dist = post.predictive(table, **extra)
    some = post.family.at(np.zeros(1, dtype=np.int64)).predictive(post.statistics[:1], **repeated(row_data, 1))
    ax = new_axes(ax, (5.2, 3.2))
    if hasattr(some, "probs"):
        _draw_classes(ax, along, *grouped(dist.probs(), class_names))
    else:
        if hasattr(some, "cdf"):
            low, high = dist.interval(coverage).T
        else:
            half = float(ndtri(0.5 + 0.5 * coverage)) * dist.std()
            low, high = dist.mean() - half, dist.mean() + half
        _draw_band(ax, along, dist.mean(), low, high, f"{100 * coverage:.3g} % interval")
        plain_numbers(ax.yaxis, max(abs(end) for end in ax.get_ylim()))
    along.label(ax)
    ax.set_xlabel(names.feature(column), parse_math=False)
    return ax


@dataclass(frozen=True)
class _Along:
    """Codes of one feature and their positions; each has a width of 1, the missing one a little apart."""

    codes: NDArray[np.int64]
    places: NDArray[np.float64]
    is_ordered: bool
    labels: list[str]
    cuts: bool

    @classmethod
    def of(cls, post: Posterior, column: int, names: Names, codes: ArrayLike | None, is_ordered: bool) -> _Along:
        tree, known = post.tree, names.of_codes(column)
        cuts = is_ordered and known is not None and all(_is_number(name) for name in known)
        if codes is None:
            asked = tree.threshold[tree.feature == column]
            n_known = 0 if known is None else len(known) + cuts
            n_codes = tree.n_codes[column] if len(asked) else 0  # 0 if any code is possible
            n_codes = n_codes or max(int(asked.max(initial=0)) + 2, n_known)
            has_missing = len(asked) and tree.has_missing[column]
            chosen = np.append(np.arange(n_codes), [-1] if has_missing else []).astype(np.int64)
        else:
            chosen = np.atleast_1d(np.asarray(codes)).astype(np.int64)
        places = np.arange(len(chosen)) + 0.5 * (chosen < 0)
        labels = ["missing" if c < 0 else _code_label(names, column, int(c), cuts) for c in chosen]
        return cls(chosen, places, is_ordered, labels, cuts)

    @property
    def runs(self) -> list[NDArray[np.int64]]:
        """Positions of neighbours that are joined by a line."""
        joined = np.flatnonzero(self.codes >= 0) if self.is_ordered else np.empty(0, dtype=np.int64)
        breaks = np.flatnonzero(np.diff(joined) != 1) + 1
        return [run for run in np.split(joined, breaks) if len(run)]

    @property
    def singles(self) -> NDArray[np.int64]:
        """Positions without neighbours."""
        return np.flatnonzero(self.codes < 0) if self.is_ordered else np.arange(len(self.codes))

    def edges(self, run: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.append(self.places[run] - 0.5, self.places[run[-1]] + 0.5)

    def label(self, ax: Any) -> None:
        """Write the names of codes below their positions, and cuts between them."""
        step = -(-len(self.codes) // 12) if self.is_ordered else 1
        shown = [i for i in range(len(self.codes)) if i % step == 0 or self.codes[i] < 0]
        if self.cuts:
            shown = [i for i in shown if self.labels[i]]
        places = [self.places[i] + (0.5 if self.cuts and self.codes[i] >= 0 else 0.0) for i in shown]
        labels = [clipped(self.labels[i], 18) for i in shown]
        long = max(map(len, labels), default=0) * len(labels) > 64
        ax.set_xticks(places, labels, rotation=35 if long else 0, ha="right" if long else "center", parse_math=False)
        ax.set_xlim(self.places.min() - 0.5, self.places.max() + 0.5)


def _code_label(names: Names, column: int, code: int, cuts: bool) -> str:
    known = names.of_codes(column)
    if known is not None and code >= len(known):
        return "" if cuts else str(code)
    return names.code(column, code)


def _is_number(name: Any) -> bool:
    try:
        float(name)
    except (TypeError, ValueError):
        return False
    return True


def column_of(n_features: int, feature: int | str, feature_names: Sequence[Any] | None) -> int:
    if not isinstance(feature, str):
        return whole_number("feature", feature, 0, n_features - 1)
    known = [str(name) for name in feature_names] if feature_names is not None else []
    if feature not in known:
        raise ValueError(f"feature is {feature!r}, but feature_names are {known}")
    return known.index(feature)


def _row(at: ArrayLike | None, n_features: int) -> NDArray[np.int64]:
    """Return one row of codes, with -1 for missing in any type."""
    row = as_codes(np.zeros((1, n_features), dtype=np.int64) if at is None else np.asarray(at)[None])[0]
    if len(row) < n_features:
        raise ValueError(f"at must have one code for each of {n_features} features, but has {len(row)}")
    missing = row == np.iinfo(row.dtype).max if row.dtype in (np.uint8, np.uint16) else row < 0
    return np.where(missing, -1, row.astype(np.int64))


def _draw_classes(ax: Any, along: _Along, probs: NDArray[np.float64], classes: Sequence[str]) -> None:
    """Draw a line for each class, or stacked bars if there is no order."""
    marks = []
    for c in range(len(classes)):
        look = {"color": class_colour(c), "linewidth": 2.0}
        if not along.is_ordered:
            marks.append(ax.bar(along.places, probs[:, c], 0.7, bottom=probs[:, :c].sum(axis=1), color=look["color"]))
            continue
        alone, x = along.singles, along.places[along.singles]
        marks.append(ax.hlines(probs[alone, c], x - 0.3, x + 0.3, **look))
        for run in along.runs:
            ax.stairs(probs[run, c], along.edges(run), baseline=None, **look)
    ax.set_ylim((-0.02, 1.02) if along.is_ordered else (0.0, 1.0))
    ax.set_ylabel("probability")
    legend(ax, marks, classes)


def _draw_band(ax: Any, along: _Along, mean: FloatArray, low: FloatArray, high: FloatArray, name: str) -> None:
    """Draw the mean and an interval, in steps if there is an order; infinite values are left out."""
    mean, low, high = (np.where(np.isfinite(values), values, np.nan) for values in (mean, low, high))
    colours = palette_of(ax)
    line, pale = {"color": colours.split(0.9), "linewidth": 2.0}, colours.split(0.22)
    for run in along.runs:
        ends = np.append(run, run[-1])
        ax.fill_between(along.edges(run), low[ends], high[ends], step="post", color=pale, linewidth=0.0)
        ax.stairs(mean[run], along.edges(run), baseline=None, **line)
    alone, x = along.singles, along.places[along.singles]
    ax.bar(x, (high - low)[alone], 0.6, bottom=low[alone], color=pale)
    lines = ax.hlines(mean[alone], x - 0.3, x + 0.3, **line)
    square = matplotlib_module("patches").Rectangle((0.0, 0.0), 1.0, 1.0, facecolor=pale)
    ax.set_ylabel("y")
    legend(ax, [lines, square], ["mean", name])
