"""A structure as growers hand it on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.structure.draws import Draw
from everytree.trees.metatree import MetaTree


@dataclass(frozen=True)
class Grown:
    """One structure and the rows it was grown on."""

    tree: MetaTree
    in_bag: NDArray[np.bool_]  # (n_rows,)
    # (n_nodes, n_statistics): of all rows in all nodes, where they were counted together with the growing
    statistics: FloatArray | None = None
    draw: Draw | None = None  # how its rows were drawn, where that was here
