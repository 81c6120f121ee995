"""Perfetto: a span of an archive as a trace that opens in its viewer."""
