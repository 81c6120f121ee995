"""
What a container's runtime wrote down when it made it: names and image, without asking anybody.

Every runtime leaves a file per container, which says what Kubernetes called it:

    containerd  run/containerd/io.containerd.runtime.v2.task/k8s.io/ID/config.json
    CRI-O       run/containers/storage/overlay-containers/ID/userdata/config.json
    Docker      var/lib/docker/containers/ID/config.v2.json

These files hold the container's environment variables and arguments, passwords
among them. Only the one object with annotations (Docker: labels) is decoded, of
that only the keys below are looked at, and the bytes are dropped at once.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from nodescope.base.text import clean_text
from nodescope.collect.containers.names import Name
from nodescope.collect.files.roots import NodeRoot

# Key of the annotations -> field of the name, by runtime.
CONTAINERD = {
    "io.kubernetes.cri.sandbox-namespace": "namespace",
    "io.kubernetes.cri.sandbox-name": "pod",
    "io.kubernetes.cri.container-name": "container",
    "io.kubernetes.cri.image-name": "image",
    "io.kubernetes.cri.container-type": "type",
}
CRIO = {
    "io.kubernetes.pod.namespace": "namespace",
    "io.kubernetes.pod.name": "pod",
    "io.kubernetes.container.name": "container",
    "io.kubernetes.cri-o.ImageName": "image",
    "io.kubernetes.cri-o.ContainerType": "type",
}
DOCKER = {
    "io.kubernetes.pod.namespace": "namespace",
    "io.kubernetes.pod.name": "pod",
    "io.kubernetes.container.name": "container",
    "io.kubernetes.docker.type": "type",
}
# How runtimes call the container that only holds a pod's namespaces.
SANDBOXES = frozenset({"sandbox", "podsandbox"})
_ID = re.compile(r"[0-9a-f]{64}")
# A string, or a bracket: what it takes to know how deep in the document one is.
_PART = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]]')
# What stands between a key and its value, where that is an object, a list or a string.
_OPENING = re.compile(rb'\s*:\s*(?=["{\[])')


@dataclass(frozen=True, slots=True)
class Place:
    """Where a runtime keeps its files, and what they say."""

    path: str
    """With {id} for the container's id."""
    member: tuple[str, ...]
    """The way to the object that is decoded."""
    keys: Mapping[str, str]
    image: tuple[str, ...] = ()
    """The way to the image's name, where it is not among the keys."""
    alias: tuple[str, ...] = ()
    """The way to what the runtime's own users call the container."""


PLACES = (
    Place(
        "run/containerd/io.containerd.runtime.v2.task/k8s.io/{id}/config.json", ("annotations",), CONTAINERD
    ),
    Place("run/containers/storage/overlay-containers/{id}/userdata/config.json", ("annotations",), CRIO),
    Place("var/lib/containers/storage/overlay-containers/{id}/userdata/config.json", ("annotations",), CRIO),
    Place(
        "var/lib/docker/containers/{id}/config.v2.json",
        ("Config", "Labels"),
        DOCKER,
        ("Config", "Image"),
        ("Name",),
    ),
)


@dataclass(frozen=True, slots=True)
class Bundle:
    """What a runtime's file says."""

    name: Name
    is_sandbox: bool


def read_bundle(root: NodeRoot, container_id: str) -> Bundle | None:
    """What the runtime wrote about a container; None where no file is to be had."""
    if not _ID.fullmatch(container_id):
        return None
    for place in PLACES:
        try:
            data = root.read(place.path.format(id=container_id))
        except OSError:
            continue
        return parse_bundle(data, place)
    return None


def parse_bundle(data: bytes, place: Place) -> Bundle | None:
    found = {
        place.keys[key]: clean_text(value)
        for key, value in find_object(data, place.member).items()
        if key in place.keys and isinstance(value, str)
    }
    image = found.get("image") or clean_text(find_text(data, place.image))
    alias = clean_text(find_text(data, place.alias)).lstrip("/")
    if not found and not image:
        return None
    is_sandbox = found.get("type") in SANDBOXES
    name = Name(
        found.get("namespace", ""),
        found.get("pod", ""),
        "" if is_sandbox else found.get("container", ""),
        image,
        source="bundle",
        alias=alias,
    )
    return Bundle(name, is_sandbox)


def find_object(data: bytes, way: tuple[str, ...]) -> dict[str, object]:
    decoded = decode(find_member(data, way))
    return decoded if isinstance(decoded, dict) else {}


def find_text(data: bytes, way: tuple[str, ...]) -> str:
    decoded = decode(find_member(data, way))
    return decoded if isinstance(decoded, str) else ""


def decode(data: bytes) -> object:
    try:
        return json.loads(data) if data else None
    except ValueError:
        return None


def find_member(data: bytes, way: tuple[str, ...]) -> bytes:
    """The bytes of one object or string of a JSON document, found without decoding anything else."""
    for key in way:
        data = next(list_values(data, key), b"")
    return data if way else b""


def list_values(data: bytes, key: str) -> Iterator[bytes]:
    """The values under a key of the outermost object."""
    wanted = json.dumps(key).encode()
    depth = 0
    start: int | None = None
    for part in _PART.finditer(data):
        text = part[0]
        if text in b"{[":
            depth += 1
        elif text in b"}]":
            depth -= 1
            if start is not None and depth == 1:
                yield data[start : part.end()]
                start = None
        elif depth == 1 and start is not None:
            yield text
            start = None
        elif depth == 1 and text == wanted and (opening := _OPENING.match(data, part.end())):
            start = opening.end()
