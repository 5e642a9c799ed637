"""Log densities of rows with each row left out, from distributions that have counted all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everytree.base.arrays import FloatArray, as_column
from everytree.families.base import NativeFamily
from everytree.predictive.paths import Paths


def leave_one_out(
    family: NativeFamily, statistics: FloatArray, paths: Paths, y: ArrayLike, row_data: dict[str, NDArray[Any]]
) -> FloatArray:
    """(n_rows,) log p(y_i | all other rows), of rows that are counted once in every node of their paths.

    The evidence without a row over the evidence with it is 1 / p(y_i | all other rows), and it is the average of the
    same ratio in the leaves that may hold the row, each by its probability given all rows: nothing is summed again.

    Parameters
    ----------
    family : NativeFamily
        With one prior for all nodes.
    statistics : (n_nodes, n_statistics) float64
        Of all rows in each node.
    paths : Paths
        One for each row, whose weights are the probabilities that a node is the leaf of the row.
    y : (n_rows,) array_like
    row_data : mapping of str to (n_rows, ...) array
        Row data of the family.
    """
    target = as_column("y", y)
    entries, lengths = paths.entries(paths.of_row)
    row = np.repeat(np.arange(len(target)), lengths)
    own = family.statistics(target, None, **row_data)
    without = statistics[paths.nodes[entries]] - own[row]
    of_row = {name: column[row] for name, column in row_data.items()}
    log_ratio = paths.log_weights[entries] - family.predictive(without, **of_row).log_prob(target[row])
    start = np.cumsum(lengths) - lengths
    return np.asarray(-np.logaddexp.reduceat(log_ratio, start))
