"""Incidents of a node: what changed, what it did to whom, and who did it."""
