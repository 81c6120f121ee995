"""One study over all workloads of a node: who leaks, what spikes, what changed."""
