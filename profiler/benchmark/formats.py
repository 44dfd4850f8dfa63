"""Which tool wrote a row of results: told by its keys."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from stallscope.errors import InputError
from stallscope.profiler.benchmark import (
    genai_perf,
    guidellm,
    inference_perf,
    inferencemax,
    ollama,
    printed,
    printed_trtllm,
    serving,
    trtllm,
)
from stallscope.profiler.benchmark.figures import Row, text
from stallscope.profiler.spec import Subject
from stallscope.profiler.trial import Trial


def _nothing(row: Row) -> Subject:
    return Subject()


def _silent(row: Row) -> Iterator[str]:
    return iter(())


def _model_id(row: Row) -> str | None:
    return text(row, "model_id", "model")


@dataclass(frozen=True, slots=True)
class Format:
    """One tool's results; `holds` tells its rows from others."""

    tool: str
    holds: Callable[[Row], bool]
    trials: Callable[[Row, str], Iterator[Trial]]
    model: Callable[[Row], str | None] = _model_id
    subject: Callable[[Row], Subject] = _nothing
    notes: Callable[[Row], Iterator[str]] = _silent


FORMATS = (
    Format("trtllm-bench", trtllm.is_report, trtllm.trials, trtllm.model, trtllm.subject),
    Format("guidellm", guidellm.is_report, guidellm.trials, guidellm.model),
    Format("inference-perf", inference_perf.is_summary, inference_perf.trials),
    Format("genai-perf or AIPerf", genai_perf.is_export, genai_perf.trials, genai_perf.model),
    Format(
        "InferenceX",
        inferencemax.is_aggregate,
        inferencemax.trials,
        inferencemax.model,
        inferencemax.subject,
    ),
    Format("bench serve, as printed", printed.is_printed, serving.trials),
    Format("bench serve", serving.is_serving, serving.trials),
    Format("Ollama", ollama.is_response, ollama.trials, notes=ollama.notes),
)
# Keys of which one stands near the beginning of every form, however long its arrays are.
_KEYS = re.compile(
    r'"(?:mean|median)_(?:ttft|ttlt|tpot|itl|e2el|e2e_latency)(?:_ms)?"\s*:'
    r'|"total_input_tokens"\s*:|"request_throughput_req_s"\s*:|"guidellm_version"\s*:'
    r'|"generative_benchmark"|"load_summary"\s*:|"eval_duration"\s*:\s*\d'
    r'|"(?:request_throughput|request_latency|output_token_throughput)"\s*:\s*\{'
)


def has_results(head: str) -> bool:
    """Tell whether text begins like the results of a benchmark."""
    return genai_perf.HEADER.match(head) is not None or (
        head.lstrip()[:1] in ("{", "[") and _KEYS.search(head) is not None
    )


def format_of(row: Row) -> Format | None:
    """Return the format of a row, None if it is of none."""
    return next((f for f in FORMATS if f.holds(row)), None)


def rows_of(content: str, where: str) -> tuple[list[Row], bool]:
    """Return the rows of a file, and whether its last one is cut.

    An object, a list of them, or one on each line; or printed blocks among other text. Raises
    InputError for other JSON.
    """
    if genai_perf.HEADER.match(content):
        return [genai_perf.row_of_csv(content)], False
    try:
        return _objects([json.loads(content)]), False
    except RecursionError:
        raise InputError(f"{where}: not valid JSON: nested too deeply") from None
    except ValueError as error:
        if has_printed(content):
            return _printed(content, where)
        return _lines(content, where, error)


def has_printed(text: str) -> bool:
    """Tell whether text holds what a benchmark printed when it was done."""
    return any(tool.has_printed(text) for tool in (printed, printed_trtllm, ollama))


def blocks_of(lines: Sequence[str]) -> list[printed.Block]:
    """Return what benchmarks printed among other lines, in its order."""
    found = [b for tool in (printed, printed_trtllm, ollama) for b in tool.blocks_of(lines)]
    return sorted(found, key=lambda block: block.places)


def _printed(content: str, where: str) -> tuple[list[Row], bool]:
    """Return the rows of printed blocks, and of JSON that stands before or between them."""
    lines = content.splitlines(keepends=True)
    blocks = list(blocks_of(lines))
    taken = {place for block in blocks for place in block.places}
    rest = "".join(line for place, line in enumerate(lines) if place not in taken)
    rows, is_cut = rows_of(rest, where) if has_results(rest) else ([], False)
    return [*rows, *(block.row for block in blocks)], is_cut


def _lines(content: str, where: str, error: ValueError) -> tuple[list[Row], bool]:
    values: list[object] = []
    lines = [line for line in content.splitlines() if line.strip()]
    for i, line in enumerate(lines):
        try:
            values.append(json.loads(line))
        except (ValueError, RecursionError):
            if values and i == len(lines) - 1:
                return _objects(values), True
            raise InputError(f"{where}: not valid JSON ({error}); copy the file whole") from None
    return _objects(values), False


def _objects(values: Sequence[object]) -> list[Row]:
    flat = [v for value in values for v in (value if isinstance(value, list) else [value])]
    return [v for v in flat if isinstance(v, dict)]
