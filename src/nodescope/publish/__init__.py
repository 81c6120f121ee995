"""Ways out of the agent: Prometheus, window, live tail, health, status."""
