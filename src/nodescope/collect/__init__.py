"""Node -> frames: the sampler, the sources it asks, and the only code that opens the node's files."""
