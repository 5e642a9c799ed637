"""Structures drawn from their posterior, where there are too many of them for an exact sum."""

from everytree.sampling.sampler import StructureSampler

__all__ = ["StructureSampler"]
