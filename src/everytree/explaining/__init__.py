"""Why a row is predicted as it is, and how predictions change along a column."""

from everytree.explaining.effect import Effect
from everytree.explaining.explanation import Explanation

__all__ = ["Effect", "Explanation"]
