"""What nvidia-smi and DCGM print of eight GPUs at any length, made by rule: no two runs differ."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path

GPUS = 8
NAME = "NVIDIA H100 80GB HBM3"
START = datetime(2025, 6, 1, 12)
QUERY = (
    "timestamp, index, name, utilization.gpu [%], utilization.memory [%], memory.used [MiB], "
    "memory.total [MiB], power.draw [W], clocks.current.sm [MHz], temperature.gpu\n"
)
DMON = (
    "#Date       Time        gpu     pwr  gtemp  mtemp     sm    mem    enc    dec   mclk   pclk\n"
    "#YYYYMMDD   HH:MM:SS    Idx       W      C      C      %      %      %      %    MHz    MHz\n"
)
DCGM_DMON = (
    "#Entity   GRACT        SMACT        TENSO        DRAMA        POWER        GPUTL\n"
    "ID                                                            W            %\n"
)
LABELS = f'UUID="GPU-{{gpu}}",device="nvidia{{gpu}}",modelName="{NAME}",Hostname="node"'
FIELDS = ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_POWER_USAGE")


def _query(at: datetime, gpu: int, rng: random.Random) -> str:
    return (
        f"{at:%Y/%m/%d %H:%M:%S}.{at.microsecond // 1000:03}, {gpu}, {NAME}, {rng.randint(0, 100)} "
        f"%, {rng.randint(0, 60)} %, {rng.randint(60_000, 80_000)} MiB, 81559 MiB, "
        f"{rng.uniform(200, 700):.2f} W, {rng.randint(1200, 1980)} MHz, {rng.randint(40, 80)}\n"
    )


def _dmon(at: datetime, gpu: int, rng: random.Random) -> str:
    return (
        f" {at:%Y%m%d   %H:%M:%S}      {gpu}     {rng.randint(200, 700)}     {rng.randint(40, 80)}"
        f"     60    {rng.randint(0, 100)}     {rng.randint(0, 60)}      0      0   2619   1980\n"
    )


def _dcgm_dmon(at: datetime, gpu: int, rng: random.Random) -> str:
    shares = "        ".join(f"{rng.random():.3f}" for _ in range(4))
    return f"GPU {gpu}     {shares}        {rng.uniform(200, 700):.3f}      {rng.randint(0, 100)}\n"


def _page(at: datetime, gpu: int, rng: random.Random) -> str:
    scrape = f"# scrape_unix_ms {int(at.timestamp()) * 1000}\n" if gpu == 0 else ""
    labels = f'gpu="{gpu}",{LABELS.format(gpu=gpu)}'
    return scrape + "".join(f"{f}{{{labels}}} {rng.randint(0, 100)}\n" for f in FIELDS)


def _values(at: datetime, gpu: int, rng: random.Random) -> str:
    stamp = int(at.timestamp() * 1e6)
    return f"{gpu},{stamp},power_usage,{rng.uniform(200, 700):.2f}\n"


FORMS: Mapping[str, tuple[str, Callable[[datetime, int, random.Random], str]]] = {
    "query-csv": (QUERY, _query),
    "dmon": (DMON, _dmon),
    "dcgmi-dmon": (DCGM_DMON, _dcgm_dmon),
    "dcgm-page": ("", _page),
    "dcgm-values": ("GPUId,TimeStampUs,Field,Values\n", _values),
}


def _rows(form: str) -> Iterator[str]:
    head, row = FORMS[form]
    yield head
    rng, at = random.Random(form), START
    while True:
        at += timedelta(seconds=1)
        for gpu in range(GPUS):
            yield row(at, gpu, rng)


def make(path: Path, form: str, size_mb: float) -> int:
    """Write about `size_mb` MB of a form; return how many rows of a GPU there are."""
    size, count = 0, -1
    with path.open("w") as file:
        for text in _rows(form):
            size, count = size + file.write(text), count + 1
            if size > size_mb * 1e6 and count % GPUS == 0:
                break
    return count
