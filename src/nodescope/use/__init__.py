"""Tables -> answers: studies, viewer, MCP server, scheduler, fleet."""
