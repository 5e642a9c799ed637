"""Chains run for some time, some draws at a time, so that progress can be shown and the user can interrupt."""

from __future__ import annotations

import time
from typing import Any

from numpy.typing import NDArray

from everytree import _kernels
from everytree.base.progress import Progress

PROPOSALS, PROPOSALS_IF_INDEPENDENT = (20, 2), (0, 1)
"""Proposals of a draw at each temperature: of single nodes, and of blocks. Where a block is an independent draw from
the posterior, one is enough."""

Records = list[list[dict[str, NDArray[Any]]]]
"""Results of the kernel: for each call, one record per chain."""

SECONDS_AT_ONCE = 0.3
"""Approximate time that the kernel draws before it returns; how draws are divided does not change them."""


def run(
    records: Records,
    engine: _kernels.Sampler,
    proposals: tuple[int, int],
    n_draws: int,
    thin: int,
    n_jobs: int,
    bar: Progress,
) -> None:
    """Draw, some draws at a time, and add to the records, which hold what was drawn where an interrupt ends it."""
    (n_single, n_blocks), n_next, done = proposals, 1, 0
    while done < n_draws:
        n_next = min(n_next, n_draws - done)
        begun = time.perf_counter()
        records.append(engine.run(n_draws=n_next, thin=thin, n_single=n_single, n_blocks=n_blocks, n_jobs=n_jobs))
        done += n_next
        bar.step(n_next)
        per_draw = (time.perf_counter() - begun) / n_next
        n_next = max(int(SECONDS_AT_ONCE / max(per_draw, 1e-9)), 1)
