"""MCP itself: the server, its arguments, prompts, resources and answers."""
