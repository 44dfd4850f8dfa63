"""llama.cpp's timings, printed at the end of each request.

common/ and tools/server: "prompt eval time = 15.62 ms / 12 tokens (…)" and "eval time = 3194.22 ms
/ 783 runs" ("tokens" since 2024, "generation eval time" before).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stallscope.profiler.capture import EngineSample
from stallscope.profiler.server_log.lines import Line
from stallscope.profiler.server_log.sought import NUMBER, sought

_TIMED = sought(
    rf"\b(prompt )?eval time\s*=\s*{NUMBER} ms /\s*(\d{{1,12}}) (?:tokens|runs)",
    "eval time",
    before=7,
)


@dataclass(frozen=True, slots=True)
class Timings:
    """Sums over requests: seconds in prompts and in generation, and their tokens."""

    requests: int
    prompt_s: float
    prompt_tokens: int
    output_s: float
    output_tokens: int


def read_timings(lines: Sequence[Line]) -> tuple[Timings | None, list[EngineSample]]:
    """Return the sums, and counters that rise where each request ended."""
    prompts = prompt_tokens = outputs = output_tokens = requests = 0.0
    found = []
    for line in lines:
        timed = _TIMED.search(line.text)
        if timed is None:
            continue
        seconds, tokens = float(timed.group(2)) / 1e3, int(timed.group(3))
        if timed.group(1):
            prompts, prompt_tokens = prompts + seconds, prompt_tokens + tokens
            found.append(EngineSample(line.t_ns, "0", "input_tokens_total", prompt_tokens))
        else:
            outputs, output_tokens = outputs + seconds, output_tokens + tokens
            requests += 1
            found.append(EngineSample(line.t_ns, "0", "output_tokens_total", output_tokens))
    if not found:
        return None, []
    counts = int(requests), prompts, int(prompt_tokens), outputs, int(output_tokens)
    return Timings(*counts), found


def sentence(found: Timings | None) -> str | None:
    """Say how fast prompts and tokens went."""
    if found is None or not found.output_s or not found.output_tokens:
        return None
    said = f"llama.cpp timed {found.requests} request{'s' if found.requests != 1 else ''}: "
    if found.prompt_s:
        said += f"prompts at {found.prompt_tokens / found.prompt_s:,.0f} tokens/s, "
    rate = found.output_tokens / found.output_s
    return said + f"generation at {rate:,.1f} tokens/s ({1e3 / rate:.2f} ms each)."
