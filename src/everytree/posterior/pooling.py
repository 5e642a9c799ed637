"""The nodes of several posteriors in one list, from which mixtures over all of their trees are read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from everytree import _kernels
from everytree.base.arrays import FloatArray
from everytree.families.base import Family
from everytree.posterior.posterior import Posterior
from everytree.posterior.split_prior import log_split_stop
from everytree.predictive.pooled import Pool


def pool_nodes(posteriors: Sequence[Posterior], weights: FloatArray) -> Pool:
    """Return a copy of the posteriors' nodes in one list."""
    first = np.cumsum([0] + [post.tree.n_nodes for post in posteriors])
    summaries, parents, reached, stop = [], [], [], []
    for post, start in zip(posteriors, first, strict=False):
        with post._kernel:
            leaf, subtree = (post._arrays[name].copy() for name in ("leaf", "subtree"))
            statistics = post._arrays["statistics"]
            summary = post.family.summarise(statistics)
            summaries.append(summary.copy() if summary is statistics else summary)
        log_split, log_stop = log_split_stop(post._split_prior)
        fates = _kernels.log_node_fates(
            post.tree.kernel, log_split=log_split, log_stop=log_stop, leaf=leaf, subtree=subtree
        )
        parents.append(np.where(post.tree.parent >= 0, post.tree.parent + start, -1).astype(np.int32))
        reached.append(fates[0])
        stop.append(fates[1])
    with np.errstate(divide="ignore"):
        log_weights = np.log(weights)
    join = np.concatenate
    return Pool(
        _of_any_node(posteriors[0].family),
        join(summaries),
        first[:-1],
        join(parents),
        join(reached),
        join(stop),
        log_weights,
    )


def _of_any_node(family: Family) -> Family:
    """Return the family for summaries, which contain the prior of their node."""
    return family if family.has_one_prior else family.at(np.zeros(1, dtype=np.int64))
