"""What to do about slow clocks, by the reason that the driver gives for them.

Each is for the user to run: no clock and no limit is changed here.
"""

from __future__ import annotations

from collections.abc import Mapping

from stallscope.analyzers.result import Remedy

_CLOCKS = ("sm_clock_share", "memory_clock_share")
_CHECK = "run again: the clocks are back at their highest under load, and TPOT falls with them"
_COOL = Remedy(
    "cool the device: airflow, fans, inlet temperature, dust, and what heats the same chassis",
    {"any": "watch it: nvidia-smi -q -d TEMPERATURE,PERFORMANCE"},
    None,
    f"the thermal slowdown is no longer active; {_CHECK}",
    _CLOCKS,
    cost="work on the machine",
)
_POWER = Remedy(
    "raise the power limit, where it is below what the board allows, and check its power supply",
    {"any": "nvidia-smi -q -d POWER; then, as root: nvidia-smi -pl WATTS"},
    None,
    f"power_capped falls; {_CHECK}",
    ("power_capped", "power_of_limit", *_CLOCKS),
    cost="power and heat",
)
_RESET = Remedy(
    "reset clocks that were locked or set",
    {"any": "as root: nvidia-smi -rgc; nvidia-smi -rmc; nvidia-smi -rac"},
    None,
    _CHECK,
    _CLOCKS,
    cost="power and heat; step times vary more than at locked clocks",
)
_LOOK = Remedy(
    "see why the clocks are low, and who else uses the device",
    {"any": "nvidia-smi -q -d PERFORMANCE,CLOCK,TEMPERATURE,POWER; nvidia-smi pmon"},
    None,
    "the active reason says whether heat, power or set clocks lower them",
    _CLOCKS,
    cost="a look while the load runs",
)
_BY_KIND: Mapping[str | None, tuple[Remedy, ...]] = {
    "heat": (_COOL,),
    "power": (_POWER,),
    "set": (_RESET,),
    "hardware": (_LOOK, _COOL, _POWER),
    None: (_LOOK, _RESET, _COOL, _POWER),
}


def clocks_back(kind: str | None) -> tuple[Remedy, ...]:
    """List what helps against a kind of slowdown; None where no reason was sampled."""
    return _BY_KIND[kind]
