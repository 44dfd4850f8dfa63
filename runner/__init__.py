"""Make it happen: a decoder, its KV cache and a workload, recorded through the profiler."""
