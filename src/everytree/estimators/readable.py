"""Pictures of one tree, labelled with the names of its table."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from everytree.base.arrays import FloatArray
from everytree.estimators.base import MetaEstimator
from everytree.posterior.posterior import Posterior
from everytree.tables.code_names import CodeWords


class Readable(MetaEstimator):
    """An estimator with a tree to be read by a person."""

    @abstractmethod
    def pictured(self) -> Posterior:
        """The posterior of the tree to show."""

    def _pictured_number(self) -> int:
        """Number of that tree in the forest."""
        return 0

    @property
    def helpful_splits_(self) -> FloatArray:
        """(n_nodes,) for the splits of `pictured()`: the probability that each helps rows on which it was not chosen.

        Posterior split probabilities of grown trees are nearly all 1, because splits were chosen on the rows that count
        in them. Here a split is judged by other rows, which are predicted better by it or by a leaf, with even odds
        before any of them is seen. Forests: rows that the tree was not grown on. Single trees: every fifth row, by the
        split of the node's region that is chosen without it; 0.5 where fewer than six rows are in a node, or six splits
        above it. NaN at leaves.

        Not there where no rows were left out: in exact trees, imported structures and trees that are grown on all rows;
        nor where another tree has become the best one since.
        """
        helpful = self._learnt().helpful
        if helpful is None or helpful.tree != self._pictured_number():
            raise AttributeError(
                f"this {type(self).__name__} has no helpful_splits_: no rows were left out for its tree"
            )
        return helpful.prob

    def to_text(self, **options: Any) -> str:
        """The tree drawn with characters, the probability of each split on it; options as in `Posterior.to_text`.

        Splits that probably do not help rows on which they were not chosen (`helpful_splits_` below one half) are left
        out of this and all other pictures, and counted; `min_helps=0` shows them. Predictions are averages over all
        prunings, whatever a picture shows.
        """
        return self.pictured().to_text(**self.drawing_options(options))

    def to_dot(self, **options: Any) -> str:
        """The tree as Graphviz source; options as in `Posterior.to_dot`."""
        return self.pictured().to_dot(**self.drawing_options(options))

    def plot(self, **options: Any) -> Any:
        """The tree as a matplotlib picture; options as in `everytree.plot_tree`."""
        from everytree.view.plot import plot_tree

        return plot_tree(self.pictured(), **self.drawing_options(options))

    def drawing_options(self, options: dict[str, Any]) -> dict[str, Any]:
        """Add names of columns, values and classes, and which splits help, to options of pictures that lack them."""
        inputs = self.schema_.input_names or [f"x{k}" for k in range(self.schema_.n_inputs)]
        words: dict[str, Any] = {
            "code_names": self.words_of_codes(),
            "feature_names": [inputs[k] for k in self.schema_.input_of],
        }
        if hasattr(self, "helpful_splits_"):
            words["helps"] = self.helpful_splits_
        words["last_time"] = self._learnt().last_time
        if hasattr(self, "classes_"):
            from everytree.view.describe import leaf_classes

            words["class_names"] = leaf_classes([str(label) for label in self.classes_])
        return words | options

    def words_of_codes(self) -> list[CodeWords]:
        """Return the labels of the codes of each column."""
        return self.schema_.code_names
