"""How estimators are shown: words for pictures of trees, and the view of notebooks."""

from __future__ import annotations

from typing import Any


def drawing_options(model: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Add names of columns, values and classes, and which splits help, to options of pictures that lack them."""
    words: dict[str, Any] = {
        "code_names": model.model_.words_of_codes(model.schema_),
        "feature_names": model.schema_.feature_words,
    }
    words["helps"] = getattr(model, "helpful_splits_", None)
    words["last_time"] = model._learnt().last_time
    if model.model_.baseline is not None:
        words["baseline"] = model.model_.baseline
    if model.has_classes:
        from everytree.view.describe import leaf_classes

        words["class_names"] = leaf_classes([str(label) for label in model.classes_])
    return words | options


def fitted_html(model: Any) -> str | None:
    """The view of a fitted model of one output, else None."""
    if "fitted_" not in vars(model):
        return None
    from everytree.view.model import model_html

    return model_html(model)
