"""The MCP server: answers for agents, not series."""
