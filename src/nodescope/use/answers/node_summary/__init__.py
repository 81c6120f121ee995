"""What a node is, how full it is, who uses most of it, and what went wrong in a span."""
