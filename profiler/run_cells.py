"""What a column and a cell of a table of runs say, in the ways in which people write them."""

from __future__ import annotations

import math
import re
import shlex
from typing import NamedTuple

from stallscope.profiler.bench_keys import RATES, SET, UNITS, is_outcome, keyed

# "tok/s", "pages/s", "output_tokens_per_s", "prefill (tok/s)"; "tpot_ms", "step (ms)", "ttft_s",
# "TPOT ms", "TTFT [ms]".
_PER_S = r"(?:/\s*s(?:ec(?:ond)?)?|_per_s(?:ec(?:ond)?)?| per s(?:ec(?:ond)?)?)"
_RATE = re.compile(rf"(?P<what>\w[\w ]*?)\s*{_PER_S}", re.IGNORECASE)
_RATE_OF = re.compile(
    rf"(?P<of>\w[\w ]*?),?\s*[(\[](?P<what>\w[\w ]*?)\s*{_PER_S}[)\]]", re.IGNORECASE
)
_TIME = re.compile(
    r"(?P<what>\w[\w .]*?)(?:_(?P<u>s|ms|us)|,?\s*[(\[](?P<v>s|ms|us|µs)[)\]]"
    r"|,?\s+(?P<w>ms|us|µs))",
    re.IGNORECASE,
)
_SCALE = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6}
_TOKENS = ("tok", "toks", "token", "tokens", "t")
_PROMPTS = ("prefill", "prompt", "prompts", "input", "pp")
_ANSWERS = ("tps", "decode", "generation", "output", "throughput", "tg")
# What a device or an engine showed while it ran. Nobody set it, so it tells no runs apart.
_READING = re.compile(
    r"util(?!.*memory)|usage|\bused\b|_used|busy|occupancy|temperature|busbw|algbw|%|percent|_pct"
    r"|\bpower\b(?!.*(?:limit|cap))|draw",
    re.IGNORECASE,
)
_NOT_READ = re.compile(r"memory[ _-]util", re.IGNORECASE)  # vLLM's --gpu-memory-utilization
_COMMAND = ("command", "cmd", "args", "arguments", "flags", "launch args", "launch_args")
# Short options of llama.cpp, by the names that they have here.
_SHORT = {"-t": "threads", "-tb": "threads_batch", "-ngl": "gpu_layers", "-c": "context"}
_SHORT |= {"-b": "batch_size", "-ub": "ubatch_size", "-np": "parallel", "-tp": "tensor_parallel"}
_TEST = re.compile(r"(?P<of>pp|tg)\d+(?: ?@ ?d\d+)?")  # llama-bench: pp512, tg128 @ d4096
_UNDER = re.compile(r"(?:n/?a)?[\s(]*(?:<|less than|under|below)\s*(?P<n>[\d.,]+)\s*\)?", re.I)
_SPREAD = re.compile(r"(?P<n>[\d.,]+)\s*(?:±|\+/-|\+-).*")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")


class FigureColumn(NamedTuple):
    """A figure by its name here, what a cell is multiplied with, and whether it is a time."""

    name: str
    scale: float
    is_time: bool


def figure_of(title: str) -> FigureColumn | None:
    """Read a column's heading as a figure's; None where it is a setting's or a reading's."""
    plain = title.strip()
    key = keyed(title)
    if key in SET:
        return None
    rate = RATES.get(key) or _rate(plain)
    if rate is not None:
        return FigureColumn(rate, 1.0, False)
    time = _TIME.fullmatch(plain)
    if time is None:
        return None
    return FigureColumn(
        f"{_plain(time['what'])}_s", _SCALE[(time["u"] or time["v"] or time["w"]).lower()], True
    )


def by_test(figure: FigureColumn | None, test: str | None) -> FigureColumn | None:
    """Name the tokens a second of llama-bench by its test: of prompts (pp) or generated (tg).

    One that mixes both (pp512+tg128) counts both kinds.
    """
    if figure is None or figure.name != "output_tokens_per_s" or test is None:
        return figure
    if re.fullmatch(r"pp\d+\+tg\d+.*", test):
        return figure._replace(name="total_tokens_per_s")
    kind = _TEST.fullmatch(test)
    return figure._replace(name="input_tokens_per_s") if kind and kind["of"] == "pp" else figure


def _rate(plain: str) -> str | None:
    """Name a rate whose heading ends in its unit; None where it does not."""
    of = _RATE_OF.fullmatch(plain)
    if of is not None:
        return _rate_of(_plain(of["of"]), _plain(of["what"]))
    rate = _RATE.fullmatch(plain)
    if rate is None:
        return None
    of_tokens, _, what = _plain(rate["what"]).rpartition("_")
    if of_tokens and what in _TOKENS:
        return _rate_of(of_tokens, what)
    what = _plain(rate["what"])
    return "output_tokens_per_s" if what in _TOKENS else f"{UNITS.get(what, what)}_per_s"


def _rate_of(of: str, what: str) -> str:
    """Name the rate of a thing: of tokens by whose they are, a known one by its name here."""
    if what in _TOKENS and of in _PROMPTS:
        return "input_tokens_per_s"
    if what in _TOKENS and of in _ANSWERS:
        return "output_tokens_per_s"
    return RATES.get(of, f"{of}_{'tokens' if what in _TOKENS else what}_per_s")


def setting_name(title: str) -> str:
    """Spell a setting as the table of known ones does: max_num_seqs, sm_clock_mhz."""
    return re.sub(r"[\s()-]+", "_", title.strip().lower().lstrip("-")).strip("_")


def is_reading(title: str) -> bool:
    """Tell whether a column holds what was seen and not what was set."""
    if is_outcome(title):
        return True
    return bool(_READING.search(title)) and not _NOT_READ.search(title)


def is_command(title: str) -> bool:
    """Tell whether a column holds command lines."""
    return title.strip().lower() in _COMMAND


def settings_of(command: str) -> dict[str, float | str]:
    """Take the options of a command line as settings: --max-num-seqs 16, -t 7."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    found: dict[str, float | str] = {}
    for word, after in zip(words, [*words[1:], "-"], strict=True):
        name, _, value = word.partition("=")
        if not name.startswith("-") or number(name) is not None:
            continue
        if not value:
            value = "on" if after.startswith("-") and number(after) is None else after
        read = number(value)
        found[_SHORT.get(name, setting_name(name))] = value if read is None else read
    return found


def number(cell: str) -> float | None:
    """Read a number; None where the cell is none that is finite."""
    plain = cell.replace(",", "") if _THOUSANDS.fullmatch(cell) else cell
    try:
        value = float(plain)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def measured(cell: str) -> tuple[float | None, bool]:
    """Read a figure's cell, and whether it says only what the figure is under: "< 0.1"."""
    under, spread = _UNDER.fullmatch(cell), _SPREAD.fullmatch(cell)
    if under is not None:
        return number(under["n"]), True
    return number(spread["n"] if spread is not None else cell), False


def _plain(text: str) -> str:
    return text.strip().lower().replace(" ", "_")
