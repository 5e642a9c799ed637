"""Out-of-core fits: structures and priors from a sample of the rows, statistics from all of them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from everytree.base.errors import ArgumentError
from everytree.batches.batch import Roles
from everytree.batches.passes import BatchPasses, Passes
from everytree.batches.sketch import SchemaSketch
from everytree.batches.sources import is_dask, open_source
from everytree.batches.two_passes import count_all, given_rows, scan_labels
from everytree.fitting.fit import fit_sample
from everytree.fitting.targets.target import Labels
from everytree.fitting.targets.weights import TotalWeight


def fit_batches(model: Any, batches: Any, roles: Roles, sample_rows: int) -> None:
    """Fit an estimator in two passes; see `MetaEstimator.fit_batches`."""
    model._check_parameters()
    _two_passes(model, _passes(model, batches, roles), sample_rows)
    model.fitted_ = replace(model.fitted_, groups=roles.row_data.get("groups"), target_name=roles.target)


def _passes(model: Any, batches: Any, roles: Roles) -> Passes:
    """Return both passes: here, or on a cluster where batches are collections of Dask."""
    owner = type(model).__name__
    if is_dask(batches):
        from everytree.batches.dask_parts import Partitions
        from everytree.batches.dask_passes import DaskPasses

        return DaskPasses(Partitions.of(batches, roles), owner, model.n_jobs)
    return BatchPasses(open_source(batches), roles, owner, model.n_jobs, bool(model.verbose))


def _two_passes(model: Any, passes: Passes, sample_rows: int) -> None:
    """Fit the sample that the first pass keeps, then count all rows in a second pass."""
    model._check_incremental("a fit of batches")
    if getattr(model, "class_weight", None) is not None:
        must = "is for fit and partial_fit; name a column of weights by sample_weight instead"
        raise ArgumentError("class_weight", must)
    if model.structures_ is not None:
        raise ValueError("the structures were imported, and passes over batches would grow others; use partial_fit")
    settings = replace(model._settings(), owner=passes.owner)
    target = model.target_before_fit()

    def note(labels: Labels) -> None:
        """Add the classes of one more batch."""
        nonlocal target
        if labels is not None:
            target = target.with_labels(labels)

    sketch = SchemaSketch(
        max_bins=model.max_bins, categorical_features=model.categorical_features, sample_rows=sample_rows,
        owner=passes.owner,
    )  # fmt: skip
    sketch = passes.sketch(sketch, partial(scan_labels, target=target), note)
    given, of_all = given_rows(sketch), None
    if not sketch.is_complete:
        of_all = TotalWeight(sketch.total_weight, sketch.n_rows)
    learnt, y = target.learn(target.read(given.y), None)
    fitted, scored_by = fit_sample(
        given, learnt, model._structure(), settings, schema=sketch.schema(learnt.order_by(y)), of_all=of_all
    )
    if not sketch.is_complete:
        fitted = count_all(passes, fitted, settings, sketch.rule)
        fitted = replace(fitted, unseen=scored_by(fitted.model.parts.averaged))
    model._keep(fitted, given.X)
    model._keep_early(None)
