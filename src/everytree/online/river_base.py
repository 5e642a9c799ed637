"""River's base classes where river is installed, and plain ones that let everything else work where it is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:

    class MiniBatchClassifier:
        """What type checkers see of river's class."""

    class MiniBatchRegressor:
        """What type checkers see of river's class."""
else:
    try:
        from river.base import MiniBatchClassifier, MiniBatchRegressor
    except ImportError:

        class MiniBatchClassifier:
            """Stands in for river's class of the same name."""

        class MiniBatchRegressor:
            """Stands in for river's class of the same name."""


__all__ = ["MiniBatchClassifier", "MiniBatchRegressor"]
