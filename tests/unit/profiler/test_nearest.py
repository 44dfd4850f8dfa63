"""Which names are offered for one that is not known."""

from __future__ import annotations

import pytest

from stallscope.profiler.devices import device_names
from stallscope.profiler.models import preset_names
from stallscope.profiler.nearest import did_you_mean


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("h300", "did you mean h100-sxm or h200-sxm or h100-pcie?"),
        ("h800", "did you mean h100-sxm or h200-sxm or h100-pcie?"),
        ("h100", "did you mean h100-sxm or h100-pcie or h200-sxm?"),
        ("rtx-4070", "did you mean rtx-4090 or rtx-4080 or rtx-"),
    ],
)
def test_devices_of_the_same_letters_come_first(name: str, says: str) -> None:
    assert did_you_mean(name, device_names()).startswith(says)


def test_a_wrong_letter_is_still_understood() -> None:
    assert did_you_mean("lama-7b", preset_names()).startswith("did you mean llama-7b")
    assert did_you_mean("nothing alike", ["dram_high"]) == "known: dram_high."
