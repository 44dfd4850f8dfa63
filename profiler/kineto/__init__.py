"""Traces of the PyTorch profiler (Kineto JSON), of CUDA, ROCm and the CPU."""
