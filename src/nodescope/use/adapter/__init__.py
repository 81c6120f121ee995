"""Custom and external metrics of Kubernetes from the windows of agents."""
