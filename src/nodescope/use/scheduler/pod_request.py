"""
What a pod asks of its node, from its labels and resources.

    fpga      fpga-scheduling.io/enabled: "true" (the original's plugin says
              fpga-enabled), with bitstream-identifier and fpga-vendor
    gpu       requests an extended resource that is a GPU
    claim     has ResourceClaims (resource.k8s.io)
    balance   nodescope.io/balance: "true"
    plain     none of them: not rated
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nodescope.base.errors import RequestRejected
from nodescope.base.text import clean_text
from nodescope.base.workload import find_workload
from nodescope.kube.pod_owner import parse_owner
from nodescope.kube.resource_quantity import parse_resource
from nodescope.use.scheduler.devices.device_request import (
    PLACEMENT,
    PLACEMENTS,
    Devices,
    count_devices,
    is_gpu,
    list_claims,
)

ENABLED = ("fpga-scheduling.io/enabled", "fpga-scheduling.io/fpga-enabled")
BITSTREAM = "fpga-scheduling.io/bitstream-identifier"
VENDOR = "fpga-scheduling.io/fpga-vendor"
BALANCE = "nodescope.io/balance"
# More than any machine has.
MOST_CORES = 10_000.0
KINDS = ("fpga", "gpu", "claim", "balance")
PLAIN = "plain"


@dataclass(frozen=True, slots=True)
class PodRequest:
    """One pod, reduced to what is rated."""

    namespace: str
    name: str
    uid: str
    kind: str = PLAIN
    bitstream: str = ""
    vendor: str = ""
    cores: float = 0.0
    """What a `balance` pod requests; 0 where it requests nothing."""
    workload: str = ""
    """Whose pods use what this one will: namespace/name; of `gpu` and `balance` pods."""
    devices: Devices = ()
    """Whole devices that it asks for as resources."""
    claims: tuple[str, ...] = ()
    """Its ResourceClaims; an empty name is of one that was not made yet."""
    placement: str = ""
    """pack or spread, where it says so itself."""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


def parse_pod_request(pod: object) -> PodRequest:
    """From a v1 Pod; RequestRejected when it is none."""
    if not isinstance(pod, Mapping):
        raise RequestRejected("Pod: is missing; accepted: a v1 Pod")
    about = pod.get("metadata")
    if not isinstance(about, Mapping):
        raise RequestRejected("Pod.metadata: is missing; accepted: a v1 Pod")
    labels = read_mapping(about, "labels")
    namespace, name = read_text(about, "namespace") or "default", read_text(about, "name")
    # A pod without a uid was made by no API server; its name identifies it.
    uid = read_text(about, "uid") or f"{namespace}/{name}"
    has_gpu, claims = any(is_gpu(resource) for resource in read_resources(pod)), list_claims(pod)
    devices = count_devices(pod) if has_gpu else ()
    if any(labels.get(key) == "true" for key in ENABLED):
        bitstream, vendor = read_text(labels, BITSTREAM), read_text(labels, VENDOR)
        return PodRequest(namespace, name, uid, "fpga", bitstream, vendor, devices=devices, claims=claims)
    if has_gpu or claims:
        kind, workload = "gpu" if has_gpu else "claim", name_workload(about)
        return PodRequest(
            namespace,
            name,
            uid,
            kind,
            workload=workload,
            devices=devices,
            claims=claims,
            placement=read_placement(about),
        )
    if labels.get(BALANCE) == "true":
        workload = name_workload(about)
        return PodRequest(namespace, name, uid, "balance", cores=add_cores(pod), workload=workload)
    return PodRequest(namespace, name, uid)


def read_placement(about: Mapping[str, Any]) -> str:
    """By its label, else by its annotation; empty where it says nothing that is known."""
    labels, notes = read_mapping(about, "labels"), read_mapping(about, "annotations")
    word = read_text(labels, PLACEMENT) or read_text(notes, PLACEMENT)
    return word if word in PLACEMENTS else ""


def name_workload(about: Mapping[str, Any]) -> str:
    """As an agent names it: by the API's word, else by the pod's name."""
    owners = about.get("ownerReferences")
    told = [one for one in owners if isinstance(one, Mapping)] if isinstance(owners, list) else []
    owner = clean_text(parse_owner(told, read_mapping(about, "labels")))
    namespace, pod = (
        clean_text(read_text(about, "namespace") or "default"),
        clean_text(read_text(about, "name")),
    )
    return find_workload(namespace=namespace, pod=pod, owner=owner).full_name


def add_cores(pod: Mapping[str, Any]) -> float:
    """Its containers' requests for CPU; a limit stands for a request that is not there, as in the API server."""
    total = 0.0
    containers = read_mapping(pod, "spec").get("containers")
    for container in containers if isinstance(containers, list) else ():
        wanted = read_mapping(container, "resources") if isinstance(container, Mapping) else {}
        requests, limits = read_mapping(wanted, "requests"), read_mapping(wanted, "limits")
        total += parse_resource(requests.get("cpu", limits.get("cpu", "0"))) or 0.0
    return min(total, MOST_CORES)


def read_mapping(holder: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = holder.get(key)
    return found if isinstance(found, Mapping) else {}


def read_text(holder: Mapping[str, Any], key: str) -> str:
    found = holder.get(key)
    return found if isinstance(found, str) else ""


def read_resources(pod: Mapping[str, Any]) -> Iterator[str]:
    """Names of the resources that its containers ask for."""
    spec = read_mapping(pod, "spec")
    for kind in ("containers", "initContainers"):
        containers = spec.get(kind)
        for container in containers if isinstance(containers, list) else ():
            if isinstance(container, Mapping):
                wanted = read_mapping(container, "resources")
                yield from read_mapping(wanted, "limits")
                yield from read_mapping(wanted, "requests")
