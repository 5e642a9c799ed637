"""The models that are compared, each at its defaults; only seeds, threads and verbosity are set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module, metadata

import numpy as np
import pandas as pd
from scipy.integrate import cumulative_trapezoid
from sklearn.base import BaseEstimator, clone
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from scores import COVERAGE, ENDS, LEVELS, Forecast, Normal, Point, Quantiles

Frame = pd.DataFrame
Classify = Callable[[Frame, np.ndarray, Frame], np.ndarray]
Regress = Callable[[Frame, np.ndarray, Frame], Forecast]
Encode = Callable[[Frame, Frame], tuple[Frame, Frame]]


@dataclass(frozen=True)
class Peer:
    """A model: fitted to a training fold, it answers for a test fold with probabilities or with a forecast."""

    name: str
    module: str
    classify: Classify | None = None
    regress: Regress | None = None

    def problem(self) -> str | None:
        """Say why the model cannot be used, if it cannot."""
        try:
            import_module(self.module)
        except Exception as error:  # whatever an import may raise: the model is left out, the others are run
            return f"{self.module} cannot be imported ({type(error).__name__}: {error})"
        if self.classify is None and self.regress is None:
            return f"{self.module} {self.version()} does not have it"
        return None

    def version(self) -> str:
        """Return the version of the library the model is from."""
        return metadata.version(_distributions().get(self.module, [self.module])[0])


@cache
def _distributions() -> Mapping[str, list[str]]:
    """Read once which installed distribution brings which module."""
    return metadata.packages_distributions()


def as_it_is(train: Frame, test: Frame) -> tuple[Frame, Frame]:
    """Leave categories and missing values to the model."""
    return train, test


def named_missing(train: Frame, test: Frame) -> tuple[Frame, Frame]:
    """Give missing categories a name, for a model that takes text but nothing missing in it."""
    return _text(train), _text(test)


def one_hot(train: Frame, test: Frame) -> tuple[Frame, Frame]:
    """Give numbers beside zeros and ones, with what is missing filled in."""
    numbers, flags = medians_filled(train, test), zeros_and_ones(train, test)
    return pd.concat([numbers[0], flags[0]], axis=1), pd.concat([numbers[1], flags[1]], axis=1)


def medians_filled(train: Frame, test: Frame) -> tuple[Frame, Frame]:
    """Take the numeric columns, with the training fold's median where a value is missing."""
    numbers = train.select_dtypes("number").astype(float)
    medians = numbers.median()
    return numbers.fillna(medians), test[numbers.columns].astype(float).fillna(medians)


def zeros_and_ones(train: Frame, test: Frame) -> tuple[Frame, Frame]:
    """Take the categories of the training fold, a column each; what is missing is a category of its own."""
    words = train.select_dtypes("category").columns
    if words.empty:
        return train[words], test[words]
    flags, others = (pd.get_dummies(_text(fold[words]), dtype=float) for fold in (train, test))
    return flags, others.reindex(columns=flags.columns, fill_value=0.0)


def _text(frame: Frame) -> Frame:
    """Turn categories into text."""
    words = {
        name: frame[name].astype(object).where(frame[name].notna(), "(missing)")
        for name in frame.select_dtypes("category").columns
    }
    return frame.assign(**words)


def _probabilities(
    module: str, name: str, encode: Encode, settings: dict, train: Frame, y: np.ndarray, test: Frame
) -> np.ndarray:
    """Fit a classifier of the scikit-learn kind and return its class probabilities."""
    X, X_test = encode(train, test)
    return getattr(import_module(module), name)(**settings).fit(X, y).predict_proba(X_test)


def _point(module: str, name: str, encode: Encode, settings: dict, train: Frame, y: np.ndarray, test: Frame) -> Point:
    """Fit a regressor of the scikit-learn kind and return its prediction."""
    X, X_test = encode(train, test)
    return Point(getattr(import_module(module), name)(**settings).fit(X, y).predict(X_test))


def _usual(name: str, module: str, stem: str, encode: Encode, **settings: object) -> Peer:
    """Describe a library with a classifier and a regressor of the scikit-learn kind."""
    root = module.split(".")[0]
    return Peer(
        name,
        root,
        partial(_probabilities, module, f"{stem}Classifier", encode, settings),
        partial(_point, module, f"{stem}Regressor", encode, settings),
    )


def _catboost(name: str, train: Frame) -> object:
    """Make a CatBoost model that knows which columns are categories."""
    words = list(train.select_dtypes("category").columns)
    model = getattr(import_module("catboost"), name)
    return model(random_seed=0, thread_count=1, verbose=False, allow_writing_files=False, cat_features=words)


def _catboost_classes(train: Frame, y: np.ndarray, test: Frame) -> np.ndarray:
    """Fit CatBoost and return its class probabilities."""
    X, X_test = named_missing(train, test)
    return _catboost("CatBoostClassifier", train).fit(X, y).predict_proba(X_test)


def _catboost_numbers(train: Frame, y: np.ndarray, test: Frame) -> Point:
    """Fit CatBoost and return its prediction."""
    X, X_test = named_missing(train, test)
    return Point(_catboost("CatBoostRegressor", train).fit(X, y).predict(X_test))


def _shrunk_classes(train: Frame, y: np.ndarray, test: Frame) -> np.ndarray:
    """Fit imodels' shrunk tree; its default tree is given only to give it a seed."""
    X, X_test = one_hot(train, test)
    tree = DecisionTreeClassifier(max_leaf_nodes=20, random_state=0)
    model = import_module("imodels").HSTreeClassifierCV(estimator_=tree)
    return model.fit(X.to_numpy(), y).predict_proba(X_test.to_numpy())


def _shrunk_numbers(train: Frame, y: np.ndarray, test: Frame) -> Point:
    """Fit imodels' shrunk regression tree, seeded likewise."""
    X, X_test = one_hot(train, test)
    tree = DecisionTreeRegressor(max_leaf_nodes=20, random_state=0)
    model = import_module("imodels").HSTreeRegressorCV(estimator_=tree)
    return Point(model.fit(X.to_numpy(), y).predict(X_test.to_numpy()))


def _seeded_base() -> BaseEstimator:
    """Give NGBoost's default tree a seed, as it does not do so by itself."""
    return clone(import_module("ngboost.learners").default_tree_learner).set_params(random_state=0)


def _ngboost_classes(train: Frame, y: np.ndarray, test: Frame) -> np.ndarray:
    """Fit NGBoost, whose default of two classes has to be changed for more."""
    X, X_test = one_hot(train, test)
    n_classes = int(y.max()) + 1
    more = {} if n_classes == 2 else {"Dist": import_module("ngboost.distns").k_categorical(n_classes)}
    model = import_module("ngboost").NGBClassifier(Base=_seeded_base(), random_state=0, verbose=False, **more)
    return model.fit(X.to_numpy(), y).predict_proba(X_test.to_numpy())


def _ngboost_numbers(train: Frame, y: np.ndarray, test: Frame) -> Normal:
    """Fit NGBoost and return its normal distribution."""
    X, X_test = one_hot(train, test)
    model = import_module("ngboost").NGBRegressor(Base=_seeded_base(), random_state=0, verbose=False)
    normal = model.fit(X.to_numpy(), y).pred_dist(X_test.to_numpy())
    return Normal(normal.params["loc"], normal.params["scale"])


def _quantile_forest(train: Frame, y: np.ndarray, test: Frame) -> Quantiles:
    """Fit a quantile regression forest and ask for all quantiles that are scored."""
    X, X_test = one_hot(train, test)
    model = import_module("quantile_forest").RandomForestQuantileRegressor(random_state=0, n_jobs=1).fit(X, y)
    quantiles = model.predict(X_test, quantiles=[*LEVELS, *ENDS])
    return Quantiles(model.predict(X_test, quantiles="mean"), quantiles[:, : len(LEVELS)], quantiles[:, len(LEVELS) :])


def _bayesml(submodel: str, constants: dict, train: Frame, y: np.ndarray, test: Frame) -> object:
    """Fit BayesML's meta-tree forest, which takes numbers beside zeros and ones, and show it the test fold."""
    numbers, flags = medians_filled(train, test), zeros_and_ones(train, test)
    model = import_module("bayesml.metatree").LearnModel(
        c_dim_continuous=numbers[0].shape[1],
        c_dim_categorical=flags[0].shape[1],
        SubModel=import_module(f"bayesml.{submodel}"),
        sub_constants=constants,
    )
    model.fit(numbers[0].to_numpy(), flags[0].to_numpy(int), y, alg_type="MTRF", random_state=0, n_jobs=1)
    _forget_unlikely_trees(model)
    return model.calc_pred_dist(numbers[1].to_numpy(), flags[1].to_numpy(int))


def _forget_unlikely_trees(model: object) -> None:
    """Drop trees whose posterior probability is next to nothing: they cost time and change no digit shown."""
    likely = model.hn_metatree_prob_vec > 1e-12
    model.hn_metatree_list = [tree for tree, keep in zip(model.hn_metatree_list, likely, strict=True) if keep]
    model.hn_metatree_prob_vec = model.hn_metatree_prob_vec[likely] / model.hn_metatree_prob_vec[likely].sum()


def _bayesml_classes(train: Frame, y: np.ndarray, test: Frame) -> np.ndarray:
    """Fit BayesML with the family that the number of classes asks for."""
    n_classes = int(y.max()) + 1
    family = ("bernoulli", {}) if n_classes == 2 else ("categorical", {"c_degree": n_classes})
    return _bayesml(*family, train, y, test).make_prediction(loss="KL")


@dataclass(frozen=True)
class _WithDensity(Quantiles):
    """A forecast of quantiles by a model that has a density as well."""

    model: object

    def log_prob(self, y: np.ndarray) -> np.ndarray:
        """Return the logarithm of the density."""
        return np.log(self.model.calc_pred_density(y))


def _bayesml_numbers(train: Frame, y: np.ndarray, test: Frame) -> _WithDensity:
    """Integrate BayesML's density over a grid three times as wide as the targets, to have its quantiles."""
    model = _bayesml("normal", {}, train, y, test)
    grid = np.linspace(2 * y.min() - y.max(), 2 * y.max() - y.min(), 1001)
    cdf = cumulative_trapezoid(model.calc_pred_density(grid[:, None]), grid, axis=0, initial=0)
    cdf += (1 - cdf[-1]) / 2  # the little mass beyond the grid, half of it on each side
    quantiles, ends = (np.array([np.interp(levels, row, grid) for row in cdf.T]) for levels in (LEVELS, ENDS))
    return _WithDensity(model.make_prediction(loss="squared"), quantiles, ends, model)


@dataclass(frozen=True)
class _Predictive:
    """A forecast of everytree."""

    predictive: object
    ends: np.ndarray

    def mean(self) -> np.ndarray:
        """Return the mean."""
        return self.predictive.mean()

    def crps(self, y: np.ndarray) -> np.ndarray:
        """Return the score the library computes."""
        return self.predictive.crps(y)

    def log_prob(self, y: np.ndarray) -> np.ndarray:
        """Return the logarithm of the density."""
        return self.predictive.log_prob(y)

    def interval(self) -> np.ndarray:
        """Return the interval."""
        return self.ends


def _ours(stem: str) -> Peer:
    """Describe an estimator of everytree, as far as there is one."""
    try:
        library = import_module("everytree")
    except ImportError:
        library = None
    classifier, regressor = (getattr(library, f"{stem}{kind}", None) for kind in ("Classifier", "Regressor"))

    def classify(train: Frame, y: np.ndarray, test: Frame) -> np.ndarray:
        return classifier(random_state=0).fit(train, y).predict_proba(test)

    def regress(train: Frame, y: np.ndarray, test: Frame) -> _Predictive:
        model = regressor(random_state=0).fit(train, y)
        return _Predictive(model.predictive(test), model.predict_interval(test, coverage=COVERAGE))

    return Peer(f"everytree {stem}", "everytree", classify if classifier else None, regress if regressor else None)


def _plain_forest(train: Frame, y: np.ndarray, test: Frame) -> np.ndarray:
    """The structures of MetaForestClassifier(random_state=0) as an ordinary forest: frequencies in the leaves."""
    library, growers = import_module("everytree"), import_module("everytree.structure.growers")
    classes, target = np.unique(y, return_inverse=True)
    order = np.eye(len(classes))[target] if len(classes) > 2 else target.astype(float)
    schema = library.Schema.fit(train, order)
    codes = schema.encode(train)
    seeds = np.random.RandomState(0).randint(np.iinfo(np.int32).max, size=100).tolist()
    has_missing = np.array([column.has_missing for column in schema.columns])
    known = {"n_codes": schema.n_codes, "has_missing": has_missing}
    grown = growers.grow(codes, target, None, growers.Growth(), 100, **known, seeds=seeds)
    leaves = library.Categorical(len(classes), 1e-12)
    trees = [library.Posterior(g.tree, leaves, 1.0).update(codes[g.in_bag], target[g.in_bag]) for g in grown]
    return library.Forest(trees, n_codes=schema.n_codes).probs(schema.encode(test))


def peers() -> list[Peer]:
    """List the models in the order they are reported."""
    seeded = {"random_state": 0, "n_jobs": 1}
    return [
        _ours("MetaForest"),
        _ours("MetaTree"),
        Peer("MetaForest's trees, plain", "everytree", _plain_forest, None),
        _usual("RandomForest", "sklearn.ensemble", "RandomForest", one_hot, **seeded),
        _usual("ExtraTrees", "sklearn.ensemble", "ExtraTrees", one_hot, **seeded),
        _usual("HistGradientBoosting", "sklearn.ensemble", "HistGradientBoosting", as_it_is, random_state=0),
        _usual("LightGBM", "lightgbm", "LGBM", as_it_is, verbosity=-1, **seeded),
        _usual("XGBoost", "xgboost", "XGB", as_it_is, enable_categorical=True, verbosity=0, **seeded),
        Peer("CatBoost", "catboost", _catboost_classes, _catboost_numbers),
        Peer("HSTree (CV)", "imodels", _shrunk_classes, _shrunk_numbers),
        Peer("NGBoost", "ngboost", _ngboost_classes, _ngboost_numbers),
        Peer("quantile-forest", "quantile_forest", None, _quantile_forest),
        Peer("BayesML MTRF", "bayesml", _bayesml_classes, _bayesml_numbers),
        _usual("WildWood", "wildwood", "Forest", as_it_is, **seeded),
    ]
