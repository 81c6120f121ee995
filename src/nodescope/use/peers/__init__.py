"""What node_exporter, cAdvisor and the agent say of the same node, compared series by series."""
