"""Which pods should run on another node, and why: advice, never an action."""
