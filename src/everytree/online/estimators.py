"""Online forests with river's surface. No mathematics here: rows and targets in, predictions out."""

from __future__ import annotations

import math
import threading
from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from everytree.codes import whole_number
from everytree.families import Categorical, Normal
from everytree.families.base import FloatArray, NativeFamily
from everytree.online.river_base import MiniBatchClassifier, MiniBatchRegressor
from everytree.online.rows import Range, as_dicts, check_ranges
from everytree.online.trees import NO_BOUND, OnlineTrees
from everytree.predictive import Predictive

Row = dict[Any, Any]


class _OnlineForest:
    """What the two forests share: the order of events around the trees."""

    n_models: int
    split_prior: float
    max_nodes: int | None
    half_life: float | None
    ranges: dict[Hashable, Range] | None
    seed: int

    def _start(self, family: NativeFamily) -> None:
        """Parameters checked, no rows yet."""
        n_models = whole_number("n_models", self.n_models, 1, 100_000)
        seed = whole_number("seed", self.seed, 0, 2**63 - 1)
        if not (isinstance(self.split_prior, float | int) and 0.0 < self.split_prior < 1.0):
            raise ValueError(f"split_prior must be between 0 and 1, but is {self.split_prior!r}")
        if self.half_life is not None:
            positive("half_life", self.half_life, " of rows, or None")
        if self.max_nodes is not None:
            whole_number("max_nodes", self.max_nodes, 3 * n_models, NO_BOUND)
        self._ranges = check_ranges(self.ranges)
        self._trees = OnlineTrees(family, n_models, seed, self.split_prior, self.half_life, self.max_nodes)
        self._lock = threading.RLock()

    def _target(self, y: Any, where: str) -> float:
        raise NotImplementedError

    def _know_targets(self, targets: Sequence[Any]) -> FloatArray:
        raise NotImplementedError

    # ---- learning ---------------------------------------------------------------------------------------------------

    def learn_one(self, x: Row, y: Any) -> None:
        """Learn one row. A call that fails changes nothing.

        Parameters
        ----------
        x : dict
            Features: numbers, texts, dates; absent, None or NaN where unknown. Not kept.
        y
            The target.
        """
        self._learn(as_dicts([x]), [y])

    def learn_many(self, X: Any, y: Iterable[Any]) -> None:
        """Learn the rows of a table one after the other. A call that fails changes nothing.

        Parameters
        ----------
        X : pandas.DataFrame or iterable of dict
        y : pandas.Series or iterable
        """
        rows, targets = _rows_of(X), list(y)
        if len(rows) != len(targets):
            raise ValueError(f"y has {len(targets)} entries, but X has {len(rows)} rows")
        self._learn(rows, targets)

    def _learn(self, rows: list[Row], targets: list[Any]) -> None:
        """Everything that can fail comes first."""
        for i, y in enumerate(targets):
            self._target(y, "y" if len(targets) == 1 else f"y, row {i},")
        with self._lock:
            encoded = self._trees.features.learn(rows, self._ranges)
            if encoded.features is not self._trees.features:
                self._trees.use_features(encoded.features, self._ranges)
            self._learn_encoded(encoded.values, targets)

    def _learn_encoded(self, values: FloatArray, targets: list[Any]) -> None:
        raise NotImplementedError

    def refresh(self) -> None:
        """Make everything exact.

        With `half_life`, the evidence of branches that no row has touched lately is up to date only now and then. After
        this call all statistics weigh a row of age a by 2 ** (-a / half_life), and all evidence is derived from them.
        """
        with self._lock:
            self._trees.refresh()

    # ---- reading ----------------------------------------------------------------------------------------------------

    def _predict(self, rows: list[Row]) -> FloatArray:
        with self._lock:
            return self._trees.predict(self._trees.features.known(rows))

    def predictive_one(self, x: Row) -> Predictive:
        """The distribution that a prediction is taken from: of the number, or of the place of the class in `classes`.

        Returns
        -------
        Predictive
            Of one row, averaged over all trees and their prunings.
        """
        with self._lock:
            return self._trees.predictive(self._trees.features.known(as_dicts([x])))

    @property
    def n_rows(self) -> int:
        """Rows learned."""
        return self._trees.n_rows

    @property
    def n_nodes(self) -> int:
        """Nodes of all trees together, at most `max_nodes`."""
        return self._trees.n_nodes

    @property
    def features(self) -> list[Hashable]:
        """Names of the features seen so far."""
        return list(self._trees.features.index)

    @property
    def log_evidence(self) -> FloatArray:
        """(n_models,) log evidence of the rows in each tree, averaged over all its prunings."""
        with self._lock:
            return self._trees.log_evidence

    # ---- copies and files -------------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            state = {name: value for name, value in self.__dict__.items() if name != "_lock"}
            return state | {"_trees": self._trees.__getstate__()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        trees = object.__new__(OnlineTrees)
        trees.__setstate__(state["_trees"])
        self.__dict__.update(state | {"_trees": trees, "_lock": threading.RLock()})


class OnlineForestClassifier(_OnlineForest, MiniBatchClassifier):
    """Classes of rows that never stop, by random trees averaged over all their prunings.

    Where river is installed this is a river classifier. Classes may appear at any time.

    Parameters
    ----------
    n_models : int
        Number of trees.
    split_prior : float
        Prior probability that detail goes on as its fineness doubles.
    concentration : float
        What the prior of a leaf is worth in rows, shared equally by the classes.
    max_nodes : int or None
        Bound on the nodes of all trees together, at least three a tree. Where it is reached, the pair of sibling leaves
        that adds least to the evidence is forgotten. A node takes about 16 bytes a feature, 8 a class and 80 more.
    half_life : float or None
        Number of rows after which a row counts half; None counts all rows alike.
    ranges : dict or None
        (low, high) of numeric features whose range is known; that of others is what was seen so far.
    seed : int
        Chooses the splits: the same stream gives the same model.

    Examples
    --------
    >>> import everytree as et
    >>> model = et.OnlineForestClassifier(seed=1)
    >>> for i in range(200):
    ...     x = {"size": i % 10, "colour": "red" if i % 3 else "blue"}
    ...     model.learn_one(x, "big" if x["size"] > 4 else "small")
    >>> model.predict_one({"size": 8, "colour": "red"})
    'big'
    """

    def __init__(
        self,
        n_models: int = 10,
        split_prior: float = 0.5,
        concentration: float = 0.1,
        max_nodes: int | None = 20_000,
        half_life: float | None = None,
        ranges: dict[Hashable, Range] | None = None,
        seed: int = 0,
    ) -> None:
        self.n_models = n_models
        self.split_prior = split_prior
        self.concentration = concentration
        self.max_nodes = max_nodes
        self.half_life = half_life
        self.ranges = ranges
        self.seed = seed
        positive("concentration", concentration)
        self._classes: dict[Any, int] = {}
        self._start(self._family(2))

    def _family(self, n_classes: int) -> Categorical:
        return Categorical(n_classes, self.concentration / n_classes)

    @property
    def _multiclass(self) -> bool:
        return True

    @property
    def classes(self) -> list[Any]:
        """Classes seen so far, in the order in which they came."""
        return list(self._classes)

    def _target(self, y: Any, where: str) -> float:
        if y is None or (isinstance(y, float) and math.isnan(y)):
            raise ValueError(f"{where} must be a class, but is {y!r}")
        try:
            hash(y)
        except TypeError:
            raise TypeError(f"{where} must be a class, but {y!r} of type {type(y).__name__} is not hashable") from None
        return 0.0

    def _learn_encoded(self, values: FloatArray, targets: list[Any]) -> None:
        """A class that is new divides the prior by one more, so rows up to it are learned first."""
        begin, classes = 0, self._classes
        codes = np.empty(len(targets))
        for i, y in enumerate(targets):
            if y not in classes:
                self._trees.learn(values[begin:i], codes[begin:i])
                begin = i
                classes[y] = len(classes)
                if len(classes) > 2:
                    self._trees.use_family(self._family(len(classes)))
            codes[i] = classes[y]
        self._trees.learn(values[begin:], codes[begin:])

    def _probabilities(self, rows: list[Row]) -> FloatArray:
        """(n_rows, n_classes); of a single class there is no doubt."""
        with self._lock:
            n_classes = len(self._classes)
            return self._predict(rows) if n_classes > 1 else np.ones((len(rows), n_classes))

    def predict_proba_one(self, x: Row, **kwargs: Any) -> dict[Any, float]:
        """Probability of each class seen so far."""
        del kwargs
        probabilities = self._probabilities(as_dicts([x]))[0].tolist()
        return dict(zip(self._classes, probabilities, strict=False))

    def predict_one(self, x: Row, **kwargs: Any) -> Any:
        """The most probable class, of equals the one that was seen first; None before any row."""
        probabilities = self.predict_proba_one(x, **kwargs)
        return max(probabilities, key=probabilities.__getitem__) if probabilities else None

    def predict_proba_many(self, X: Any) -> Any:
        """DataFrame of the probability of each class, one row for each row of X."""
        import pandas as pd

        return pd.DataFrame(self._probabilities(_rows_of(X)), index=getattr(X, "index", None), columns=self.classes)

    def predict_many(self, X: Any) -> Any:
        """Series of the most probable classes."""
        import pandas as pd

        best = self._probabilities(_rows_of(X))
        labels = [self.classes[i] for i in best.argmax(axis=1)] if self._classes else [None] * len(best)
        return pd.Series(labels, index=getattr(X, "index", None))


class OnlineForestRegressor(_OnlineForest, MiniBatchRegressor):
    """Numbers for rows that never stop, by random trees averaged over all their prunings.

    Where river is installed this is a river regressor. Targets in a leaf are normal with unknown mean and variance.

    Parameters
    ----------
    n_models, split_prior, max_nodes, half_life, ranges, seed
        As in `OnlineForestClassifier`; a node takes 40 bytes for its statistics.
    prior : (mean, strength, shape, scale) or None
        Of the leaves, as in `Normal`. None takes it from the rows seen, and renews it whenever their number has doubled:
        the mean of the targets, worth `strength` = 0.01 rows, and an expected variance of a tenth of theirs.

    Examples
    --------
    >>> import everytree as et
    >>> model = et.OnlineForestRegressor(seed=1)
    >>> for i in range(300):
    ...     model.learn_one({"hour": i % 24}, 10.0 * (i % 24 > 12))
    >>> round(model.predict_one({"hour": 20}))
    10
    """

    def __init__(
        self,
        n_models: int = 10,
        split_prior: float = 0.5,
        prior: tuple[float, float, float, float] | None = None,
        max_nodes: int | None = 20_000,
        half_life: float | None = None,
        ranges: dict[Hashable, Range] | None = None,
        seed: int = 0,
    ) -> None:
        self.n_models = n_models
        self.split_prior = split_prior
        self.prior = prior
        self.max_nodes = max_nodes
        self.half_life = half_life
        self.ranges = ranges
        self.seed = seed
        self._start(Normal() if prior is None else _normal_of(prior))

    def _target(self, y: Any, where: str) -> float:
        try:
            value = float(y) if not isinstance(y, str | bytes) else None
        except (TypeError, ValueError):
            value = None
        if value is None:
            raise TypeError(f"{where} must be a number, but is {y!r} of type {type(y).__name__}")
        if not abs(value) <= 1e60:
            raise ValueError(f"{where} must be a finite number of at most 1e60 in size, but is {y!r}")
        return value

    def _learn_encoded(self, values: FloatArray, targets: list[Any]) -> None:
        y = np.array([float(target) for target in targets])
        begin = 0
        while begin < len(y):
            end = len(y) if self.prior is not None else min(len(y), begin + self._rows_to_renewal())
            self._trees.learn(values[begin:end], y[begin:end])
            if self.prior is None and self._rows_to_renewal(just_now=True) == 0:
                self._trees.use_family(_prior_of(self._trees))
            begin = end

    def _rows_to_renewal(self, just_now: bool = False) -> int:
        """The prior is renewed after 1, 2, 4, 8, ... rows: amortised, two nodes a row."""
        seen = self._trees.n_rows
        upcoming = 1 << (seen - just_now).bit_length() if seen else 1
        return upcoming - seen

    def predict_one(self, x: Row) -> float:
        """The mean; 0 before any row."""
        return float(self._predict(as_dicts([x]))[0, 0])

    def predict_many(self, X: Any) -> Any:
        """Series of means."""
        import pandas as pd

        return pd.Series(self._predict(_rows_of(X))[:, 0], index=getattr(X, "index", None))


def _normal_of(prior: Any) -> Normal:
    try:
        mean, strength, shape, scale = prior
    except (TypeError, ValueError):
        raise TypeError(f"prior must be (mean, strength, shape, scale) or None, but is {prior!r}") from None
    return Normal(float(mean), float(strength), float(shape), float(scale))


def _prior_of(trees: OnlineTrees) -> Normal:
    """From the statistics at the root, which all trees share: the sums are pairs, and are added without rounding."""
    weight, *pairs = map(Fraction, trees.arrays["statistics"][trees.roots[0, 0]].tolist())
    mean, square = (pairs[0] + pairs[1]) / weight, (pairs[2] + pairs[3]) / weight
    variance = max(float(square - mean * mean), (1e-10 * float(mean)) ** 2, 1e-50)
    return Normal(float(mean), strength=0.01, shape=1.5, scale=0.5 * 0.1 * variance)


def _rows_of(X: Any) -> list[Row]:
    """A DataFrame or several dicts."""
    return as_dicts(X.to_dict("records") if hasattr(X, "to_dict") and not isinstance(X, dict) else X)


def positive(name: str, value: Any, more: str = "") -> None:
    """Refuse what is not a positive finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0.0 < value < math.inf:
        raise ValueError(f"{name} must be a positive number{more}, but is {value!r}")
