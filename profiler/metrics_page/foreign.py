"""What a page holds that is not read here, in words for a refusal."""

from __future__ import annotations

import re
from collections import Counter

from stallscope.profiler.metrics_page.exposition import sample_of

READ = (
    "pages of vLLM, SGLang, TensorRT-LLM, Triton, TGI and llama.cpp are read: give the address "
    "of the engine's own /metrics"
)
_HTML = re.compile(r"\s*<(?:!doctype|html|head|body|\?xml)", re.IGNORECASE)
_JSON = re.compile(r"\s*[\[{]")
_FAMILY = re.compile(r"[^_:]+")
_LINES = 20_000  # of a page looked at; what it is shows long before
# Prefixes that do not name what wrote them.
_KNOWN = {
    "node": "node_exporter",
    "go": "a Go program",
    "python": "a Python program",
    "process": "a process",
    "prometheus": "Prometheus",
    "DCGM": "dcgm-exporter",
    "nv": "Triton",
    "kube": "kube-state-metrics",
    "container": "cAdvisor",
}
_OF_ANY = ("go", "python", "process", "promhttp", "http")  # client libraries add these to any page


def what_it_holds(text: str) -> str:
    """Say what a page is: nothing, HTML, metrics of something else, or no metrics at all."""
    if not text.strip():
        return "the page is empty"
    if _HTML.match(text):
        return "it is an HTML page"
    if _JSON.match(text):
        return "it is JSON (TensorRT-LLM's own server has its page at /prometheus/metrics)"
    metrics_of = _most_metrics(text)
    if metrics_of is None:
        return "it holds no metrics"
    return f"it holds metrics of {metrics_of}, and none of an engine"


def _most_metrics(text: str) -> str | None:
    """Name what most metrics of a page are of; None where there is none."""
    counts: Counter[str] = Counter()
    for line in text.splitlines()[:_LINES]:
        sample = sample_of(line)
        family = _FAMILY.match(sample.name) if sample is not None else None
        if family is not None:
            counts[family[0]] += 1
    if not counts:
        return None
    own = {k: n for k, n in counts.items() if k not in _OF_ANY} or counts
    most = max(own, key=lambda k: (own[k], k))
    return _KNOWN.get(most, f"{most}_…")


def page_kind(text: str) -> str | None:
    """Say of a file what it holds, if it is HTML or metrics of something else."""
    if _HTML.match(text):
        return "an HTML page"
    lines = text.splitlines()[:_LINES]
    metrics = sum(sample_of(line) is not None for line in lines)
    if not metrics or metrics < sum(bool(x.strip()) and x[0] != "#" for x in lines) / 2:
        return None
    return f"a page of metrics of {_most_metrics(text)}, and none of an engine"
