"""What a reading of a log leaves out: values that cannot be, and lines of other servers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from stallscope.profiler.server_log.lines import Line

_SUSPECT = re.compile(
    r": -?(?:nan|inf)\b|: -\d|: \d{13}|: \d[\d.]{0,40}e[-+\d]|KV cache usage: \d{3}"
    r"|(?:token|mamba) usage: [1-9]"
)
_STATED = re.compile(
    r"(Running|Waiting|Pending|Swapped|KV cache usage|Avg prompt throughput"
    r"|Avg generation throughput|token usage|mamba usage|#running-req|#queue-req)"
    r": (-?(?:nan|inf)\b|-?\d{1,40}(?:\.\d{1,20})?(?:e[-+]?\d{1,3})?)"
)
_NO_MORE = 1e12  # of requests or tokens a second, as many digits as are read
_MOST: Mapping[str, float] = {"KV cache usage": 100.0, "token usage": 1.0, "mamba usage": 1.0}
# What only the server itself writes, while it serves.
_OF_A_SERVER: Mapping[str, tuple[str, ...]] = {
    "vllm": ("Running: ", " reqs, "),
    "sglang": ("#running-req: ",),
    "tensorrt-llm": ("iter = ", "global_rank"),
    "llama.cpp": ("eval time", " ms /"),
}


def impossible(lines: Sequence[Line]) -> Iterator[str]:
    """Say of each gauge how often it stands below nothing, above its whole, or as no number.

    An engine prints no exponents; what has one is not read as a gauge either.
    """
    found: dict[str, list[str]] = {}
    for line in lines:
        if _SUSPECT.search(line.text) is None:
            continue
        for name, value in _STATED.findall(line.text):
            if not 0 <= float(value) <= _MOST.get(name, _NO_MORE) or "e" in value:
                found.setdefault(name, []).append(value)
    for name, values in found.items():
        times = "once" if len(values) == 1 else f"{len(values):,} times"
        yield f'The log states "{name}: {values[0]}" or the like {times}: that cannot be, not used.'


def of_others(engine: str | None, lines: Sequence[Line]) -> Iterator[str]:
    """Say that a log holds another server's lines too, which are not read with this one's."""
    for other, marks in _OF_A_SERVER.items():
        count = sum(all(mark in line.text for mark in marks) for line in lines)
        if engine is not None and other != engine and count:
            what = "1 line" if count == 1 else f"{count:,} lines"
            yield (
                f"The log also holds {what} of a server of {other}: only those of {engine} were "
                "read; give each server's log alone."
            )
