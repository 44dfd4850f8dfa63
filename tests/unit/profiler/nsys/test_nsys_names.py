"""Names of kernels and of calls."""

from __future__ import annotations

import pytest

from stallscope.profiler.nsys.call_kinds import call_kind
from stallscope.profiler.nsys.kernel_names import short_kernel_name
from stallscope.profiler.trace.timeline import CallKind


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("ampere_sgemm_128x64_nn", "ampere_sgemm_128x64_nn"),
        ("void gemv2T<int, float, (int)128>(T13, T1 *)", "gemv2T<int, float, (int)128>"),
        ("void <unnamed>::softmax<(bool)0>(T2 *, const bool *)", "<unnamed>::softmax<(bool)0>"),
        # The lambda's parentheses are the template's, not the parameter list.
        ("void at::k<f(at::T &)::[lambda(int) (instance 1)]>(int, T1)",
         "at::k<f(at::T &)::[lambda(int) (instance 1)]>"),
        ("void at::k<&f(int)>()", "at::k<&f(int)>"),
        ("void ns::(anonymous namespace)::k<int>(T1)", "ns::(anonymous namespace)::k<int>"),
        ("void F::operator ()(int) const", "F::operator ()"),
        ("cut short after so many letters(int, (", "cut short after so many letters(int, ("),
        ("(odd)", "(odd)"),
        ("", ""),
    ],
)  # fmt: skip
def test_names_lose_their_parameters_and_keep_their_template(name: str, short: str) -> None:
    assert short_kernel_name(name) == short


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (CallKind.LAUNCH, "cudaLaunchKernel_v7000 cudaLaunchKernelExC_v11060 cuLaunchKernel "
         "cuLaunchKernelEx cudaLaunchCooperativeKernel_v9000 cudaLaunchKernel_ptsz_v7000 "
         "hipLaunchKernel hipModuleLaunchKernel hipExtModuleLaunchKernel cudaLaunch_v3020"),
        (CallKind.GRAPH_LAUNCH, "cudaGraphLaunch_v10000 cuGraphLaunch hipGraphLaunch"),
        (CallKind.SYNC, "cudaDeviceSynchronize_v3020 cudaStreamSynchronize_v3020 "
         "cudaEventSynchronize_v3020 cuCtxSynchronize cuStreamSynchronize_ptsz "
         "hipStreamSynchronize cudaThreadSynchronize_v3020"),
        (CallKind.COPY, "cudaMemcpyAsync_v3020 cudaMemcpy_v3020 cuMemcpyHtoDAsync_v2 "
         "cudaMemsetAsync_v3020 cuMemsetD32Async cudaMemPrefetchAsync_v8000 hipMemcpyAsync"),
        (CallKind.ALLOC, "cudaMalloc_v3020 cudaFree_v3020 cudaHostAlloc_v3020 cuMemAlloc_v2 "
         "cudaMallocAsync_v11020 cuMemFreeHost cudaFreeHost_v3020 cuMemCreate cuMemMap "
         "cuMemUnmap cuMemRelease"),
        (CallKind.CAPTURE, "cudaStreamBeginCapture_v10000 cudaStreamEndCapture_v10000 "
         "cudaGraphInstantiate_v10000 cuGraphInstantiateWithFlags hipStreamBeginCapture"),
        (CallKind.OTHER, "cudaStreamIsCapturing_v10000 cudaEventRecord_v3020 cuGetProcAddress_v2 "
         "cudaStreamWaitEvent_v3020 cudaEventQuery_v3020 cuModuleGetLoadingMode cudaGraphUpload "
         "cudaMemGetInfo_v3020 cuLaunchHostFunc cudaLaunchHostFunc_v10000 somethingElse"),
    ],
    ids=lambda value: value.name if isinstance(value, CallKind) else "",
)  # fmt: skip
def test_calls_are_told_apart_by_name(kind: CallKind, names: str) -> None:
    assert {name: call_kind(name) for name in names.split()} == dict.fromkeys(names.split(), kind)
