"""Kubelet's pod-resources API: a gRPC server on a unix socket that speaks the real proto."""

import contextlib
import importlib
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

from nodescope.collect.sources.pod_resources.source import SOCKET

# k8s.io/kubelet/pkg/apis/podresources/v1/api.proto: message -> (field, number, type, is repeated).
PROTO: dict[str, list[tuple[str, int, str, bool]]] = {
    "NUMANode": [("ID", 1, "int64", False)],
    "TopologyInfo": [("nodes", 1, "NUMANode", True)],
    "ContainerDevices": [
        ("resource_name", 1, "string", False),
        ("device_ids", 2, "string", True),
        ("topology", 3, "TopologyInfo", False),
    ],
    "ContainerResources": [
        ("name", 1, "string", False),
        ("devices", 2, "ContainerDevices", True),
        ("cpu_ids", 3, "int64", True),
    ],
    "PodResources": [
        ("name", 1, "string", False),
        ("namespace", 2, "string", False),
        ("containers", 3, "ContainerResources", True),
    ],
    "ListPodResourcesResponse": [("pod_resources", 1, "PodResources", True)],
}
TYPES = {"string": 9, "int64": 3}


def build_response_class() -> Any:
    """Google's own encoder makes what our reader reads."""
    descriptors: Any = importlib.import_module("google.protobuf.descriptor_pb2")
    pools: Any = importlib.import_module("google.protobuf.descriptor_pool")
    factory: Any = importlib.import_module("google.protobuf.message_factory")
    file = descriptors.FileDescriptorProto(name="api.proto", package="v1", syntax="proto3")
    for name, fields in PROTO.items():
        message = file.message_type.add(name=name)
        for field, number, kind, is_repeated in fields:
            added = message.field.add(name=field, number=number, label=3 if is_repeated else 1)
            added.type = TYPES.get(kind, 11)
            if kind not in TYPES:
                added.type_name = f".v1.{kind}"
    pool = pools.DescriptorPool()
    pool.Add(file)
    return factory.GetMessageClass(pool.FindMessageTypeByName("v1.ListPodResourcesResponse"))


class Kubelet:
    """Answers with whatever pods it is told of."""

    def __init__(self, response_class: Any) -> None:
        self.response = response_class()
        self.refuses = False

    def list_pods(self, _request: bytes, call: Any) -> bytes:
        if self.refuses:
            grpc: Any = importlib.import_module("grpc")
            call.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too often")
        message: bytes = self.response.SerializeToString()
        return message

    def give(self, pod: str, resource: str, *devices: str) -> None:
        added = self.response.pod_resources.add(name=pod, namespace="research")
        container = added.containers.add(name="main", cpu_ids=[1, 2, 300])
        given_devices = container.devices.add(resource_name=resource, device_ids=devices)
        given_devices.topology.nodes.add(ID=1)


@contextlib.contextmanager
def running_kubelet(root: Path) -> Iterator[Kubelet]:
    """Answers below the root of a node; the path must be short, a unix socket's may have 107 characters."""
    grpc: Any = importlib.import_module("grpc")
    (root / SOCKET).parent.mkdir(parents=True, exist_ok=True)
    answering = Kubelet(build_response_class())
    server = grpc.server(futures.ThreadPoolExecutor(2))
    method = grpc.unary_unary_rpc_method_handler(answering.list_pods)
    handler = grpc.method_handlers_generic_handler("v1.PodResourcesLister", {"List": method})
    server.add_generic_rpc_handlers((handler,))
    server.add_insecure_port(f"unix:{root / SOCKET}")
    server.start()
    try:
        yield answering
    finally:
        server.stop(None).wait()
