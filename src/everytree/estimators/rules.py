"""Types, descriptions and checks of all parameters of estimators."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, get_args

import numpy as np
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from everytree.base.checks import is_auto, positive_number, resolve_n_jobs, whole_number
from everytree.base.errors import ArgumentError
from everytree.base.words import nearest
from everytree.estimators.parameters import Check, Rule
from everytree.families.registry import NUMBER_FAMILIES, boosted_families
from everytree.fitting.structures.origin import Weights
from everytree.fitting.targets.class_weight import check_class_weight
from everytree.structure.grow_on import CLASS_CRITERIA, NUMBER_CRITERIA
from everytree.structure.growers import GROWERS

# ---- checks ---------------------------------------------------------------------------------------------------------


def anything(name: str, value: Any) -> None:
    """For what is checked where it is used."""


def whole(low: int, high: int | None = None) -> Check:
    return lambda name, value: whole_number(name, value, low, high)


def or_none(check: Check) -> Check:
    return lambda name, value: None if value is None else check(name, value)


def or_auto(check: Check) -> Check:
    return lambda name, value: None if is_auto(value) else check(name, value)


def share(name: str, value: Any, must: str = "must be in (0, 1]") -> None:
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not (is_number and 0.0 < value <= 1.0):
        raise ArgumentError(name, f"{must}, but is {value!r}")


def flag(name: str, value: Any) -> None:
    if not isinstance(value, bool | np.bool_):
        raise ArgumentError(name, f"must be True or False, but is {value!r}")


def one_of(known: Collection[str]) -> Check:
    def check(name: str, value: Any) -> None:
        if not isinstance(value, str) or value not in known:
            like = nearest(value, known) if isinstance(value, str) else ""
            raise ArgumentError(name, f"must be one of {list(known)}, but is {value!r}" + (f"; {like}" if like else ""))

    return check


def _one_of_families(known: Callable[[], Iterable[str]]) -> Check:
    """A check that a value is the name of a family, those registered later among them, or "auto"."""
    return lambda name, value: one_of([*known(), "auto"])(name, value)


def auto_or_none(name: str, value: Any) -> None:
    if value is not None and not is_auto(value):
        raise ArgumentError(name, f"must be 'auto' or None, but is {value!r}")


def _number_or_function(name: str, value: Any) -> None:
    if isinstance(value, str) and value != "auto":
        raise ArgumentError(name, f"must be 'auto', a number or a function of depth, but is {value!r}")


def _prior(name: str, value: Any) -> None:
    if not (isinstance(value, dict) or is_auto(value)):
        raise ArgumentError(name, f"must be 'auto' or a dict of parameters, but is {value!r}")


def _rows_of_a_leaf(name: str, value: Any) -> None:
    positive_number(name, value)
    if isinstance(value, float | np.floating) and not value < 1.0:
        raise ArgumentError(name, f"must be a whole number of rows or a share below 1, but is {value!r}")


def _rows_of_a_leaf_or_auto(name: str, value: Any) -> None:
    if not is_auto(value):
        _rows_of_a_leaf(name, value)


def _columns_of_a_node(name: str, value: Any) -> None:
    if value is None or (isinstance(value, str) and value in ("auto", "sqrt", "log2")):
        return
    is_number = isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= 1
    is_share = isinstance(value, float | np.floating) and 0.0 < value <= 1.0
    if not (is_number or is_share):
        must = "must be 'auto', 'sqrt', 'log2', None, a number of columns or a share of them in (0, 1]"
        raise ArgumentError(name, f"{must}, but is {value!r}")


def _true_or_score(name: str, value: Any) -> None:
    if not isinstance(value, bool | np.bool_) and not callable(value):
        raise ArgumentError(name, f"must be True, False or a function of y and predictions, but is {value!r}")


def _grower(name: str, value: Any) -> None:
    """A known name, or something that scikit-learn can clone and fit."""
    if isinstance(value, str):
        if value not in GROWERS:
            raise ArgumentError(name, f"must be one of {sorted(GROWERS)} or a scikit-learn forest, but is {value!r}")
        return
    known = (
        DecisionTreeClassifier, DecisionTreeRegressor, RandomForestClassifier, RandomForestRegressor,
        ExtraTreesClassifier, ExtraTreesRegressor, BaggingClassifier, BaggingRegressor,
    )  # fmt: skip
    if isinstance(value, type) and issubclass(value, known):
        raise TypeError(f"{name} must be an instance of scikit-learn estimator instead of a class: {value.__name__}()")
    if not isinstance(value, known):
        raise TypeError(
            f"{name} must be one of {sorted(GROWERS)}, or a tree, a forest or a bagging of trees of scikit-learn's, "
            f"not {value!r}"
        )


# ---- rules of all estimators ----------------------------------------------------------------------------------------

MAX_BINS = Rule("int", "Maximum number of codes of a column of numbers; above 255 they take two bytes.", anything)
FEW_BINS = Rule(
    "int", "Maximum number of codes of a column of numbers; the cut points are those that say most about the target.",
    whole(2, 255),
)  # fmt: skip
CATEGORICAL_FEATURES = Rule(
    '"from_dtype", None or sequence',
    """Which columns are categories: those of text or a categorical type, none, or those with these names or positions.
    Text of which every value is a number or a date is read as such, with a warning, unless it is named here.""",
    anything,
)
RELATIVE_WEIGHTS = Rule(
    "bool",
    """Meaning of `sample_weight`. False: counts, so that a row of weight 2 is a row seen twice. True: relative
    importance; weights are multiplied by one factor so that those of the first `fit` sum to its number of rows.""",
    flag,
)
N_JOBS = Rule("int or None", "Threads; the result does not depend on it.", lambda name, value: resolve_n_jobs(value))
RANDOM_STATE = Rule("int, RandomState or None", "", anything)
VERBOSE = Rule("int", "Above 0, progress is shown.", anything)
CLASS_WEIGHT = Rule(
    'dict, list of dicts, "balanced", "balanced_subsample" or None',
    """Weights of the classes, by which the weights of rows are multiplied; a class that is not named has weight 1. Of
    several outputs, one dict for each in a list, and the weights of a row's classes are multiplied. "balanced" gives
    all classes the same total weight, as scikit-learn's `compute_sample_weight` does. Every tree counts all rows, so
    that "balanced_subsample" is the same here. `partial_fit` takes a dict only.""",
    lambda name, value: check_class_weight(value),
)

# ---- rules of leaves ------------------------------------------------------------------------------------------------

SPLIT_PRIOR = Rule('"auto", float or callable', "Prior probability that a node is split.", _number_or_function)
GIVEN_SPLIT_PRIOR = Rule("float or callable", "Prior probability that a region is split.", anything)
ALPHA = Rule(
    '"auto" or float', "Rows that the prior of a leaf is worth, for each class; its mean is the class frequencies.",
    anything,
)  # fmt: skip
GIVEN_ALPHA = Rule("float", "Dirichlet concentration of each class in a leaf.", anything)
FAMILY = Rule(
    f"{{{', '.join(map(repr, [*NUMBER_FAMILIES, 'auto']))}}}".replace("'", '"'),
    """Leaf model of the target: a measurement, a measurement that is linear in the columns of numbers, a count (with
    `exposure`), a time (with `censored`), a number of failures before a success, a positive number whose logarithm
    is a measurement, a time with a survival curve of any shape (with `event`), or a number of any shape; counts that
    vary more than their mean (with `exposure`), positive amounts, times at a rate that rises or falls (with
    `censored`), and 0 or one of these. "auto" takes the best of those that the targets allow on rows left out;
    `family_` is its name.""",
    _one_of_families(lambda: NUMBER_FAMILIES),
)
BOOSTED_FAMILY = Rule(
    f"{{{', '.join(map(repr, [*boosted_families(), 'auto']))}}}".replace("'", '"'),
    """Of the targets about their centres: what boosting predicts is the mean of a normal, the mean of the logarithm of
     a lognormal, a gamma, or the logarithm of the rate of counts, of times or of the events of a survival curve.
     Histograms have that of a normal as a column.""",
    _one_of_families(boosted_families),
)
PRIOR = Rule(
    '"auto" or dict',
    """Parameters of the leaf prior to fix; those not named are chosen. normal: `strength` and `shape` (rows that the
    prior mean and variance are worth) and `noise` (variance in a leaf as a share of that of y); lognormal: `strength`
    and `noise`, of logarithms; histogram: `strength`; negative_binomial, gamma, weibull: `strength` and `likely_shape`;
    hurdles: those of their amounts and `zeros` (rows that the prior share of zeros is worth); linear: `precision`,
    `shape`, `noise`; the others: `shape` (events or rows the prior is worth).""",
    _prior,
)
GIVEN_PRIOR = Rule(
    '"auto" or dict',
    "Parameters of the leaf prior to fix, as in `MetaForestRegressor`; those not named have defaults, centred on the "
    "data.",
    _prior,
)

# ---- rules of trees -------------------------------------------------------------------------------------------------

N_ESTIMATORS = Rule("int", "Number of trees of the forest.", whole(1))
GROWER = Rule(
    '{"mixed", "random_forest", "extra_trees"} or scikit-learn forest',
    """How splits are chosen: half best splits and half random ones, one kind alone, or an unfitted forest of yours,
    which is then fitted on the codes of the columns.""",
    _grower,
)
MAX_DEPTH = Rule("int or None", "Maximum depth of a tree.", or_none(whole(1)))
MIN_SAMPLES_LEAF = Rule(
    "int or float",
    """Minimum number of rows of a leaf, or their share of all. Leaves of one row are overconfident.""",
    _rows_of_a_leaf,
)
MIN_SAMPLES_LEAF_OF_FORESTS = Rule(
    'int, float or "auto"',
    """Minimum number of rows of a leaf, or their share of all. "auto" is 1; for noisy numbers in tables of more than
    10,000 rows it is 2, since smaller leaves take twice the time and memory there and do not predict better.""",
    _rows_of_a_leaf_or_auto,
)
MAX_FEATURES = Rule(
    'int, float, {"auto", "sqrt", "log2"} or None',
    """Columns that a split is chosen from: a number, a share, the square root or the logarithm of their number, or all.
    "auto" differs from tree to tree: the square root for best splits; the square root, half or all for random ones.""",
    _columns_of_a_node,
)
SUBSAMPLE = Rule(
    "float",
    """Share of the rows on which each tree is grown, without replacement. All rows count in its statistics; the rows it
    was not grown on are used to choose priors.""",
    share,
)
WEIGHTS = Rule(
    '{"tempered", "uniform", "stacking", "evidence"}',
    """Weights of the trees. Tempered ones are proportional to a power of the evidence, from 0 (uniform) to 1, which is
    chosen by rows unseen by the trees. Evidence itself puts nearly all weight on one tree, since trees were grown on
    the same targets; it is there for comparison.""",
    one_of(get_args(Weights)),
)
CALIBRATION = Rule(
    '"auto" or None',
    """Whether the average of the trees is sharpened (the inverse of temperature scaling), by a power that is chosen on
    rows unseen by the trees. Of numbers, whether it is narrowed around its mean by such a factor; for families normal
    and linear.""",
    auto_or_none,
)
CLASS_CRITERION = Rule(
    '{"gini", "entropy", "log_loss", "evidence"}',
    'By which splits are chosen; "log_loss" is another name of "entropy", "evidence" is that of the leaves.',
    one_of(list(CLASS_CRITERIA)),
)
NUMBER_CRITERION = Rule(
    '{"squared_error", "evidence"}',
    """By which splits are chosen: the squared error of means (of rates for counts, of logarithms for lognormal), or the
    evidence of the leaves of the family. Linear leaves gain most by "evidence", at the cost of a slower fit.""",
    one_of(list(NUMBER_CRITERIA)),
)
MAX_LEAF_NODES = Rule(
    "int or None", "Each tree is grown best split first, until it has this many leaves; at least 2.",
    or_none(whole(2)),
)  # fmt: skip
BOOTSTRAP = Rule(
    "bool",
    """Whether each tree is grown on as many rows as there are, drawn with replacement, instead of `subsample` of them.
    A row that is drawn twice counts twice, also for `min_samples_leaf`.""",
    flag,
)
OOB_SCORE = Rule(
    "bool or callable",
    """Whether to predict each row of `fit` by the trees that were not grown on it, and to score that: by the accuracy;
    for numbers by R2, or for families exponential and geometric by the mean log score, as in `score`; or by a function
    of the true and the predicted class numbers, or of the targets and the predicted means.""",
    _true_or_score,
)
WARM_START = Rule(
    "bool",
    """Whether a further `fit` to the same rows with more `n_estimators` keeps the trees there are and grows the rest.
    Priors are chosen anew over all trees: the result is that of all trees at once. A model that was read from a file
    grows all trees again.""",
    flag,
)
MONOTONIC_CST = Rule(
    "(n_features,) array_like, dict or None",
    """Columns of numbers or dates with which predictions must rise (1) or fall (-1); 0 for all others. A dict names
    some of them: `{"age": 1}`. Means, quantiles and the probability of the second of two classes are rearranged to be
    monotone; of several classes, lines and several outputs it is refused. A prediction costs that of all values of the
    column, of up to 1024 points of a grid of several; see `docs/monotone.md`.""",
    anything,
)

# ---- rules of boosting ----------------------------------------------------------------------------------------------

MAX_ITER = Rule(
    "int",
    "Maximum number of steps of a chain. A step adds one tree, or one for each of more than two classes.",
    whole(1),
)
LEARNING_RATE = Rule(
    'float or "auto"',
    'Share of a tree\'s values that a step adds. "auto" is 0.08 up to 5,000 rows and grows to 0.32 with 110,000.',
    or_auto(positive_number),
)
N_CHAINS = Rule("int", "Number of chains; each row is left out by one of them. At least 2.", whole(2))
LEAVES_OF_BOOSTED = Rule(
    'int or "auto"', 'Of each tree. "auto" is 16 up to 5,000 rows and grows to 64.', or_auto(whole(2))
)
DEPTH_OF_BOOSTED = Rule(
    'int, None or "auto"', 'Maximum depth of each tree. "auto" is 6 up to 5,000 rows and grows to 8.',
    or_none(or_auto(whole(1))),
)  # fmt: skip
ROWS_OF_LEAF_OF_BOOSTED = Rule("int", "Minimum number of rows of a leaf.", whole(1))
ROWS_OF_BOOSTED = Rule("float", "Share of the rows by which the splits of a tree are chosen.", share)
COLUMNS_OF_BOOSTED = Rule(
    'float or "auto"',
    """Share of the columns from which the splits of a tree are chosen. "auto" is 0.5, or 1 where that predicts
    out-of-fold rows clearly better: an interaction of two columns is seen by trees that have both. Tables of up to
    1,000 rows keep 0.5.""",
    or_auto(share),
)
GENERATE = Rule(
    '"auto" or None',
    """With "auto", sums, differences, products and ratios of the six columns of numbers that matter most are columns
    too, where short chains of trees predict out-of-fold rows clearly better with them: `schema_.feature_words`.""",
    auto_or_none,
)
LINES_OF_BOOSTED = Rule(
    "bool",
    """Whether nodes of boosted trees are lines in columns of numbers where their evidence is larger than that of a
    constant. A model with lines is not exported as plain trees.""",
    flag,
)
SPLIT_PRIOR_OF_BOOSTED = Rule(
    'float or "auto"',
    """Prior probability that a node is split; with 1, nothing is averaged over prunings. "auto" is 0.8, or 0.99 where
    that predicts the rows that stop a chain clearly better: targets that hardly have any noise.""",
    or_auto(share),
)
N_ITER_NO_CHANGE = Rule(
    'int or "auto"',
    """A chain ends when so many steps have not improved the rows that it stops by. "auto" is 50 up to 5,000 rows and
    falls to 12.""",
    or_auto(whole(1)),
)
N_RESIDUAL_TREES = Rule(
    "int",
    """Trees of the forest that models the residuals of out-of-fold predictions. They take most of the time of a fit;
    intervals hardly change from some 30 on.""",
    whole(1),
)
CALIBRATION_OF_BOOSTED = Rule(
    '"auto" or None',
    "Whether the average of the chains is sharpened or flattened (temperature scaling), by the rows that they left "
    "out.",
    auto_or_none,
)

# ---- rules of sums over structures ----------------------------------------------------------------------------------

DEPTH_OF_SUM = Rule("int", "Maximum depth of the trees that are summed over.", whole(0, 64))
CANDIDATES = Rule(
    '"all" or "nontrivial"', "Every split a region's codes allow, or only those that separate its rows.", anything
)
MAX_CUTS = Rule(
    "int",
    """Maximum number of cut points over all columns; the number of regions grows with its power `max_depth`.""",
    whole(1),
)
TRUNCATION = Rule("float", "Posterior mass that predictions may leave out.", anything)
MAX_REGIONS = Rule("int", "Fits that can need more regions are refused beforehand.", anything)
N_DRAWS = Rule("int", "Draws of each chain after the burn-in, which is half as long.", whole(1))
N_CHAINS_OF_DRAWS = Rule("int", "Number of chains.", whole(1))
N_STRUCTURES = Rule("int", "Approximate number of structures that are kept.", whole(1))
TEMPERATURE = Rule(
    'float or "auto"',
    """Power of the evidence by which structures are drawn: 1 is the posterior; with less, more of them count. "auto"
    compares some by rows that are left out for that. A tempered posterior is no probability of structures given the
    data; it is a weighting that may predict better.""",
    or_auto(lambda name, value: share(name, value, "must be 'auto' or a power above 0 and at most 1")),
)
