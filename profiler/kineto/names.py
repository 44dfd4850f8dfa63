"""What the names of kernels, runtime calls and copies in a Kineto trace say."""

from __future__ import annotations

import re

from stallscope.profiler.trace.timeline import CallKind, CopyKind

# Old files (PyTorch 1.8 to 1.10) capitalise categories and name them otherwise.
_OLD_CATEGORIES = {
    "kernel": "kernel",
    "memcpy": "gpu_memcpy",
    "memset": "gpu_memset",
    "runtime": "cuda_runtime",
    "operator": "cpu_op",
}
CALLS = frozenset(
    f"{maker}_{layer}"
    for maker in ("cuda", "hip", "mtia", "xpu", "glow", "privateuse1")
    for layer in ("runtime", "driver")
)

# First match wins. Names with and without a version at their end ("_v2", "_ptsz").
_CALL_KINDS: tuple[tuple[re.Pattern[str], CallKind], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), kind)
    for pattern, kind in (
        (r"BeginCapture|EndCapture|GraphInstantiate|CaptureToGraph", CallKind.CAPTURE),
        (r"GraphLaunch", CallKind.GRAPH_LAUNCH),
        (r"Launch\w*(Kernel|Grid|Function|HostFunc)|^runFunction", CallKind.LAUNCH),
        (r"Synchronize", CallKind.SYNC),
        (r"Memcpy|Memset", CallKind.COPY),
        (r"Malloc|HostAlloc|Free(?!z)|Mem(Alloc|Create|Map|Unmap|Release|Address)", CallKind.ALLOC),
    )
)

_COPY = re.compile(r"Memcpy ([HDAP])to([HDAP])\b(?: \((\w+) -> (\w+)\))?")
_DIRECTIONS = {
    ("H", "D"): CopyKind.HOST_TO_DEVICE,
    ("D", "H"): CopyKind.DEVICE_TO_HOST,
    ("D", "D"): CopyKind.WITHIN_DEVICE,
    ("P", "P"): CopyKind.BETWEEN_DEVICES,
}
_SPELLED_OUT = {  # roctracer's and MTIA's names
    "hosttodevice": CopyKind.HOST_TO_DEVICE,
    "devicetohost": CopyKind.DEVICE_TO_HOST,
    "devicetodevice": CopyKind.WITHIN_DEVICE,
    "peertopeer": CopyKind.BETWEEN_DEVICES,
}
NOT_KNOWN = 255


def category(name: str | None) -> str:
    """Return a category by its present name; "" where there is none."""
    if name is None:
        return ""
    return _OLD_CATEGORIES.get(name.lower(), name) if name[:1].isupper() else name


def call_kind(name: str) -> CallKind:
    """Tell what a call of a CUDA, HIP or MTIA runtime or driver asks for."""
    return next((kind for pattern, kind in _CALL_KINDS if pattern.search(name)), CallKind.OTHER)


def copy_kind(name: str) -> tuple[CopyKind, int]:
    """Tell which way a copy went, and whether host memory was pageable: 1, 0, or 255 not known."""
    if "memset" in name.lower():
        return CopyKind.MEMSET, NOT_KNOWN
    found = _COPY.match(name)
    if found is not None:
        kind = _DIRECTIONS.get((found[1], found[2]), CopyKind.OTHER)
        ends = {found[3], found[4]}
        if "Pageable" in ends:
            return kind, 1
        return kind, 0 if "Pinned" in ends else NOT_KNOWN
    letters = re.sub(r"[^a-z]", "", name.lower())
    kind = next((k for word, k in _SPELLED_OUT.items() if word in letters), CopyKind.OTHER)
    return kind, NOT_KNOWN


def short_name(name: str) -> str:
    """Return a kernel's name without its return type and parameters, with its template."""
    name = name.removeprefix("void ").strip()
    if not name.endswith(")"):
        return name
    depth = 0
    for place in range(len(name) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(name[place], 0)
        if depth == 0:
            head = name[:place].rstrip()
            is_whole = head and (head[-1].isalnum() or head[-1] in "_>)") and _is_closed(head)
            return head if is_whole else name
    return name


def _is_closed(head: str) -> bool:
    """Tell whether no template is open: "f<(anonymous namespace)" keeps its parenthesis."""
    plain = head.replace("->", "").replace("operator<", "").replace("operator>", "")
    return plain.count("<") == plain.count(">")
