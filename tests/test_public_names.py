"""The names of the package: what there is, and what replaced those that are gone."""

from __future__ import annotations

import pytest

import everytree as et


@pytest.mark.parametrize("name", et.__all__)
def test_public_names_are_found(name):
    assert name in dir(et)
    assert getattr(et, name).__name__ == name


@pytest.mark.parametrize(("name", "instead"), et._REMOVED.items())
def test_former_names_say_what_to_use(name, instead):
    with pytest.raises(AttributeError) as caught:
        getattr(et, name)
    assert instead in str(caught.value)
    assert name not in et.__all__


def test_unknown_names_are_unknown():
    with pytest.raises(AttributeError, match=r"has no attribute 'MetaShrub'$"):
        et.MetaShrub  # noqa: B018
