"""What people call a container's workload: the Deployment, Job or service that its pods and restarts belong to."""

from nodescope.base.workload.known_workload import Workload, detail_workload, find_workload, read_details
from nodescope.base.workload.pod_name import UNSURE, PodOwner, read_pod_name

__all__ = [
    "UNSURE",
    "PodOwner",
    "Workload",
    "detail_workload",
    "find_workload",
    "read_details",
    "read_pod_name",
]
