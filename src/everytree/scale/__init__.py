"""More rows than memory: what is learnt of a table batch by batch, in parts that merge."""

from everytree.scale.batches import schema_from_batches, update_from_batches
from everytree.scale.counts import ForestCounts
from everytree.scale.sampling import RowSample
from everytree.scale.sketches import SchemaSketch

__all__ = ["ForestCounts", "RowSample", "SchemaSketch", "schema_from_batches", "update_from_batches"]
