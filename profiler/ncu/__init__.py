"""Reports of NVIDIA Nsight Compute: counters of single kernels."""
