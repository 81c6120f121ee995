"""Assignments of GPUs, from a gRPC server on a unix socket that speaks kubelet's proto."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.kubelet import Kubelet, running_kubelet

from nodescope.base.errors import ParseError, SourceAbsent, SourceFailed
from nodescope.base.settings import Settings
from nodescope.collect.containers.live_containers import LiveContainers
from nodescope.collect.containers.names import ContainerNames
from nodescope.collect.files.roots import Descriptors, NodeRoot
from nodescope.collect.run.source import Context
from nodescope.collect.sources.pod_resources.source import SOCKET, PodResourcesSource, parse_assignments


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path: a unix socket's may have 107 characters."""
    with tempfile.TemporaryDirectory(prefix="pr-") as name:
        (Path(name) / SOCKET).parent.mkdir(parents=True)
        yield Path(name)


@pytest.fixture
def kubelet(folder: Path) -> Iterator[Kubelet]:
    with running_kubelet(folder) as answering:
        yield answering


def open_source(folder: Path) -> PodResourcesSource:
    root = NodeRoot(folder)
    return PodResourcesSource(
        Context(root, Descriptors(10), Settings(), ContainerNames(root), LiveContainers())
    )


def assigned(source: PodResourcesSource) -> list[dict[str, str]]:
    (block,) = source.parse(source.read(), 1)
    assert (block.values == 1).all()
    return [dict(entity.labels) for entity in block.entities]


@pytest.mark.real
def test_assignments_appear_and_vanish_with_the_pod(folder: Path, kubelet: Kubelet) -> None:
    source = open_source(folder)
    assert assigned(source) == []
    kubelet.give("trainer-0", "nvidia.com/gpu", "GPU-0b1c")
    kubelet.give("shared-1", "nvidia.com/gpu", "GPU-0b1c::3")
    kubelet.give("sliced-2", "nvidia.com/mig-1g.10gb", "MIG-77")
    kubelet.give("radeon-3", "amd.com/gpu", "0000:0A:00.0")
    kubelet.give("other-4", "example.com/fpga", "fpga0")
    found = {labels["pod"]: labels for labels in assigned(source)}
    assert {pod: labels["uuid"] for pod, labels in found.items()} == {
        "trainer-0": "GPU-0b1c",
        "shared-1": "GPU-0b1c",
        "sliced-2": "MIG-77",
        "radeon-3": "",
    }
    assert found["radeon-3"]["pci_bus_id"] == "0000:0a:00.0"
    assert (found["trainer-0"]["namespace"], found["trainer-0"]["container"]) == ("research", "main")
    del kubelet.response.pod_resources[:]
    assert assigned(source) == []


@pytest.mark.real
def test_a_large_node_fits(folder: Path, kubelet: Kubelet) -> None:
    """More than one frame and more than HTTP/2's first window of 64 KiB."""
    for number in range(400):
        kubelet.give(f"trainer-{number}-{'x' * 200}", "nvidia.com/gpu", f"GPU-{number}")
    assert len(assigned(open_source(folder))) == 400


@pytest.mark.real
def test_a_refusal_is_a_failure_and_no_empty_answer(folder: Path, kubelet: Kubelet) -> None:
    kubelet.refuses = True
    with pytest.raises(SourceFailed, match="refused"):
        open_source(folder).read()


def test_a_machine_without_kubelet_is_absent(folder: Path) -> None:
    with pytest.raises(SourceAbsent, match="not a Kubernetes node"):
        open_source(folder)


@given(st.binary(max_size=200))
def test_any_bytes_are_assignments_or_a_parse_error(message: bytes) -> None:
    try:
        found = list(parse_assignments(message))
    except ParseError:
        return
    assert all(isinstance(item["device"], str) for item in found)
