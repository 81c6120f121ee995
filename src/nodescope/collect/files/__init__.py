"""The node's files: opening them, how the kernel lays them out, and the one call that reads them all."""
