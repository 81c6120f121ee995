"""Intel PCM: its process or server, its CSV, and the counters that are made of it."""
