"""Garbage is collected seldom while much is read, and as before afterwards."""

from __future__ import annotations

import gc

import pytest

from stallscope.garbage import collected_seldom


def test_the_threshold_is_raised_inside_and_put_back() -> None:
    before = gc.get_threshold()
    with collected_seldom():
        assert gc.isenabled()
        assert gc.get_threshold()[0] > 10 * before[0]
    assert gc.get_threshold() == before
    with pytest.raises(ValueError, match="x"), collected_seldom():
        raise ValueError("x")
    assert gc.get_threshold() == before
