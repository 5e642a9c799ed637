"""Every tree and every choice of splits, summed exactly."""

from everytree.exact.posterior import ExactPosterior

__all__ = ["ExactPosterior"]
