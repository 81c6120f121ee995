"""A container over all its lives: a restart begins a new id, and is the same container to people."""
