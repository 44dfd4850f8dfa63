"""What NVIDIA's management library (NVML) says of a GPU; nothing here changes its state."""
