"""Pictures with matplotlib: the meta-tree, predictions along a feature.

Each function takes an `ax` to draw on, or makes a figure of a suitable size, and returns the axes; none shows the
figure. The colours suit the axes, light or dark.
"""

from everytree.view.plot.along import plot_predictive
from everytree.view.plot.curves import plot_survival
from everytree.view.plot.tree import plot_tree

__all__ = ["plot_predictive", "plot_survival", "plot_tree"]
