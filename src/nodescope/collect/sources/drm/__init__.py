"""Who uses a GPU, as the kernel's graphics drivers count it."""
