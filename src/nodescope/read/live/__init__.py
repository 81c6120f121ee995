"""Samples that are not in a file yet: the log of an agent, or its live tail."""
