"""The Lease of a node that carries its window: how it is called, for who writes and who reads it."""

LEASE_LABEL = "nodescope.io/node-window"
# Leases of others live in the same namespace: kube-scheduler's own.
PREFIX = "node."


def name_lease(node: str) -> str:
    return f"{PREFIX}{node}"


def find_leased_node(lease: str) -> str:
    """Empty where the lease is not of a node."""
    return lease.removeprefix(PREFIX) if lease.startswith(PREFIX) else ""


def path_leases(namespace: str) -> str:
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
