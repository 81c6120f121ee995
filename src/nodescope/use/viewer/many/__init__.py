"""Many nodes: the routes of their page, the shapes of its answers, and what forwards to the viewers of nodes."""
