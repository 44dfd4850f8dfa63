"""The dtype of weights where nobody states it: the checkpoint's own, if it is the one that ran."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from stallscope.profiler.capture import Capture
from stallscope.profiler.spec import Subject


def with_own_dtype(capture: Capture) -> tuple[Subject, tuple[str, ...]]:
    """Take weights to be as the checkpoint has them where nothing tells; return what to say of it.

    Not for fp32: engines convert it, vLLM to fp16 (its --dtype auto). Nor where a log names a
    method of quantization and the checkpoint's config none: then it is another checkpoint's.
    """
    subject = capture.subject
    model = subject.model
    if model is None or subject.dtype is not None or model.dtype in (None, "fp32"):
        return subject, ()
    if method_of(capture) is not None and model.quantization is None:
        return subject, ()
    said = f"The weights are taken to be {model.dtype}, as the model's config says; --dtype "
    return dataclasses.replace(subject, dtype=model.dtype), (f"{said}corrects it.",)


def method_of(capture: Capture) -> str | None:
    """Return the method by which a log says that the weights are quantized."""
    log = capture.meta.get("server_log")
    method = log.get("quantization") if isinstance(log, Mapping) else None
    return method if isinstance(method, str) and method != "None" else None
