"""Times as every command takes and prints them."""

from nodescope.base.time_range import parse_moment, render_moment

__all__ = ["parse_moment", "render_moment"]
