"""How far an uncalibrated prediction may be off, by what public runs showed."""

from __future__ import annotations

from stallscope.analyzers.cost.weight_formats import QUANTISED
from stallscope.profiler.spec import Subject

# Relative to what was measured. They were chosen on the 116 runs of vLLM that
# benchmarks/public_tables.py holds them against, so that these are no independent evidence of them.
_PLAIN = 0.30  # 16 or 32 bit throughout: none of 56 was further off
_QUANTISED = 0.50  # kernels for other formats differ more: 39 of 40 on a chip that has fp8
_CONVERTED = 0.90  # a cache in a format that the chip cannot compute with: conversion took up to
# nine tenths of the time, all on the slow side


def expected_error(subject: Subject) -> float:
    """Return the relative error within which at least 85 % of public runs lay."""
    peaks = subject.device.peak_flops if subject.device is not None else {}
    if subject.kv_dtype in QUANTISED:
        return _QUANTISED if subject.kv_dtype in peaks else _CONVERTED
    return _QUANTISED if subject.dtype in QUANTISED else _PLAIN
