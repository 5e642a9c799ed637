"""Parameters of other libraries' trees that estimators here do not have, and what takes their place."""

from __future__ import annotations

from collections.abc import Collection

from everytree.base.words import nearest

SAME = {
    "bagging_fraction": "subsample",
    "cat_features": "categorical_features",
    "categorical_feature": "categorical_features",
    "colsample_bylevel": "max_features",
    "colsample_bynode": "max_features",
    "colsample_bytree": "max_features",
    "depth": "max_depth",
    "eta": "learning_rate",
    "feature_fraction": "max_features",
    "is_unbalance": "class_weight",
    "iterations": "max_iter",
    "loss": "family",
    "max_bin": "max_bins",
    "max_iter": "n_estimators",
    "max_samples": "subsample",
    "min_child_samples": "min_samples_leaf",
    "min_data_in_leaf": "min_samples_leaf",
    "n_estimators": "max_iter",
    "nthread": "n_jobs",
    "num_iterations": "max_iter",
    "num_leaves": "max_leaf_nodes",
    "num_threads": "n_jobs",
    "objective": "family",
    "random_seed": "random_state",
    "rsm": "max_features",
    "scale_pos_weight": "class_weight",
    "seed": "random_state",
    "thread_count": "n_jobs",
    "verbosity": "verbose",
}
"""Names for what has another name here."""

_PRUNED = "every pruning of a tree is averaged, so that none has to be chosen"
_STOPPED = "chains always stop by rows that they were not boosted on"
_CHOSEN = "priors of leaves are chosen by rows that the trees had not seen"
NOT_NEEDED = {
    "ccp_alpha": _PRUNED,
    "min_impurity_decrease": _PRUNED,
    "min_samples_split": _PRUNED,
    "min_weight_fraction_leaf": _PRUNED,
    "early_stopping": _STOPPED,
    "early_stopping_rounds": _STOPPED,
    "n_iter_no_change": _STOPPED,
    "validation_fraction": _STOPPED,
    "l2_leaf_reg": _CHOSEN,
    "l2_regularization": _CHOSEN,
    "lambda_l2": _CHOSEN,
    "reg_lambda": _CHOSEN,
    "learning_rate": "it is for boosting, MetaBoost* and MetaEnsemble*",
    "max_iter": "it is for boosting, MetaBoost* and MetaEnsemble*",
    "n_estimators": "it is for forests, MetaForest*",
}
"""Names for what nothing here has to be told, and why."""


def unknown_parameter(owner: str, name: str, known: Collection[str]) -> str:
    """The sentence for a parameter that an estimator does not have."""
    same = SAME.get(name)
    if same in known:
        advice = f"it is called {same} here"
    elif name in NOT_NEEDED:
        advice = NOT_NEEDED[name]
    else:
        advice = nearest(name, known) or f"there are {', '.join(known)}"
    return f"{owner} has no parameter {name!r}: {advice}"
