"""What the changes start from: captures of every class that a run can have."""

from __future__ import annotations

import pytest
from known_captures import BUILT, NAMES, REAL, class_of, known


@pytest.mark.parametrize("name", NAMES)
def test_each_is_of_the_class_it_stands_for(name: str) -> None:
    expected = BUILT[name][0] if name in BUILT else REAL[name][0]
    assert class_of(known(name)) == expected


def test_all_classes_of_a_run_are_there() -> None:
    classes = {bottleneck for bottleneck, *_ in (*BUILT.values(), *REAL.values())}
    assert classes == {
        *("capacity", "bandwidth", "scheduling", "compute", "host", "interconnect"),
        *("client", "device", "none"),
    }
