"""NVIDIA GPUs: NVML, its events, and nvidia-smi where NVML cannot be loaded."""
