"""Requests and limits for each container of a workload, recommended from what its seconds were seen to need."""
