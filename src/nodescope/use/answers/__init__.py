"""Typed answers: archive, live tail and studies turned into dataclasses that others render."""
