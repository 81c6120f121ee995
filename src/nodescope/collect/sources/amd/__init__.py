"""AMD GPUs: the kernel's files, and what rocm-smi and amd-smi add to them."""
