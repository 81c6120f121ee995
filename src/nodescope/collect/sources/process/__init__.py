"""Processes: the busiest and the largest of the node."""
