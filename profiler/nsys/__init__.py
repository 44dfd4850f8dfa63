"""Captures of NVIDIA Nsight Systems: finding the tool, wrapping a command, reading what it left."""
