"""What a call into the CUDA runtime or driver asks for, by its name."""

from __future__ import annotations

import re

from stallscope.profiler.trace.timeline import CallKind

# Names end in the API's version ("cudaLaunchKernel_v7000"), in _ptsz or _ptds where the default
# stream is per thread. The first row that matches decides.
_KINDS = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        (CallKind.GRAPH_LAUNCH, r"(cuda|cu|hip)GraphLaunch"),
        (
            CallKind.CAPTURE,
            r"(cuda|cu|hip)(Stream(BeginCapture|EndCapture)|GraphInstantiate)",
        ),
        (
            CallKind.LAUNCH,
            r"(cuda|cu|hip)(Ext)?(Module)?Launch(Kernel|CooperativeKernel|Grid|_|$)|cudaLaunch$",
        ),
        (
            CallKind.SYNC,
            r"(cuda|cu|hip)(Device|Stream|Event|Ctx|Context|Thread)Synchronize",
        ),
        (CallKind.COPY, r"(cuda|cu|hip)(Mem(cpy|set|Prefetch))"),
        (
            CallKind.ALLOC,
            r"(cuda|cu|hip)(Malloc|Free|HostAlloc|HostRegister|HostUnregister"
            r"|Mem(Alloc|Free|HostAlloc|HostRegister|HostUnregister|Create|Release|Map|Unmap"
            r"|AddressReserve|AddressFree|SetAccess|PoolCreate|PoolTrim))",
        ),
    )
)


def call_kind(name: str) -> CallKind:
    """Return the kind of the call of this name, OTHER where it waits for and asks for nothing."""
    return next((kind for kind, pattern in _KINDS if pattern.match(name)), CallKind.OTHER)
