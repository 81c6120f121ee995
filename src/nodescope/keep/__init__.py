"""Frames -> files: write-ahead log, Parquet, sidecars, session manifest, consolidator, retention."""
