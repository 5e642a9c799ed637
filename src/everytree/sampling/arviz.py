"""Draws as ArviZ takes them."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import Any

import numpy as np

from everytree.sampling.draws import Draws


def inference_data(draws: Draws, acceptance: Mapping[str, float]) -> Any:
    """Make ArviZ's `InferenceData`, from ArviZ 1.0 on a `DataTree`, of draws and the shares of accepted proposals."""
    try:
        import arviz
    except ImportError as error:
        raise ImportError("to_arviz() needs ArviZ: pip install everytree[arviz]") from error
    shape = draws.log_evidence.shape
    groups = {
        "posterior": {"n_leaves": draws.n_leaves, "used": draws.used, "root_column": draws.root_column},
        "sample_stats": {
            "lp": draws.log_evidence,
            **{f"acceptance_{name}": np.full(shape, rate) for name, rate in acceptance.items()},
        },
    }
    if "posterior" in signature(arviz.from_dict).parameters:  # before ArviZ 1.0
        return arviz.from_dict(**groups, dims={"used": ["column"]})
    return arviz.from_dict(groups, dims={"used": ["column"]})
