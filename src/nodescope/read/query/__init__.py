"""One question to files and live tail: resolve, fetch, derive, downsample."""
