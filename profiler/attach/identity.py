"""What a server says of itself besides its metrics: its version, its model, the longest request."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, NamedTuple

from stallscope.profiler.attach.failures import FetchFailed
from stallscope.profiler.attach.fetch import Fetcher
from stallscope.profiler.capture import Capture

_LONGEST = 200  # letters of a name
_VERSION, _MODELS = "version", "v1/models"  # of vLLM, SGLang and others that speak OpenAI's API


class Identity(NamedTuple):
    """What was told; None where it was not. `model` is what was loaded, not an alias for it."""

    version: str | None = None
    model: str | None = None
    max_model_len: int | None = None


def ask_identity(fetcher: Fetcher) -> Identity:
    """Ask once for the version and once for the models; a server need not answer either."""
    page = fetcher.address.target.partition("?")[0].rstrip("/")
    base = page.rpartition("/")[0]
    told = _object(fetcher, f"{base}/{_VERSION}")
    models = _object(fetcher, f"{base}/{_MODELS}").get("data")
    rows = [m for m in models if isinstance(m, dict)] if isinstance(models, list) else []
    # Adapters name what they are an adapter of.
    own = next((m for m in rows if not m.get("parent")), {})
    length = own.get("max_model_len")
    return Identity(
        _text(told.get("version")),
        _text(own.get("root")) or _text(own.get("id")),
        length if isinstance(length, int) and not isinstance(length, bool) and length > 0 else None,
    )


def _object(fetcher: Fetcher, target: str) -> dict[str, Any]:
    try:
        answer = fetcher.get(target)
        found = json.loads(answer.body) if answer.status == 200 else {}
    except (FetchFailed, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _text(value: object) -> str | None:
    if not isinstance(value, str) or not value.isprintable() or len(value) > _LONGEST:
        return None
    return value.strip() or None


def with_identity(capture: Capture, found: Identity) -> Capture:
    """Lay over a capture what its server says of itself."""
    told = {name: value for name, value in found._asdict().items() if value is not None}
    if not told:
        return capture
    subject = capture.subject
    if found.model is not None:
        subject = replace(subject, workload=f"serving {found.model}")
    details = [f"{subject.engine or 'version'} {found.version}"] if found.version else []
    if found.max_model_len:
        details.append(f"requests of up to {found.max_model_len:,} tokens")
    if details:
        workload = f"{subject.workload or 'serving'} ({', '.join(details)})"
        subject = replace(subject, workload=workload)
    return replace(capture, subject=subject, meta={**capture.meta, "server": told})
