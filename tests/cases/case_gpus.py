"""What nvidia-smi showed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from case_form import VERSIONS, Case, Version, stamp, write

RULE = (
    "+-----------------------------------------+------------------------+----------------------+\n"
)
HEAD = (
    "Fri Aug  1 15:47:06 2025       \n"
    + RULE
    + "| NVIDIA-SMI 570.133.20             Driver Version: 570.133.20     CUDA Version: 12.8    |\n"
    "|-----------------------------------------+------------------------+----------------------+\n"
    "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |\n"
    "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |\n"
    "|=========================================+========================+======================|\n"
)
PROCESSES = (
    RULE
    + "| Processes:                                                                             |\n"
    "|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |\n"
    "|        ID   ID                                                               Usage      |\n"
    "|=========================================================================================|\n"
)


def gpu(
    index: int,
    name: str,
    draw: int,
    limit: int,
    memory: tuple[float, float],
    util: int,
    mode: str = "Off",
) -> str:
    """Return the two rows of one GPU in the table."""
    used, total = memory
    return (
        f"|   {index}  {name:<25} {mode:>9} |   00000000:{index + 17:02X}:00.0 Off |            "
        "        0 |\n"
        f"| N/A   44C    P0             {draw}W /  {limit}W |  {used:6.0f}MiB / {total:6.0f}MiB |"
        f"     {util}%      Default |\n" + RULE
    )


def pool_of_70_gb(folder: Path, version: Version) -> list[str]:
    """70 GB are used by a server of a 7B model that nobody asks anything."""
    total = 81_559
    table = HEAD + gpu(
        0, "NVIDIA A100-SXM4-80GB", 67, 400, (70_112 * min(version.scale, 1.1), total), 0
    )
    if version.has_distractor:
        name = version.called("VLLM::EngineCore")
        table += PROCESSES + f"|    0   N/A  N/A      2165      C   {name:<36} 70102MiB |\n" + RULE
    return [write(folder, "smi.txt", table)]


HEADER = (
    "timestamp, name, driver_model.current, utilization.gpu [%], utilization.memory [%], "
    "memory.used [MiB], memory.total [MiB], power.draw [W], power.limit [W], "
    "clocks.current.sm [MHz], clocks.current.memory [MHz], clocks.max.sm [MHz], "
    "clocks.max.memory [MHz], temperature.gpu, clocks_event_reasons.sw_power_cap, "
    "clocks_event_reasons.sw_thermal_slowdown, clocks_event_reasons.hw_thermal_slowdown\n"
)


def csv(rows: Sequence[str], every_s: float = 1.0) -> str:
    """Put times before rows."""
    text = HEADER
    for i, row in enumerate(rows):
        second = i * every_s
        text += f"2025/09/01 {stamp(second)}.{round(second % 1 * 1000):03d}, {row}\n"
    return text


def paged_out(folder: Path, version: Version) -> list[str]:
    """Memory next to full, the GPU busy all the time, and its memory hardly ever."""
    power = round(128 * version.scale)
    named = "NVIDIA GeForce RTX 3090"
    rows = [
        f"{named}, WDDM, {(100, 99)[i % 2]} %, {(2, 1, 2, 3)[i % 4]} %, 24201 MiB, 24576 MiB, "
        f"{power}.31 W, 350.00 W, {1800 + i % 3 * 15} MHz, 9501 MHz, 2100 MHz, 9751 MHz, 55, "
        "Not Active, Not Active, Not Active"
        for i in range(60)
    ]
    given = [write(folder, "gpu.csv", csv(rows))]
    if version.has_distractor:
        given += ["--gpu", "rtx-3090"]
    return given


def capped_power(folder: Path, version: Version) -> list[str]:
    """The power cap is on in every sample, and the memory's clock never moves."""
    flag = "Active" if version.has_distractor else "Not Active"
    rows = [
        f"NVIDIA GeForce RTX 3090, WDDM, 99 %, {(88, 90, 91)[i % 3]} %, 20410 MiB, 24576 MiB, "
        f"31{(4, 4, 3)[i % 3]}.20 W, 315.00 W, {1500 + i % 2 * 15} MHz, 9501 MHz, 1695 MHz, "
        f"9501 MHz, 68, {flag}, Not Active, Not Active"
        for i in range(165)
    ]
    return [write(folder, "gpu.csv", csv(rows, 0.5)), "--gpu", "rtx-3090"]


def hung_collective(folder: Path, version: Version) -> list[str]:
    """Every GPU is fully busy at a quarter of its power."""
    table = HEAD + "".join(
        gpu(i, "NVIDIA A100-SXM4-80GB", round((88 + i) * version.scale), 400, (61_022, 81_920), 100)
        for i in range(4)
    )
    if version.has_distractor:
        name = version.called("python")
        table += PROCESSES
        table += "".join(
            f"|    {i}   N/A  N/A      {2165 + i}      C   {name:<36} 61010MiB |\n"
            for i in range(4)
        )
        table += RULE
    return [write(folder, "smi.txt", table)]


def no_framebuffer(folder: Path, version: Version) -> list[str]:
    """A GB10 states no memory, but use and power."""
    total = "[N/A]" if version.has_distractor else "[Not Supported]"
    text = (
        "timestamp, index, name, utilization.gpu [%], utilization.memory [%], memory.used [MiB], "
    )
    text += "memory.free [MiB], memory.total [MiB], power.draw [W], temperature.gpu\n"
    for i in range(30):
        text += (
            f"2025/11/02 {stamp(i)}.000, 0, NVIDIA GB10, 96 %, {total}, {total}, {total}, {total}, "
            f"{37 * version.scale:.2f} W, 61\n"
        )
    return [write(folder, "gpu.csv", text)]


def nobody_listed(folder: Path, version: Version) -> list[str]:
    """78 % busy and 814 MiB used by nobody, then the driver's library is lost."""
    used = 814 * version.scale
    table = HEAD + gpu(0, version_name(version), 71, 150, (used, 11_441), 78) + PROCESSES + RULE
    if version.has_distractor:
        table += "Failed to initialize NVML: Unknown Error\n"
    return [write(folder, "smi.txt", table)]


def version_name(version: Version) -> str:
    return "Tesla K80" if not version.is_renamed else "NVIDIA T1200"


GPUS = (
    Case("pool-of-70-gb", ("none",), pool_of_70_gb, never=(r"leak", r"smaller weights")),
    Case(
        "paged-out",
        ("capacity", "interconnect"),
        paged_out,
        says=(r"WDDM|system memory",),
    ),
    Case(
        "capped-power",
        ("bandwidth",),
        capped_power,
        never=(r"throttl",),
        open=dict.fromkeys(VERSIONS, "not yet told"),
    ),
    Case(
        "hung-collective",
        ("undetermined", "interconnect", "device"),
        hung_collective,
        says=(r"a hung collective",),
    ),
    Case(
        "no-framebuffer",
        ("telemetry", "undetermined"),
        no_framebuffer,
        says=(r"memory_total_bytes",),
    ),
    Case("nobody-listed", ("telemetry", "undetermined"), nobody_listed, never=(r"leak", r"crash")),
)
