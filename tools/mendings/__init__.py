"""Faults that were mended, each with the tests that fail where its mending is taken out."""
