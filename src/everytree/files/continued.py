"""Trees that are summed over near the root and go on below as they were grown."""

from __future__ import annotations

import numpy as np

from everytree.exact.continuations import Continuations
from everytree.exact.continued import ContinuedForest
from everytree.exact.posterior import ContinuedRegions, ExactPosterior
from everytree.exact.top_columns import TopColumns
from everytree.files.plain import read_plain, write_plain
from everytree.files.sections import Reader, Writer
from everytree.files.trees import read_trees, write_trees
from everytree.posterior.rows import Rows
from everytree.tables.schema import Schema


def write_continued(to: Writer, forest: ContinuedForest) -> None:
    """Write the codes near the root, the sharpness and the trees below; rows are counted in them again."""
    to.put(sharpness=forest.sharpness)
    regions = forest.trees.regions
    to.put_arrays(
        few_of=np.concatenate([*forest.columns.few_of, np.empty(0)]).astype(np.uint16),
        start=regions.start, column=regions.column, codes=regions.codes,
    )  # fmt: skip
    write_plain(to, "split_prior", forest.trees.split_prior)
    write_trees(to.section("trees"), forest.trees.trees)


def read_continued(of: Reader, posterior: ExactPosterior, schema: Schema, rows: Rows) -> ContinuedForest:
    """Read a model with this sum near the root."""
    if posterior.n_given is None:
        raise of.error("few_of", "is there, but the sum near the root has no continuation")
    columns = _read_columns(of, posterior, schema)
    trees = _read_trees(of, schema)
    sharpness = of.value("sharpness", float)
    if not (np.isfinite(sharpness) and sharpness > 0.0):
        raise of.error("sharpness", f"must be positive, but is {sharpness}")
    with of.checking("trees"):
        return ContinuedForest.of(posterior, columns, trees, sharpness, rows)


def _read_columns(of: Reader, posterior: ExactPosterior, schema: Schema) -> TopColumns:
    n_codes = schema.n_codes.astype(np.int64)
    joined = of.array("few_of", np.uint16, (int(n_codes.sum()),)).astype(np.int64)
    few_of = np.split(joined, np.cumsum(n_codes)[:-1])
    has_missing = np.array([column.has_missing for column in schema.columns])
    columns = TopColumns(few_of, posterior.kinds, has_missing)
    if any((np.diff(own, prepend=0) < 0).any() for own in few_of) or columns.n_few != posterior.n_codes:
        raise of.error("few_of", "must increase from 0 to the codes of the sum near the root in every column")
    return columns


def _read_trees(of: Reader, schema: Schema) -> Continuations:
    trees = read_trees(of.section("trees"))
    for i, tree in enumerate(trees):
        if tree.n_features != schema.n_features:
            raise of.error("trees", f"number {i} reads {tree.n_features} columns, the schema has {schema.n_features}")
    start = of.array("start", np.int64, (None,))
    n = int(start[-1]) if len(start) else -1
    if len(start) == 0 or start[0] != 0 or n < 0 or (np.diff(start) < 0).any():
        raise of.error("start", "must increase from 0")
    regions = ContinuedRegions(
        start, of.array("column", np.int32, (n,)), of.array("codes", np.uint64, (n,)), np.empty(0)
    )
    if len(trees) % max(len(regions), 1) or (len(trees) > 0) != (len(regions) > 0):
        raise of.error("trees", f"are {len(trees)}, but there are {len(regions)} regions")
    return Continuations(regions, trees, read_plain(of, "split_prior"))
