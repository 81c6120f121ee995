"""Which containers there are now, what they are called, and who said so: shared by the sources."""
