"""What people call a container's workload: the Deployment, Job or service that its pods and restarts belong to."""

from nodescope.base.workload.known_workload import Workload, find_workload
from nodescope.base.workload.pod_name import UNSURE, PodOwner, read_pod_name

__all__ = ["UNSURE", "PodOwner", "Workload", "find_workload", "read_pod_name"]
