"""Commands that run in a cluster."""
