"""The tick: which source is asked when, on which thread, within which budget."""
