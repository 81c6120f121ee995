"""Windows of whole pods: what an autoscaler asks for."""
