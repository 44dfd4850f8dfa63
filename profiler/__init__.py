"""Observe: evidence types, specs, the capture file, ranges and samplers."""
