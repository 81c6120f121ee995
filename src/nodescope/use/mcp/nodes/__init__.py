"""The nodes that the MCP server asks: data folders here, or viewers elsewhere."""
