"""Batches of a table, looked at without a fit."""

from __future__ import annotations

from typing import Any

import everytree as et
from everytree.batches import SchemaSketch
from everytree.batches.batch import Roles
from everytree.batches.passes import BatchPasses
from everytree.batches.sources import open_source


def schema_of(batches: Any, target: str | None = None, **options: Any) -> et.Schema:
    """The schema that the first pass finds."""
    passes = BatchPasses(open_source(batches), Roles.of(target, None, {}), "Schema")
    sketch = passes.sketch(SchemaSketch(**options), lambda batch: None, lambda labels: None)
    return sketch.schema(sketch.sample.y)
