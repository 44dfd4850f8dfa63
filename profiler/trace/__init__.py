"""Traces of kernels and host calls: columns, interval arithmetic, phases, and their reduction."""
