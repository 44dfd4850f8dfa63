"""Files of GPU telemetry: what nvidia-smi and DCGM print, as device samples."""
