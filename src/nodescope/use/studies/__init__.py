"""Studies: pure functions from a series to findings a person can trust."""
