"""Names of a model's columns, codes and classes on the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from everytree.tables.code_names import CodeWords, one_line
from everytree.view.describe import leaf_classes


@dataclass(frozen=True)
class Words:
    """Names, as text on one line.

    Attributes
    ----------
    inputs : list of str
        Names of the input columns.
    features : list of str
        Names of the columns of codes; an imported model may read one input in several ways.
    codes : list of CodeWords
        Labels of each column's codes.
    classes : list of str
        Class labels; empty for numbers.
    last_time : float or None
        Of times, some of which were cut short: the longest that was seen.
    """

    inputs: list[str]
    features: list[str]
    codes: list[CodeWords]
    classes: list[str]
    last_time: float | None = None

    @classmethod
    def of(cls, model: Any) -> Words:
        """Read a fitted estimator."""
        schema = model.schema_
        names = schema.input_names or [f"x{k}" for k in range(schema.n_inputs)]
        inputs = [one_line(name) for name in names]
        return cls(
            inputs,
            [inputs[k] for k in schema.input_of],
            model.model_.words_of_codes(schema),
            [one_line(label) for label in getattr(model, "classes_", ())],
            model.fitted_.last_time,
        )

    def options(self) -> dict[str, Any]:
        """Options for pictures of posteriors."""
        classes = leaf_classes(self.classes) or None
        names = {"feature_names": self.features, "code_names": self.codes, "class_names": classes}
        return names | {"last_time": self.last_time}
