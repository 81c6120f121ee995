"""Which whole devices a pod asks for: extended resources of GPUs, and claims (resource.k8s.io)."""

from collections.abc import Iterator, Mapping
from typing import Any

PLACEMENT = "nodescope.io/gpu-placement"
PLACEMENTS = ("pack", "spread")
# More than a machine has.
MOST_DEVICES = 1024
# Intel's plugin has its devices under the driver's name.
WHOLE_NAMES = ("gpu", "i915", "xe")

Devices = tuple[tuple[str, int], ...]
"""Resource or driver, and how many."""


def is_gpu(resource: str) -> bool:
    """nvidia.com/gpu, amd.com/gpu, nvidia.com/mig-1g.5gb, gpu.intel.com/i915 and their like."""
    domain, slash, name = resource.partition("/")
    return bool(slash) and ("gpu" in name or "gpu" in domain or name.startswith("mig-"))


def is_whole(resource: str) -> bool:
    """Devices that belong to one pod alone; slices and shares of them are rated by load."""
    return is_gpu(resource) and resource.partition("/")[2] in WHOLE_NAMES


def count_devices(pod: Mapping[str, Any]) -> Devices:
    """As kube-scheduler counts them: all containers together, or the init container that wants most."""
    spec = pod.get("spec")
    together: dict[str, int] = {}
    for wanted in list_wanted(spec, "containers"):
        for name, count in wanted.items():
            together[name] = together.get(name, 0) + count
    for wanted in list_wanted(spec, "initContainers"):
        for name, count in wanted.items():
            together[name] = max(together.get(name, 0), count)
    return tuple(sorted((name, min(count, MOST_DEVICES)) for name, count in together.items() if count))


def list_wanted(spec: object, kind: str) -> Iterator[dict[str, int]]:
    containers = spec.get(kind) if isinstance(spec, Mapping) else None
    for container in containers if isinstance(containers, list) else ():
        resources = container.get("resources") if isinstance(container, Mapping) else None
        if isinstance(resources, Mapping):
            # Requests and limits of an extended resource are equal, or one of them is missing.
            told = [part for key in ("requests", "limits") if isinstance(part := resources.get(key), Mapping)]
            yield {
                name: parse_count(count) for part in told for name, count in part.items() if is_whole(name)
            }


def parse_count(given: object) -> int:
    """An extended resource is a whole number; 0 where it is none."""
    text = str(given)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0


def list_claims(pod: Mapping[str, Any]) -> tuple[str, ...]:
    """
    The ResourceClaims of a pod, by name; empty names are of templates whose claim was not made yet.

    The name of a claim that was made for a template is in the pod's status.
    """
    spec, status = pod.get("spec"), pod.get("status")
    asked = spec.get("resourceClaims") if isinstance(spec, Mapping) else None
    made = status.get("resourceClaimStatuses") if isinstance(status, Mapping) else None
    names = {
        one.get("name"): one.get("resourceClaimName")
        for one in (made if isinstance(made, list) else ())
        if isinstance(one, Mapping)
    }
    found = []
    for one in asked if isinstance(asked, list) else ():
        if isinstance(one, Mapping):
            name = one.get("resourceClaimName") or names.get(one.get("name")) or ""
            found.append(name if isinstance(name, str) else "")
    return tuple(found)
