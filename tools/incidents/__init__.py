"""Generated nodes with a known cause, for measuring how often an incident's cause is named."""
