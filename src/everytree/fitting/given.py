"""A table as a user gives it, and how it is to be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class GivenRows(NamedTuple):
    """Rows as a user gives them."""

    X: Any  # (n_rows, n_features) table
    y: Any  # (n_rows,) array_like
    weight: Any = None  # (n_rows,) array_like
    row_data: Mapping[str, Any] = {}  # what the family wants to know of each row; None where it is not given
    groups: Any = None  # (n_rows,) array_like
    groups_name: str = ""  # of the column of groups; empty where they have none
    target_name: str | None = None  # of the column of targets; None where they have none

    def at(self, rows: NDArray[np.int64]) -> GivenRows:
        """Some of the rows, all but their table."""
        row_data = {name: _at(values, rows) for name, values in self.row_data.items()}
        return self._replace(
            y=_at(self.y, rows), weight=_at(self.weight, rows), row_data=row_data, groups=_at(self.groups, rows)
        )


@dataclass(frozen=True)
class Settings:
    """Settings of reading tables, common to all structures."""

    owner: str  # the estimator's name, for errors
    categorical_features: Any  # as in the estimators
    max_bins: int
    relative_weights: bool
    n_jobs: int | None
    verbose: int
    keeps_left_out: bool = False  # what is learnt without some of the rows, for conformal prediction


def _at(values: Any, rows: NDArray[np.int64]) -> Any:
    return None if values is None else np.asarray(values)[rows]
