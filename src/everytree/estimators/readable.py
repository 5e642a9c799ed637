"""Pictures of one tree, labelled with the names of its table."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from everytree.estimators.base import MetaEstimator
from everytree.posterior.posterior import Posterior
from everytree.tables.code_names import CodeWords


class Readable(MetaEstimator):
    """An estimator with a tree to be read by a person."""

    @abstractmethod
    def pictured(self) -> Posterior:
        """The posterior of the tree to show."""

    def to_text(self, **options: Any) -> str:
        """The tree drawn with characters, the probability of each split on it; options as in `Posterior.to_text`."""
        return self.pictured().to_text(**self._words(options))

    def to_dot(self, **options: Any) -> str:
        """The tree as Graphviz source; options as in `Posterior.to_dot`."""
        return self.pictured().to_dot(**self._words(options))

    def plot(self, **options: Any) -> Any:
        """The tree as a matplotlib picture; options as in `everytree.plot_tree`."""
        from everytree.view.plot import plot_tree

        return plot_tree(self.pictured(), **self._words(options))

    def _words(self, options: dict[str, Any]) -> dict[str, Any]:
        """Add names of columns, values and classes to the options, unless they are given."""
        names = self.schema_.names
        words: dict[str, Any] = {
            "code_names": self.words_of_codes(),
            "feature_names": names if names is not None else [f"x{k}" for k in range(self.n_features_in_)],
        }
        if hasattr(self, "classes_"):
            from everytree.view.describe import leaf_classes

            words["class_names"] = leaf_classes([str(label) for label in self.classes_])
        return words | options

    def words_of_codes(self) -> list[CodeWords]:
        """Return the labels of the codes of each column."""
        return self.schema_.code_names
