"""Tables that nvidia-smi printed."""

from __future__ import annotations

from pathlib import Path

from case_form import Case, Version, write

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


def nobody_listed(folder: Path, version: Version) -> list[str]:
    """78 % busy and 814 MiB used by nobody, then the driver's library is lost."""
    used = 814 * version.scale
    table = HEAD + gpu(0, version_name(version), 71, 150, (used, 11_441), 78) + PROCESSES + RULE
    if version.has_distractor:
        table += "Failed to initialize NVML: Unknown Error\n"
    return [write(folder, "smi.txt", table)]


def version_name(version: Version) -> str:
    return "Tesla K80" if not version.is_renamed else "NVIDIA T1200"


TABLES = (
    Case(
        "pool-of-70-gb",
        ("none",),
        pool_of_70_gb,
        says=(r"its budget, not what the model needs",),
        never=(r"leak", r"smaller weights"),
    ),
    Case(
        "hung-collective",
        ("undetermined", "interconnect", "device"),
        hung_collective,
        says=(r"a hung collective",),
    ),
    Case("nobody-listed", ("telemetry", "undetermined"), nobody_listed, never=(r"leak", r"crash")),
)
