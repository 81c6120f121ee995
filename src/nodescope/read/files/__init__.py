"""Which files there are, and which series and metrics are in them."""
