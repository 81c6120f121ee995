"""The log as it lies on disk: each tick as its difference from the tick before, compressed."""
