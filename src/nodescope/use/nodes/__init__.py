"""Which nodes there are and how their viewers are asked: shared by the MCP server and the cluster's page."""
