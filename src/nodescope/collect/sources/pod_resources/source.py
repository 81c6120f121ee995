"""
Which pod was given which GPU, as kubelet says.

Reads   /var/lib/kubelet/pod-resources/kubelet.sock, method v1.PodResourcesLister/List
Needs   kubelet 1.20 or later, and its folder mounted (the folder, so that a restart of kubelet is survived); root
Docs    https://kubernetes.io/docs/concepts/extend-kubernetes/compute-storage-net/device-plugins/

One assignment, as JSON would save it:

    {"namespace": "research", "pod": "trainer-0", "container": "main",
     "resource": "nvidia.com/gpu", "device": "GPU-0b1c2d3e"}

A device is a GPU's or a MIG device's uuid (NVIDIA; `::N` behind it is the
N-th share of a GPU given to several), or a place on the bus (AMD). An
assignment is there as long as kubelet lists it.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from nodescope.base.block import Block, Table
from nodescope.base.entity import Entity
from nodescope.base.errors import SourceAbsent
from nodescope.base.metric import Metric
from nodescope.base.text import clean_text
from nodescope.collect.run.source import CallDefaults, Context
from nodescope.collect.sources.pod_resources.grpc_unary import call_unary, parse_fields

SOCKET = "var/lib/kubelet/pod-resources/kubelet.sock"
METHOD = "/v1.PodResourcesLister/List"
ABSENT = "no /var/lib/kubelet/pod-resources/kubelet.sock: not a Kubernetes node, or the folder is not mounted"
VENDORS = {"nvidia.com/": "nvidia", "amd.com/": "amd"}
LABELS = ("uuid", "pci_bus_id", "vendor", "resource", "device", "namespace", "pod", "container")
TABLE = Table(
    "pod_resources",
    "pod_resources",
    ("gpu",),
    (
        Metric(
            "gpu.allocated",
            "gauge",
            "1 for a GPU, or a part of one, that was given to a container.",
            "gpu_allocated",
        ),
    ),
)


def parse_assignments(message: bytes) -> Iterator[dict[str, str]]:
    """ListPodResourcesResponse: pods (1), in them containers (3), in them devices (2)."""
    for number, pod in parse_fields(message):
        if number != 1:
            continue
        names = {field: text for field, text in parse_fields(pod) if field in (1, 2)}
        for field, container in parse_fields(pod):
            if field == 3:
                words = {"namespace": names.get(2, b""), "pod": names.get(1, b"")}
                yield from parse_container(container, {key: decode(text) for key, text in words.items()})


def parse_container(container: bytes, words: dict[str, str]) -> Iterator[dict[str, str]]:
    name = next((decode(text) for field, text in parse_fields(container) if field == 1), "")
    for field, devices in parse_fields(container):
        if field == 2:
            listed = list(parse_fields(devices))
            resource = next((decode(text) for number, text in listed if number == 1), "")
            for number, device in listed:
                if number == 2:
                    yield {**words, "container": name, "resource": resource, "device": decode(device)}


def decode(text: bytes) -> str:
    return clean_text(text.decode("utf-8", "replace"))


def name_assignment(assignment: dict[str, str]) -> Entity | None:
    """Its entity; None for what is not a GPU."""
    vendor = next(
        (word for prefix, word in VENDORS.items() if assignment["resource"].startswith(prefix)), None
    )
    if vendor is None:
        return None
    whole = assignment["device"].partition("::")[0]
    # AMD's plugin names devices by PCI address, GKE's NVIDIA plugin by /dev name.
    is_place = whole.count(":") == 2
    is_uuid = whole.startswith(("GPU-", "MIG-"))
    found = {
        **assignment,
        "vendor": vendor,
        "uuid": whole if is_uuid else "",
        "pci_bus_id": whole.lower() if is_place else "",
    }
    ids = (
        "allocation",
        *(assignment[key] for key in ("namespace", "pod", "container", "resource", "device")),
    )
    return Entity("gpu", ids, tuple((label, found[label]) for label in LABELS))


class PodResourcesSource(CallDefaults):
    """Asks kubelet now and then: assignments change when pods do."""

    name = "pod_resources"
    pace_seconds = 5.0

    def __init__(self, context: Context) -> None:
        self._context = context
        saved = f"calls/{self.name}.json" if context.root.is_fixture else SOCKET
        if not context.root.exists(saved):
            raise SourceAbsent(ABSENT)

    def read(self) -> Any:
        path = self._context.root.full(SOCKET)
        return self._context.root.call(self.name, lambda: list(parse_assignments(call_unary(path, METHOD))))

    def parse(self, answer: Any, mono_ns: int) -> tuple[Block, ...]:
        found = dict.fromkeys(entity for item in answer if (entity := name_assignment(item)) is not None)
        entities = tuple(found)[: self._context.limit("gpu")]
        return (Block(TABLE, entities, np.ones((len(entities), 1)), mono_ns),)
