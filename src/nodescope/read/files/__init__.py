"""Which files there are, and who and what is in them."""
