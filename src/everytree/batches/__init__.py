"""More rows than memory: what is learnt of a table batch by batch, in parts that merge."""

from everytree.batches.row_sample import RowSample
from everytree.batches.sketch import SchemaSketch

__all__ = ["RowSample", "SchemaSketch"]
