"""Hardware counters of the kernel: per core, and per container on demand."""
