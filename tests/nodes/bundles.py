"""What runtimes write about containers, with the secrets that such files hold."""

import json

from tests.nodes.kernel_text import Files
from tests.nodes.pods import Pod, container_id

# Nothing of this may ever leave the agent.
SECRET = "hunter2-do-not-leave"  # noqa: S105 - of nobody
ENVIRONMENT = [f"DATABASE_PASSWORD={SECRET}", "PATH=/usr/bin"]
CONTAINERD = "run/containerd/io.containerd.runtime.v2.task/k8s.io"
CRIO = "run/containers/storage/overlay-containers"
DOCKER = "var/lib/docker/containers"


def containerd_file(pod: Pod, container: str, image: str, kind: str = "container") -> Files:
    """config.json of an OCI bundle; the sandbox has no container's name."""
    named = {"io.kubernetes.cri.container-name": container} if kind == "container" else {}
    content = {
        "ociVersion": "1.2.0",
        "process": {
            "args": ["serve", f"--password={SECRET}"],
            "env": ENVIRONMENT,
            "annotations": {"x": SECRET},
        },
        "hostname": pod.name,
        "annotations": {
            "io.kubernetes.cri.container-type": kind,
            "io.kubernetes.cri.image-name": image,
            "io.kubernetes.cri.sandbox-name": pod.name,
            "io.kubernetes.cri.sandbox-namespace": pod.namespace,
            "example.com/token": SECRET,
            **named,
        },
        "linux": {"cgroupsPath": "annotations"},
    }
    return {f"{CONTAINERD}/{pod.container(container)}/config.json": json.dumps(content)}


def crio_file(pod: Pod, container: str, image: str) -> Files:
    content = {
        "annotations": {
            "io.kubernetes.cri-o.ContainerType": "container",
            "io.kubernetes.cri-o.ImageName": image,
            "io.kubernetes.container.name": container,
            "io.kubernetes.pod.name": pod.name,
            "io.kubernetes.pod.namespace": pod.namespace,
        },
        "process": {"env": ENVIRONMENT},
    }
    return {f"{CRIO}/{pod.container(container)}/userdata/config.json": json.dumps(content, indent=2)}


def docker_file(name: str, image: str) -> Files:
    content = {
        "Config": {"Env": ENVIRONMENT, "Image": image, "Labels": {}},
        "Name": f"/{name}",
        "Image": "sha256:0",
    }
    return {f"{DOCKER}/{container_id(f'docker/{name}')}/config.v2.json": json.dumps(content)}
