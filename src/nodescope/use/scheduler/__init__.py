"""The scheduler extender: what kube-scheduler asks, answered from the nodes' annotations."""
