"""Who uses the most: over the span that was asked about, by container and by workload."""
