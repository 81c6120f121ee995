"""
Saves this machine as a fixture node: `make capture NODE=name`.

The agent itself runs on a root that remembers what it was asked for, so that
exactly the files that the agent reads are saved, at two instants about a second
apart; of the second instant only the files that have changed. Names that belong to
somebody are replaced, the same name by the same stand-in everywhere: the host,
containers, pods, cgroups, processes, mounts. Read the result before you commit it.
"""

import argparse
import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.nodes.captured import write_difference

from nodescope.base.clock import Clock, SystemClock
from nodescope.base.settings_load import load_settings
from nodescope.collect.containers.live_containers import LiveContainers
from nodescope.collect.containers.names import ContainerNames
from nodescope.collect.files.roots import Descriptors, NodeRoot
from nodescope.collect.run.call_runner import CallRunner
from nodescope.collect.run.sampler import Sampler
from nodescope.collect.run.source import Context
from nodescope.wiring import choose_sources, raise_descriptor_limit

NODES = Path(__file__).parents[1] / "tests" / "nodes"
CGROUP = "sys/fs/cgroup"
SECOND_NS = 1_000_000_000
# What a file answers whose owner is no more: left out, as the agent leaves it out.
GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ESRCH, errno.ENODEV})

# -- what the agent reads -----------------------------------------------------


# What says who somebody is, or holds their secrets: the agent that captures does not see it.
PRIVATE = re.compile(
    r"(run|var/lib)/(containerd|containers|docker)/.+|etc/machine-id|sys/class/dmi/id/.+|proc/sys/kernel/random/boot_id"
    r"|proc/(\d+/)?net/(tcp|udp)6?|proc/(\d+/)?net/arp|sys/class/net/.+/(address|ifalias)"
)


class RecordingRoot(NodeRoot):
    """A root that remembers every path it was asked for, and every answer of a call."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.asked: set[str] = set()
        self.links: set[str] = set()
        self.answers: dict[str, Any] = {}

    def open(self, path: str) -> int:
        if PRIVATE.fullmatch(path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        self.asked.add(path)
        return super().open(path)

    def exists(self, path: str) -> bool:
        if PRIVATE.fullmatch(path):
            return False
        self.asked.add(path)
        return super().exists(path)

    def names(self, path: str) -> list[str]:
        found = super().names(path)
        if path.startswith("var/log/"):
            # Logs are known by their names; nobody reads them.
            self.asked.update(f"{path}/{name}" for name in found)
        return found

    def folders(self, path: str, most: int | None = None) -> Iterator[str]:
        found = list(super().folders(path, most))
        if path.startswith("var/log/"):
            self.asked.update(f"{path}/{name}" for name in found)
        return iter(found)

    def link(self, path: str) -> str | None:
        self.links.add(path)
        return super().link(path)

    def call(self, name: str, ask: Callable[[], Any]) -> Any:
        answer = super().call(name, ask)
        self.answers[name] = answer
        return answer


def build_sampler(
    root: RecordingRoot, clock: Clock, processes: int
) -> tuple[Sampler, list[CallRunner], LiveContainers]:
    settings = load_settings({"root": str(root.path), "process_top": str(processes)}, {}, {}, "").settings
    context = Context(
        root=root,
        descriptors=Descriptors(raise_descriptor_limit()),
        settings=settings,
        names=ContainerNames(root),
        live_containers=LiveContainers(),
        page_bytes=os.sysconf("SC_PAGE_SIZE"),
        ticks_per_second=os.sysconf("SC_CLK_TCK"),
    )
    batch, calls = choose_sources(settings)
    callers = [CallRunner(source, context, clock) for source in calls]
    return Sampler(batch, callers, [], context, clock), callers, context.live_containers


@dataclass
class Instant:
    """What was read at one moment."""

    mono_ns: int
    files: dict[str, bytes] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)


def learn(sampler: Sampler, callers: list[CallRunner]) -> None:
    """What the agent wants of this machine: it names members in one tick and shows them in the next."""
    sampler.tick()
    for caller in callers:
        caller.ask()
    sampler.tick()


@dataclass
class Choice:
    """A machine may have more containers and processes than a fixture needs."""

    pids: set[str]
    left_out: tuple[str, ...]

    def takes(self, path: str) -> bool:
        process = re.match(r"proc/(\d+)/", path)
        if process:
            return process[1] in self.pids
        return not path.startswith(CGROUP) or not any(other in path for other in self.left_out)


def choose(root: RecordingRoot, live_containers: LiveContainers, containers: int) -> Choice:
    """The first containers with their processes, and the processes that the agent shows."""
    members = live_containers.members
    kept, others = (members[:containers], members[containers:]) if containers else (members, ())
    strangers = {str(pid) for member in others for pid in member.pids}
    shown = {path.split("/")[1] for path in root.asked if re.fullmatch(r"proc/\d+/cgroup", path)}
    pids = {"1", *(str(pid) for member in kept for pid in member.pids), *(shown - strangers)}
    return Choice(pids, tuple(f"/{member.path}/" for member in others))


def take(root: RecordingRoot, choice: Choice, mono_ns: int) -> Instant:
    """Everything that the agent has asked for so far, read at once."""
    instant = Instant(mono_ns, answers=dict(root.answers))
    plain = NodeRoot(root.path)
    for path in sorted(root.asked):
        if not choice.takes(path):
            continue
        if os.path.isdir(plain.full(path)):
            if path.startswith("var/log/pods/"):
                instant.files[f"{path}/0.log"] = b""
            continue
        try:
            instant.files[path] = b"" if path.startswith("var/log/") else plain.read(path)
        except OSError as error:
            if error.errno not in GONE:
                instant.faults[path] = errno.errorcode[error.errno or 0]
                instant.files[path] = b""
    for path in sorted(root.links):
        target = plain.link(path)
        if target and choice.takes(path):
            instant.links[path] = target
    return instant


# -- whose names they are -----------------------------------------------------

HEX_ID = re.compile(r"[0-9a-f]{64}")
POD_UID = re.compile(
    r"[0-9a-f]{8}([-_])[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{12}|(?<=pod)[0-9a-f]{32}"
)
# Names of the software, not of anybody's work; everything else gets a stand-in.
KNOWN_PROCESSES = frozenset(
    [
        "pause",
        "systemd",
        "kthreadd",
        "kubelet",
        "containerd",
        "containerd-shim",
        "dockerd",
        "crio",
        "conmon",
        "init",
    ]
)
KNOWN_GROUPS = re.compile(
    r"(kube(let|pods)[\w-]*|besteffort|burstable|guaranteed|system|user|machine|init|docker|unified|systemd"
    r"|memory|cpu|cpuacct|cpu,cpuacct|pids|blkio|cpuset|devices|freezer|session-\d+|container)?(\.slice|\.scope)?"
)
KNOWN_MOUNTS = frozenset(["/", "/boot", "/boot/efi", "/home", "/run", "/tmp", "/var", "/dev/shm"])
KNOWN_INTERFACES = re.compile(rb"lo|(eth|ens|enp|bond|br|wlan|veth|cni|docker)\d{0,3}")


@dataclass
class Scrub:
    """Replaces names, each always by the same stand-in."""

    salt: str = field(default_factory=lambda: secrets.token_hex(16))
    given: dict[tuple[str, str], str] = field(default_factory=dict)
    replaced: set[str] = field(default_factory=set)

    def stand_in(self, kind: str, name: str) -> str:
        known = [key for key in self.given if key[0] == kind]
        return self.given.setdefault((kind, name), f"{kind}-{len(known) + 1}")

    def hex_id(self, text: str) -> str:
        self.replaced.add(text)
        return hashlib.sha256(f"{self.salt}{text}".encode()).hexdigest()

    def pod_uid(self, match: re.Match[str]) -> str:
        plain = match[0].replace("_", "-")
        made = uuid.UUID(hashlib.sha256(f"{self.salt}{plain}".encode()).hexdigest()[:32])
        self.replaced.add(plain)
        return made.hex if len(plain) == 32 else str(made).replace("-", match[1])

    def ids(self, text: str) -> str:
        return HEX_ID.sub(lambda match: self.hex_id(match[0]), POD_UID.sub(self.pod_uid, text))

    def cgroup_path(self, path: str) -> str:
        return "/".join(self.cgroup_name(part) for part in path.split("/"))

    def cgroup_name(self, name: str) -> str:
        without_ids = HEX_ID.sub("", POD_UID.sub("", name))
        if without_ids != name:
            return self.ids(name)
        if KNOWN_GROUPS.fullmatch(name) or not name:
            return name
        stem, dot, kind = name.rpartition(".")
        if kind not in ("slice", "service", "scope"):
            return self.stand_in("group", name)
        return f"{self.stand_in('unit', stem)}{dot}{kind}"

    def log_name(self, path: str) -> str:
        """var/log/containers/<pod>_<namespace>_<container>-<id>.log, var/log/pods/<namespace>_<pod>_<uid>/..."""
        parts = path.split("/")
        fields = parts[3].split("_")
        if parts[2] == "containers" and len(fields) == 3:
            container, _, tail = fields[2].rpartition("-")
            kinds = [self.word("pod", fields[0]), self.word("namespace", fields[1])]
            return "/".join(
                [*parts[:3], f"{'_'.join(kinds)}_{self.word('container', container)}-{self.ids(tail)}"]
            )
        if parts[2] == "pods" and len(fields) == 3:
            head = [self.word("namespace", fields[0]), self.word("pod", fields[1]), self.ids(fields[2])]
            rest = [
                self.word("container", part) if number == 0 else part for number, part in enumerate(parts[4:])
            ]
            return "/".join([*parts[:3], "_".join(head), *rest])
        return "/".join([*parts[:3], self.stand_in("log", parts[3])])

    def word(self, kind: str, name: str) -> str:
        self.replaced.add(name)
        return self.stand_in(kind, name)

    def path(self, path: str) -> str:
        if path.startswith("var/log/"):
            return self.log_name(path)
        if path.startswith(f"{CGROUP}/"):
            folder, _, file = path.removeprefix(f"{CGROUP}/").rpartition("/")
            return f"{CGROUP}/{self.cgroup_path(folder)}/{file}" if folder else path
        return path

    def content(self, path: str, data: bytes) -> bytes:
        name = path.rpartition("/")[2]
        if path in ("proc/sys/kernel/hostname", "proc/sys/kernel/domainname"):
            self.replaced.add(data.decode("utf-8", "replace").strip())
            return b"node-1\n" if path.endswith("hostname") else b"(none)\n"
        if path == "proc/sys/kernel/osrelease":
            return re.sub(rb"^(\d+\.\d+(\.\d+)?).*", rb"\1", data.strip()) + b"\n"
        if path == "proc/sys/kernel/version":
            return b"#1 SMP\n"
        if name == "mounts":
            return b"".join(self.mount_line(line) for line in data.splitlines())
        if name == "dev":
            return b"\n".join(self.interface_line(line) for line in data.split(b"\n"))
        if re.fullmatch(r"proc/\d+/stat", path):
            head, tail = data.split(b" (", 1)[0], data.rpartition(b")")[2]
            return head + b" (" + self.process(data[len(head) + 2 : len(data) - len(tail) - 1]) + b")" + tail
        if re.fullmatch(r"proc/\d+/comm", path):
            return self.process(data.strip()) + b"\n"
        if re.fullmatch(r"proc/\d+/cgroup", path):
            return b"".join(self.cgroup_line(line) for line in data.splitlines())
        return data

    def process(self, name: bytes) -> bytes:
        text = name.decode("utf-8", "replace")
        return name if text in KNOWN_PROCESSES else self.stand_in("process", text).encode()

    def cgroup_line(self, line: bytes) -> bytes:
        number, controllers, path = line.decode("utf-8", "replace").split(":", 2)
        return f"{number}:{controllers}:{self.cgroup_path(path)}\n".encode()

    def interface_line(self, line: bytes) -> bytes:
        name, colon, rest = line.partition(b":")
        if not colon or KNOWN_INTERFACES.fullmatch(name.strip()):
            return line
        return f"{self.stand_in('if', name.strip().decode('utf-8', 'replace')):>6}".encode() + colon + rest

    def mount_line(self, line: bytes) -> bytes:
        fields = line.decode("utf-8", "replace").split(" ")
        return f"{self.device(fields[0])} {self.mount_point(fields[1])} {fields[2]} rw 0 0\n".encode()

    def device(self, name: str) -> str:
        known = re.fullmatch(r"/dev/((s|v|xv)d[a-z]\d*|nvme\d+n\d+(p\d+)?)|[a-z0-9]{2,10}", name)
        return name if known else self.stand_in("device", name)

    def mount_point(self, name: str) -> str:
        inside = re.match(r"/(proc|sys|dev)(/|$)", name)
        return name if name in KNOWN_MOUNTS or inside else f"/mnt/{self.stand_in('mount', name)}"

    def answer(self, name: str, answer: Any) -> Any:
        if name != "filesystem":
            return answer
        return [
            mount
            | {"device": self.device(mount["device"]), "mountpoint": self.mount_point(mount["mountpoint"])}
            for mount in answer
        ]


# -- writing ------------------------------------------------------------------


def write_instant(folder: Path, instant: Instant, scrub: Scrub) -> None:
    for path, data in instant.files.items():
        target = folder / scrub.path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(scrub.content(path, data))
    for path, aim in instant.links.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(aim)
    for name, answer in instant.answers.items():
        target = folder / "calls" / f"{name}.json"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(scrub.answer(name, answer), indent=1) + "\n")


def describe(name: str, instants: list[Instant]) -> str:
    files = instants[0].files
    release = files.get("proc/sys/kernel/osrelease", b"unknown").decode().split("-")[0].strip()
    has_v1 = any(path.startswith((f"{CGROUP}/memory/", f"{CGROUP}/cpuacct/")) for path in files)
    has_v2 = any(path.endswith("/cpu.pressure") for path in files)
    version = "hybrid" if has_v1 and has_v2 else "1" if has_v1 else "2" if has_v2 else "none"
    return (
        f'kernel = "{release}"\npage_bytes = {os.sysconf("SC_PAGE_SIZE")}\ncgroup = "{version}"\n'
        f"elapsed_ns = {instants[1].mono_ns - instants[0].mono_ns:_}\n"
        f'captured_with = "make capture NODE={name}"\n'
    )


def find_leaks(folder: Path, scrub: Scrub) -> list[str]:
    """Replaced names that still stand somewhere; short words stand everywhere by chance."""
    secret = [name.encode() for name in scrub.replaced if len(name) > 6]
    return [
        f"{path.relative_to(folder)}: {name.decode()}"
        for path in folder.rglob("*")
        if path.is_file()
        for name in secret
        if name in path.read_bytes() or name.decode() in str(path)
    ]


def capture(name: str, root: Path, out: Path, processes: int, containers: int, clock: Clock) -> int:
    """Two instants into out/name; 1 when a name that was to be replaced is still there."""
    recording = RecordingRoot(root)
    sampler, callers, live_containers = build_sampler(recording, clock, processes)
    learn(sampler, callers)
    instants = [take(recording, choose(recording, live_containers, containers), clock.mono_ns())]
    clock.wait_until(instants[0].mono_ns + SECOND_NS, threading.Event())
    # Whatever was born meanwhile is asked for, too.
    sampler.tick()
    instants.append(take(recording, choose(recording, live_containers, containers), clock.mono_ns()))
    sampler.stop()

    folder = out / name
    shutil.rmtree(folder, ignore_errors=True)
    scrub = Scrub()
    for number, instant in enumerate(instants):
        write_instant(folder / f"t{number}", instant, scrub)
    (folder / "node.toml").write_text(describe(name, instants))
    faults = {scrub.path(path): word for one in instants for path, word in one.faults.items()}
    if faults:
        rows = [f'{json.dumps(path)} = "{word}"\n' for path, word in sorted(faults.items())]
        (folder / "faults.toml").write_text("".join(rows))
    write_difference(folder)
    leaks = find_leaks(folder, scrub)
    for leak in leaks:
        print(f"not scrubbed: {leak}", file=sys.stderr)
    print(f"{folder}: {sum(len(one.files) for one in instants)} files, {len(faults)} faults")
    return 1 if leaks else 0


def main() -> int:
    parser = argparse.ArgumentParser(description="save a machine as a fixture node")
    parser.add_argument("node", help="the fixture node's name, such as gpu-server")
    parser.add_argument("--root", type=Path, default=Path("/"), help="where the node's /proc and /sys are")
    parser.add_argument("--out", type=Path, default=NODES, help="the folder of fixture nodes")
    parser.add_argument("--processes", type=int, default=10, help="how many by CPU, and as many by memory")
    parser.add_argument("--containers", type=int, default=10, help="how many at most; 0 saves all")
    given = parser.parse_args()
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", given.node):
        parser.error(f"{given.node!r} is not accepted; accepted: small letters, digits and dashes")
    return capture(given.node, given.root, given.out, given.processes, given.containers, SystemClock())


if __name__ == "__main__":
    raise SystemExit(main())
