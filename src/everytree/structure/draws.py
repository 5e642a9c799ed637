"""Which rows a tree is grown on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Draw:
    """A random sample of the rows of a table, which can be drawn again."""

    seed: int
    share: float = 1.0  # share of the rows that are drawn, each of them once
    bootstrap: bool = False  # instead, as many rows are drawn as there are, with replacement

    def times(self, n_rows: int, group: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
        """(n_rows,) how often each row is in the sample; rows of one group are drawn together, and at least one is."""
        n_groups = n_rows if group is None else int(group.max()) + 1
        random = np.random.default_rng(self.seed)
        if self.bootstrap:
            drawn = random.integers(n_groups, size=n_groups)
        else:
            drawn = random.permutation(n_groups)[: max(1, round(self.share * n_groups))]
        times = np.bincount(drawn, minlength=n_groups)
        return times if group is None else times[group]
