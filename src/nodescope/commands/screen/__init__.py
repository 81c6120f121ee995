"""The screen of `nodescope top`: keys, curves, and what is drawn."""
