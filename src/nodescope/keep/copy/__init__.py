"""Copies of finished files in an object store."""
