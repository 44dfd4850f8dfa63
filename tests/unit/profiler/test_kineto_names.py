"""Names of calls, copies and kernels as CUDA, HIP and MTIA traces spell them."""

from __future__ import annotations

import pytest

from stallscope.profiler.kineto.names import NOT_KNOWN, call_kind, copy_kind, short_name
from stallscope.profiler.trace.timeline import CallKind, CopyKind


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (
            CallKind.LAUNCH,
            "cudaLaunchKernel cudaLaunchKernelExC cuLaunchKernel cuLaunchKernelEx hipLaunchKernel "
            "hipExtModuleLaunchKernel hipModuleLaunchKernel cudaLaunchCooperativeKernel "
            "hipExtLaunchKernel cudaLaunchKernel_ptsz hipLaunchCooperativeKernel",
        ),
        (
            CallKind.GRAPH_LAUNCH,
            "cudaGraphLaunch cudaGraphLaunch_ptsz hipGraphLaunch cuGraphLaunch",
        ),
        (
            CallKind.SYNC,
            "cudaDeviceSynchronize cudaStreamSynchronize cudaEventSynchronize hipDeviceSynchronize "
            "hipStreamSynchronize cuCtxSynchronize synchronizeStream synchronize",
        ),
        (CallKind.COPY, "cudaMemcpyAsync hipMemcpyWithStream cudaMemsetAsync cuMemcpyDtoHAsync_v2"),
        (
            CallKind.ALLOC,
            "cudaMalloc cudaFree cudaHostAlloc cuMemCreate cuMemMap hipFree hipMalloc "
            "cudaMallocAsync cuMemAddressReserve cudaFreeAsync",
        ),
        (
            CallKind.CAPTURE,
            "cudaStreamBeginCapture cudaStreamEndCapture cudaGraphInstantiateWithFlags "
            "hipStreamBeginCapture hipStreamEndCapture hipGraphInstantiateWithFlags",
        ),
        (
            CallKind.OTHER,
            "cudaEventRecord cudaStreamWaitEvent cudaStreamIsCapturing cudaDeviceGetAttribute "
            "hipGetDevicePropertiesR0600 hipStreamGetCaptureInfo cudaGetFuncBySymbol recordEvent "
            "hipGraphDestroy cudaOccupancyMaxActiveBlocksPerMultiprocessor",
        ),
    ],
)
def test_a_call_says_what_it_asks_for(kind: CallKind, names: str) -> None:
    assert {name: call_kind(name) for name in names.split()} == dict.fromkeys(names.split(), kind)


@pytest.mark.parametrize(
    ("name", "kind", "pageable"),
    [
        ("Memcpy HtoD (Pageable -> Device)", CopyKind.HOST_TO_DEVICE, 1),
        ("Memcpy HtoD (Pinned -> Device)", CopyKind.HOST_TO_DEVICE, 0),
        ("Memcpy DtoH (Device -> Pageable)", CopyKind.DEVICE_TO_HOST, 1),
        ("Memcpy DtoH (Device -> Host)", CopyKind.DEVICE_TO_HOST, NOT_KNOWN),
        ("Memcpy DtoD (Device -> Device)", CopyKind.WITHIN_DEVICE, NOT_KNOWN),
        ("Memcpy PtoP (Device -> Device)", CopyKind.BETWEEN_DEVICES, NOT_KNOWN),
        ("Memcpy HtoH (Pageable -> Pageable)", CopyKind.OTHER, 1),
        ("Memset (Device)", CopyKind.MEMSET, NOT_KNOWN),
        ("CopyHostToDevice", CopyKind.HOST_TO_DEVICE, NOT_KNOWN),
        ("dma_request DEVICE_TO_HOST", CopyKind.DEVICE_TO_HOST, NOT_KNOWN),
        ("something", CopyKind.OTHER, NOT_KNOWN),
    ],
)
def test_a_copy_says_its_way_and_its_memory(name: str, kind: CopyKind, pageable: int) -> None:
    assert copy_kind(name) == (kind, pageable)


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("void k(int)", "k"),
        ("nvjet_tst_64x8_64x16_4x1_v_bz_TNT", "nvjet_tst_64x8_64x16_4x1_v_bz_TNT"),
        (
            "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, (int)4>(float*, "
            "at::native::(anonymous namespace)::Meta<float>)",
            "at::native::(anonymous namespace)::CatArrayBatchedCopy<float, (int)4>",
        ),
        (
            "void f<g(int)::{lambda(float)#1}, std::array<char*, 2ul> >(int, g(int))",
            "f<g(int)::{lambda(float)#1}, std::array<char*, 2ul> >",
        ),
        ("(anonymous namespace)", "(anonymous namespace)"),
        ("void at::f<int>::operator()(int)", "at::f<int>::operator()"),
        ("k<a, (b)", "k<a, (b)"),
        ("", ""),
        (")", ")"),
    ],
)
def test_a_kernel_keeps_its_template_and_loses_its_parameters(name: str, short: str) -> None:
    assert short_name(name) == short
