"""Rows counted in meta-trees: evidence, split probabilities, and everything derived from them."""

from everytree.posterior.counts import ForestCounts
from everytree.posterior.forest import Forest
from everytree.posterior.generative import GenerativeModel
from everytree.posterior.growing import GrowingPosterior
from everytree.posterior.posterior import Posterior
from everytree.posterior.shared import update_all
from everytree.posterior.split_prior import depth_prior

__all__ = ["Forest", "ForestCounts", "GenerativeModel", "GrowingPosterior", "Posterior", "depth_prior", "update_all"]
