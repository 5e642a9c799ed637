"""Pictures of trees: as text, HTML and matplotlib figures."""

from everytree.view.plot import plot_predictive, plot_survival, plot_tree

__all__ = ["plot_predictive", "plot_survival", "plot_tree"]
