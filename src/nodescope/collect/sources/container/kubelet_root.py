"""
Where kubelet keeps its pods, as kubelet itself says.

Reads   /proc/PID/{comm,cmdline,cgroup} of kubelet, and its --config file where it can be read
Docs    https://kubernetes.io/docs/reference/command-line-tools-reference/kubelet/ (--cgroup-root)

Asked once, when a pod's cgroup stands where kubelet puts none by default. Only
a kubelet of root's that is in no container is believed. A command line is
looked through for these two flags, and kept nowhere.
"""

import re
from collections.abc import Iterator, Sequence

from nodescope.collect.containers.cgroup_path import NOTHING, parse_cgroup_path
from nodescope.collect.containers.standing import KUBELET_ROOTS
from nodescope.collect.files.roots import NodeRoot

_SET = re.compile(r"^cgroupRoot:\s*[\"']?([^\"'\s#]+)", re.MULTILINE)


def find_kubelet_root(root: NodeRoot) -> tuple[str, ...]:
    """The folders that hold kubelet's pods, with either driver; nothing when there is no answer."""
    for pid in list_kubelets(root):
        arguments = (root.read_text(f"proc/{pid}/cmdline") or "").split("\0")
        told = find_flag(arguments, "--cgroup-root") or read_config(root, find_flag(arguments, "--config"))
        if told.strip("/"):
            return name_roots(told.strip("/"))
    return ()


def list_roots(told: str) -> tuple[str, ...]:
    """Where pods are kubelet's: as kubelet has it by default, and below the folder that settings name."""
    return (*KUBELET_ROOTS, *(name_roots(told.strip("/")) if told.strip("/") else ()))


def list_kubelets(root: NodeRoot) -> Iterator[int]:
    for pid in sorted(int(name) for name in root.folders("proc") if name.isdigit()):
        if root.read_text(f"proc/{pid}/comm") != "kubelet" or root.owner(f"proc/{pid}") != root.owner(
            "proc/1"
        ):
            continue
        lines = (root.read_text(f"proc/{pid}/cgroup") or "").split("\n")
        if all(parse_cgroup_path(line.split(":", 2)[-1]) is NOTHING for line in lines):
            yield pid


def find_flag(arguments: Sequence[str], flag: str) -> str:
    for number, argument in enumerate(arguments):
        if argument.startswith(f"{flag}="):
            return argument.partition("=")[2]
        if argument == flag and number + 1 < len(arguments):
            return arguments[number + 1]
    return ""


def read_config(root: NodeRoot, path: str) -> str:
    """CgroupRoot of a KubeletConfiguration: a line of its own at the top level."""
    match = _SET.search((root.read_text(path.lstrip("/")) or "") if path else "")
    return match[1] if match else ""


def name_roots(told: str) -> tuple[str, ...]:
    """As the cgroupfs driver writes it, and as systemd's: a-b is a.slice/a-b.slice there."""
    words = told.replace("/", "-").split("-")
    slices = [f"{'-'.join(words[: end + 1])}.slice" for end in range(len(words))]
    return f"{told}/kubepods", "/".join([*slices, f"{'-'.join(words)}-kubepods.slice"])
