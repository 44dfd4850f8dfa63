"""What the doctor looks at in a Python of its own: prints the facts as one line of JSON."""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version

from stallscope.profiler.doctor.nvml_look import look_at_nvml

Facts = dict[str, object]
_RANGES = 1_000


def look_at_torch() -> Facts:
    """Import torch and count its devices; no context is made on any of them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        import torch

        return {
            "version": torch.__version__,
            "cuda": torch.version.cuda,
            "hip": torch.version.hip,
            "devices": torch.cuda.device_count() if torch.cuda.is_available() else 0,
            "warnings": [str(warning.message) for warning in caught if "CUDA" in str(warning)],
        }


def look_at_transformers() -> Facts:
    """Import what the runner's engine needs; the bare package imports nothing that can fail."""
    from transformers import AutoModelForCausalLM  # noqa: F401

    return {"version": version("transformers")}


def look_at_matplotlib() -> Facts:
    """Import matplotlib as the plots do."""
    import matplotlib.figure

    return {"version": matplotlib.__version__}


def look_at_nvtx() -> Facts:
    """Import nvtx and time a range."""
    import nvtx  # type: ignore[import-untyped]

    span = nvtx.annotate(message="doctor", domain="stallscope")
    start_ns = time.perf_counter_ns()
    for _ in range(_RANGES):
        with span:
            pass
    cost_ns = (time.perf_counter_ns() - start_ns) / _RANGES
    return {"version": version("nvtx"), "range_ns": cost_ns}


LOOKS: dict[str, Callable[[], Facts]] = {
    "matplotlib": look_at_matplotlib,
    "nvml": look_at_nvml,
    "nvtx": look_at_nvtx,
    "torch": look_at_torch,
    "transformers": look_at_transformers,
}


def main() -> None:
    """Print the facts that the argument names."""
    try:
        facts = LOOKS[sys.argv[1]]()
    except ModuleNotFoundError as error:
        facts = {"no_module": error.name}
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
