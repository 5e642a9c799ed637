"""Dask: scores and more rows, whatever is known of the sizes of partitions."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
from sklearn.base import is_classifier

import everytree as et
from cases import assert_same
from dask_cases import COLUMNS, SAMPLE, arrays, cut, frame_of, on_dask
from estimator_cases import ALL, FOUR, ids


def without_sizes(collections: dict[str, da.Array]) -> dict[str, da.Array]:
    """The same arrays, of whose chunks no size is known."""
    return {
        name: da.concatenate(
            [da.from_delayed(part, (np.nan, *one.shape[1:]), one.dtype) for part in one.to_delayed().ravel()],
            allow_unknown_chunksizes=True,
        )
        for name, one in collections.items()
    }


@pytest.mark.parametrize("case", **ids([case for case in ALL if "Forest" in case.kind.__name__]))
def test_scores_are_those_of_the_local_model(case):
    table, names = frame_of(case)
    table["w"] = np.arange(len(table)) % 3
    model = on_dask(case.make()).fit(cut(table.drop(columns="w"), 3), "y", sample_rows=SAMPLE, **names)
    row_data = {name: table[name] for name in names}
    expected = model.to_local().score(table[COLUMNS], table["y"], table["w"], **row_data)
    scores = [
        model.score(cut(table, 3), "y", sample_weight="w", **names),
        model.score(table[COLUMNS], table["y"], table["w"], **row_data),
    ]
    known = arrays(table, 4)
    for given in (known, without_sizes(known)):
        others = {name: given[name] for name in names}
        scores.append(model.score(given["X"], given["y"], given["w"], **others))
    np.testing.assert_allclose(scores, expected, rtol=1e-10)
    few = {name: values[:3] for name, values in row_data.items()}
    plain = model.to_local().score(table[COLUMNS][:3], table["y"][:3], **few)
    assert model.score(cut(table.drop(columns="w")[:3], 5), "y", **names) == pytest.approx(plain, rel=1e-10)


@pytest.mark.parametrize("case", **ids(FOUR))
def test_more_partitions_are_added_as_rows_are(case):
    table, names = frame_of(case)
    first, second = table[:120], table[120:]
    model = on_dask(case.make()).fit(cut(first, 2), "y", sample_rows=SAMPLE, **names)
    local = model.to_local()
    local.partial_fit(second[COLUMNS], second["y"], **{name: second[name] for name in names})
    assert model.partial_fit(cut(second, 3), "y", **names) is model
    for mine, theirs in zip(model.posteriors_, local.posteriors_, strict=True):
        assert_same(mine, theirs)
    assert model.forest_.n_rows == len(table)
    assert not hasattr(model, "unseen_")
    assert len(model.fitted_.batches) == 2
    with pytest.raises(ValueError, match=r"there are no rows"):
        model.partial_fit(cut(second[:0], 2), "y", **names)


@pytest.mark.parametrize("case", **ids(FOUR[:2]))
def test_a_first_call_of_partial_fit_is_a_fit(case):
    table, names = frame_of(case)
    parts = cut(table, 3)
    model = on_dask(case.make()).partial_fit(parts, "y", **names)
    assert model.log_evidence_ == on_dask(case.make()).fit(parts, "y", **names).log_evidence_
    if is_classifier(model):
        classes = [*model.classes_, "z"]
        wider = on_dask(case.make()).partial_fit(parts, "y", classes)
        assert wider.classes_.tolist() == classes
        with pytest.raises(ValueError, match="but the first call knew"):
            wider.partial_fit(parts, "y", classes[:-1])
    before = model.log_evidence_
    wrong = table.assign(y="nothing")
    with pytest.raises((TypeError, ValueError), match=r"partition \d"):
        model.partial_fit(cut(wrong, 3), "y", **names)
    assert model.log_evidence_ == before


def test_events_of_partitions():
    rng = np.random.default_rng(0)
    table = frame_of(next(case for case in ALL if case.target == "normal"))[0]
    table = table.assign(y=rng.exponential(size=len(table)), seen=rng.random(len(table)) < 0.6)
    model = et.DaskMetaForestRegressor(2, family="exponential", random_state=0)
    model.fit(cut(table, 3), "y", event="seen")
    plain = et.MetaForestRegressor(2, family="exponential", random_state=0)
    plain.fit(table[COLUMNS], table["y"], censored=~table["seen"])
    assert model.log_evidence_ == plain.log_evidence_
    expected = plain.score(table, "y", event="seen")
    assert model.score(cut(table, 5), "y", event="seen") == pytest.approx(expected, rel=1e-12)
