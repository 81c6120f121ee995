"""Frames -> the last minutes: the ring, exact windows, statistics."""
