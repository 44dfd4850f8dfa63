"""What SGLang says at its start of the memory that weights and the KV pool take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stallscope.profiler.server_log.lines import Line
from stallscope.profiler.server_log.sought import sought

MARKS = ("KV Cache is", "Load weight end")
_GIB = 1 << 30  # it prints GB and divides by 2^30
_POOL = sought(
    r"KV Cache is allocated\. (?:dtype: [\w.]{1,40}, )?#tokens: (\d{1,12}), "
    r"(?:K size: (\d{1,6}\.\d{1,4}) GB, V size: (\d{1,6}\.\d{1,4}) GB"
    r"|KV size: (\d{1,6}\.\d{1,4}) GB)",
    "KV Cache is allocated",
)
_WEIGHTS = sought(
    r"Load weight end\. .{0,200}?type=(\w{1,100}),.{0,200}?mem usage=(\d{1,6}\.\d{1,4}) GB",
    "Load weight end",
)


def read_memory(lines: Sequence[Line]) -> Mapping[str, float]:
    """Return `weights_bytes` of the model, and `kv_bytes` of a pool that is one.

    A draft model is loaded after the model. Layers with a window, and a draft model, have pools of
    their own: then no bytes are of the tokens that the engine counts.
    """
    found: dict[str, float] = {}
    pools = {pool for line in lines if (pool := _pool(line.text)) is not None}
    if len(pools) == 1:
        found["kv_tokens"], found["kv_bytes"] = pools.pop()
    kind = None
    for line in lines:
        loaded = _WEIGHTS.search(line.text)
        if loaded is not None and kind in (None, loaded.group(1)):
            kind = loaded.group(1)
            found["weights_bytes"] = float(loaded.group(2)) * _GIB
    return {name: value for name, value in found.items() if value > 0}


def _pool(text: str) -> tuple[float, float] | None:
    found = _POOL.search(text)
    if found is None:
        return None
    tokens, *sizes = found.groups()
    return float(tokens), sum(float(size) for size in sizes if size is not None) * _GIB
