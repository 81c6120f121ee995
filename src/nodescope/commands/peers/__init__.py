"""Commands about exporters beside the agent."""
