"""How estimators show themselves in notebooks."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator


class ShownInNotebooks(BaseEstimator):  # type: ignore[misc]
    """A fitted model shows its quality, its importances and a tree; before that, scikit-learn's diagram."""

    def _repr_html_inner(self) -> str:
        own = self._fitted_html()
        diagram: str = own if own is not None else super()._repr_html_inner()
        return diagram

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = super()._repr_mimebundle_(**options)
        own = self._fitted_html() if "text/html" in bundle else None  # not if scikit-learn is set to show text
        return bundle if own is None else bundle | {"text/html": own}

    def _fitted_html(self) -> str | None:
        """The view of a fitted model of one output, else None."""
        if "fitted_" not in vars(self):
            return None
        from everytree.view.model import model_html

        return model_html(self)
