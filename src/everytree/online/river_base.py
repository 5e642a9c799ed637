"""River's base classes if river is installed, and plain substitutes if it is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:

    class MiniBatchClassifier:
        """River's class for type checkers."""

    class MiniBatchRegressor:
        """River's class for type checkers."""
else:
    try:
        from river.base import MiniBatchClassifier, MiniBatchRegressor
    except ImportError:

        class MiniBatchClassifier:
            """Stands in for river's class of the same name."""

        class MiniBatchRegressor:
            """Stands in for river's class of the same name."""


__all__ = ["MiniBatchClassifier", "MiniBatchRegressor"]
