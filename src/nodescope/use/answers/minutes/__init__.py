"""A node in cells of a minute or more: what a page of many nodes is drawn from."""
