"""Data files of the profiler: the device table."""
