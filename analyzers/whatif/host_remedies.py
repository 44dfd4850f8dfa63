"""What to do about a device that waits for its host, by what the host did meanwhile."""

from __future__ import annotations

from collections.abc import Mapping

from stallscope.analyzers.host_idle import HostIdle, evidence_of, host_idle
from stallscope.analyzers.result import Remedy, WontHelp
from stallscope.analyzers.whatif.engine_flags import GRAPHS
from stallscope.analyzers.words import percent
from stallscope.profiler.evidence import Measure

_LAUNCH_LESS = Remedy(
    "launch less from Python: CUDA graphs or compilation",
    GRAPHS,
    None,
    "host time per step falls; a kernel trace shows the gaps closing",
    ("host_per_step", *evidence_of("launch")),
    cost="memory for the graphs, and a longer start",
)
# Most kernels come from CUDA graphs already.
_LARGER_GRAPHS = Remedy(
    "launch fewer, larger CUDA graphs: a whole step in each, and nothing eager between them",
    {
        "vllm": "cudagraph_mode FULL_AND_PIECEWISE in --compilation-config",
        "pytorch": "torch.compile(mode='reduce-overhead', fullgraph=True)",
    },
    None,
    "fewer graph launches a step; a kernel trace shows the gaps closing",
    ("kernels_in_graphs", *evidence_of("launch")),
    cost="memory for the graphs, a longer start, and models that cannot be captured whole",
)
_LATER = {
    "nsys": "--delay SECONDS, or --capture-range=cudaProfilerApi",
    "pytorch": "torch.profiler.schedule(wait=…, warmup=…, active=…)",
}
_BY_CAUSE: Mapping[str, tuple[Remedy, ...]] = {
    "first": (
        Remedy(
            "trace again after a warm-up: first launches load code and try out kernels",
            _LATER,
            None,
            "idle_in_launch falls to microseconds a kernel: then it was the start-up",
            evidence_of("first"),
            cost="another trace",
        ),
    ),
    "operators": (
        Remedy(
            "find the operators that compute on the host, and move them to the device or out of "
            "the steps",
            {"pytorch": "key_averages().table(sort_by='self_cpu_time_total')"},
            None,
            "idle_in_operator falls in a new trace",
            evidence_of("operators"),
            cost="a change of the model's or the engine's code",
        ),
    ),
    "copy": (
        Remedy(
            "copy from pinned memory and asynchronously, ahead of the step that needs it",
            {"pytorch": "tensor.pin_memory(), then .to(device, non_blocking=True)"},
            None,
            "idle_in_copy and pageable_share fall in a new trace",
            (*evidence_of("copy"), "pageable_share", "host_to_device_bytes"),
            cost="pinned memory, which the system cannot page out",
        ),
    ),
    "alloc": (
        Remedy(
            "trace again after a warm-up: allocating is what a start-up does",
            _LATER,
            None,
            "idle_in_alloc is gone: then it was the start-up, and the rest limits the steps",
            evidence_of("alloc"),
            cost="another trace",
        ),
        Remedy(
            "where it stays, allocate once and keep it: no empty_cache() and no growing buffers",
            {"pytorch": "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"},
            None,
            "no cudaMalloc or cudaFree within a step of a new trace",
            evidence_of("alloc"),
            cost="memory that stays taken",
        ),
    ),
    "capture": (
        Remedy(
            "trace again after the CUDA graphs are captured, and capture them once, at start-up",
            _LATER,
            None,
            "idle_in_capture is gone in a new trace",
            evidence_of("capture"),
            cost="another trace",
        ),
    ),
    "sync": (
        Remedy(
            "wait for the device less often: no .item(), .cpu() or .tolist() within a step",
            {
                "pytorch": "torch.cuda.set_sync_debug_mode('warn') names the places",
                "vllm": "--async-scheduling",
                "sglang": "remove --disable-overlap-schedule",
            },
            None,
            "idle_in_sync falls in a new trace",
            evidence_of("sync"),
            cost="results are seen a step later; a change of code, or of options",
        ),
    ),
    "wait": (
        Remedy(
            "find what the host waits for (a lock, a file, a socket, another process), and take "
            "it out of the steps",
            {
                "nsys": "-t cuda,nvtx,osrt names the calls",
                "any": "py-spy dump --pid PID --native shows where threads stand",
            },
            None,
            "idle_in_wait falls in a new trace",
            evidence_of("wait"),
            cost="another trace, which slows the host while it runs",
        ),
    ),
    "unseen": (
        Remedy(
            "find out first what the host does meanwhile: nothing that was traced says so",
            {
                "nsys": "-t cuda,nvtx,osrt --sample=process-tree --python-sampling=true",
                "pytorch": "ProfilerActivity.CPU besides CUDA, with_stack=True for a few steps",
                "any": "py-spy record --pid PID",
            },
            None,
            "idle_in_unseen falls, and its time stands under a cause that can be mended",
            evidence_of("unseen"),
            cost="another trace, which slows the host while it runs",
        ),
    ),
}
_SHORTER = "kernels that run for less than a launch takes get shorter, and wait as long for it"
_MOSTLY = 0.5  # of the kernels


def host_remedies(found: Mapping[str, Measure]) -> list[Remedy]:
    """Follow the trace's causes, the largest first; without a trace, what mostly helps."""
    idle = host_idle(found)
    return [r for cause in (idle.causes if idle else ("launch",)) for r in _remedies(cause, found)]


def _remedies(cause: str, found: Mapping[str, Measure]) -> tuple[Remedy, ...]:
    if cause != "launch":
        return _BY_CAUSE[cause]
    in_graphs = found.get("kernels_in_graphs")
    has_graphs = in_graphs is not None and in_graphs.value > _MOSTLY
    return (_LARGER_GRAPHS if has_graphs else _LAUNCH_LESS,)


def wont_help_the_host(found: Mapping[str, Measure]) -> tuple[WontHelp, ...]:
    """Name two popular fixes that leave the device waiting, with the trace's numbers."""
    faster = WontHelp("a faster GPU", "it would wait for the host longer")
    idle = host_idle(found)
    if idle is None:
        is_stepped = "host_per_step" in found
        why = "the time is not spent reading weights" if is_stepped else _SHORTER
        return (faster, WontHelp("quantisation", why))
    if "launch" in idle.causes or not idle.shares:
        return (faster, WontHelp("quantisation", _only_kernels(found)))
    return (
        WontHelp("CUDA graphs or compilation", _hardly_launches(idle)),
        WontHelp("a faster GPU or quantisation", _only_kernels(found)),
    )


def _only_kernels(found: Mapping[str, Measure]) -> str:
    busy = found.get("gpu_busy")
    if busy is None:
        return "it shortens kernels, and the device waits between them"
    return f"it shortens kernels, and those run in {_little(busy.value)} of the time"


def _little(share: float) -> str:
    return "less than 1 %" if share < 0.01 else f"only {percent(share)}"


def _hardly_launches(idle: HostIdle) -> str:
    launch = idle.shares.get("launch", 0.0)
    return (
        f"launching kernels one by one explains {_little(launch)} of the window, of which the "
        f"device waited {percent(idle.total)}"
    )
