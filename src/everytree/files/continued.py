"""Trees that are summed over near the root and go on below as they were grown."""

from __future__ import annotations

import numpy as np

from everytree.exact.continued import ContinuedForest
from everytree.exact.posterior import ExactPosterior
from everytree.exact.top_columns import TopColumns
from everytree.files.sections import Reader, Writer
from everytree.files.trees import read_posteriors, write_posteriors
from everytree.posterior.rows import Rows
from everytree.tables.schema import Schema


def write_continued(to: Writer, forest: ContinuedForest) -> None:
    """Write the codes near the root, the sharpness and the trees below."""
    to.put(sharpness=forest.sharpness)
    to.put_arrays(few_of=np.concatenate([*forest.columns.few_of, np.empty(0)]).astype(np.uint16))
    write_posteriors(to.section("continuations"), forest.continuations)


def read_continued(of: Reader, posterior: ExactPosterior, schema: Schema, rows: Rows) -> ContinuedForest:
    """Read a model with this sum near the root."""
    n_codes = schema.n_codes.astype(np.int64)
    joined = of.array("few_of", np.uint16, (int(n_codes.sum()),)).astype(np.int64)
    few_of = np.split(joined, np.cumsum(n_codes)[:-1])
    has_missing = np.array([column.has_missing for column in schema.columns])
    columns = TopColumns(few_of, posterior.kinds, has_missing)
    if any((np.diff(own, prepend=0) < 0).any() for own in few_of) or columns.n_few != posterior.n_codes:
        raise of.error("few_of", "must increase from 0 to the codes of the sum near the root in every column")
    if posterior.n_given is None:
        raise of.error("few_of", "is there, but the sum near the root has no continuation")
    continuations = read_posteriors(of.section("continuations"))
    for i, one in enumerate(continuations):
        if one.tree.n_features != schema.n_features or one.family != posterior.family:
            raise of.error("continuations", f"number {i} has other columns or leaves than the sum near the root")
    n_regions = posterior.n_given
    if len(continuations) % max(n_regions, 1) or (len(continuations) > 0) != (n_regions > 0):
        raise of.error("continuations", f"are {len(continuations)}, but there are {n_regions} regions")
    sharpness = of.value("sharpness", float)
    if not (np.isfinite(sharpness) and sharpness > 0.0):
        raise of.error("sharpness", f"must be positive, but is {sharpness}")
    return ContinuedForest(posterior, columns, continuations, sharpness, rows)
