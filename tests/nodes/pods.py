"""The pods that most fixture nodes run: their names, ids, cgroups and processes."""

import hashlib
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tests.nodes.cgroup_text import Group
from tests.nodes.kernel_text import MIB
from tests.nodes.proc_text import Process


def container_id(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def pod_uid(name: str) -> str:
    return str(uuid.UUID(hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()))


@dataclass(frozen=True)
class Pod:
    """A pod of Kubernetes and where its cgroup is."""

    namespace: str
    name: str
    qos: str
    is_static: bool = False

    @property
    def uid(self) -> str:
        # Static pods have the hash of their manifest for a UID.
        return pod_uid(self.name).replace("-", "") if self.is_static else pod_uid(self.name)

    def systemd_folder(self, prefix: str = "kubepods") -> str:
        """Dashes separate levels in slice names, so the UID has underscores."""
        top = prefix.rpartition("-")[0]
        outer = f"{top}.slice/{prefix}.slice" if top else f"{prefix}.slice"
        uid = self.uid.replace("-", "_")
        if self.qos == "guaranteed":
            return f"{outer}/{prefix}-pod{uid}.slice"
        return f"{outer}/{prefix}-{self.qos}.slice/{prefix}-{self.qos}-pod{uid}.slice"

    def cgroupfs_folder(self) -> str:
        middle = "" if self.qos == "guaranteed" else f"/{self.qos}"
        return f"kubepods{middle}/pod{self.uid}"

    def log_folder(self, container: str) -> str:
        return f"{self.namespace}_{self.name}_{self.uid}/{container}"

    def log_file(self, container: str) -> str:
        return f"{self.name}_{self.namespace}_{container}-{container_id(f'{self.name}/{container}')}.log"

    def container(self, container: str) -> str:
        return container_id(f"{self.name}/{container}")


WEB = Pod("shop", "web-7d9f8c6b5-x2x4q", "burstable")
BATCH = Pod("jobs", "report-28391-7kq2p", "besteffort")
DATABASE = Pod("shop", "postgres-0", "guaranteed")
PROXY = Pod("kube-system", "kube-proxy-4c2vd", "besteffort")
API = Pod("kube-system", "kube-apiserver-control-1", "burstable", is_static=True)
FRESH = Pod("jobs", "report-28392-d8m1z", "besteffort")

HOST_PROCESSES = (
    Process(1, "systemd", cgroup="/", ticks=9000, rss_bytes=13 * MIB),
    Process(2, "kthreadd", cgroup="/", ticks=12, rss_bytes=0),
    Process(612, "kubelet", cgroup="/", cores=0.03, ticks=61_000, threads=18, rss_bytes=98 * MIB),
)


def web_group(folder: str, name: str, **more: object) -> Group:
    group = Group(
        f"{folder}/{name}",
        pids=(2101, 2102),
        cores=0.55,
        cpu_usec=812_000_000,
        anon=180 * MIB,
        file=40 * MIB,
        anon_growth=MIB,
        memory_max=256 * MIB,
        quota_usec=60_000,
        pids_max=1024,
        throttled_share=0.4,
    )
    return replace(group, **more)  # type: ignore[arg-type]


def pause_group(folder: str, name: str, pid: int) -> Group:
    return Group(
        f"{folder}/{name}", pids=(pid,), cores=0.0, cpu_usec=31_000, anon=MIB // 4, file=0, devices=()
    )


def batch_group(folder: str, name: str) -> Group:
    return Group(f"{folder}/{name}", pids=(2301,), cores=0.2, anon=60 * MIB, devices=("259:0", "253:1"))


def database_group(folder: str, name: str) -> Group:
    return Group(
        f"{folder}/{name}",
        pids=(2401, 2402, 2403),
        cores=0.3,
        cpu_usec=5_120_000_000,
        anon=900 * MIB,
        file=600 * MIB,
        memory_max=2048 * MIB,
        quota_usec=200_000,
        oom_kills=1,
        written=9 * MIB,
    )


POSTGRES = Process(2401, "postgres", cores=0.1, namespace=4026532303, received=21_000)
POD_PROCESSES = (
    Process(2100, "pause", ticks=3, rss_bytes=MIB // 2, namespace=4026532301, received=90_000),
    Process(2101, "nginx", cores=0.3, ticks=41_000, namespace=4026532301, received=90_000),
    Process(2102, "nginx", cores=0.25, ticks=40_200, namespace=4026532301, received=90_000),
    Process(2301, "python3", cores=0.2, rss_bytes=64 * MIB, namespace=4026532302, received=700),
    replace(POSTGRES, ticks=250_000, rss_bytes=700 * MIB),
    replace(POSTGRES, pid=2402, ticks=130_000, rss_bytes=90 * MIB),
    replace(POSTGRES, pid=2403, ticks=132_000, rss_bytes=95 * MIB),
    Process(2501, "kube-proxy", cores=0.01, ticks=900, rss_bytes=45 * MIB),
    Process(2601, "kube-apiserver", cores=0.1, ticks=99_000, rss_bytes=400 * MIB, threads=12),
    Process(
        2701,
        "python3",
        cores=0.4,
        ticks=30,
        rss_bytes=30 * MIB,
        start=8_640_090,
        namespace=4026532304,
        received=40,
    ),
    Process(2801, "redis-server", cores=0.02, ticks=8_000, threads=5, namespace=4026532305, received=300),
    Process(2802, "memcached", cores=0.01, ticks=70, threads=4, namespace=4026532307, received=200),
    Process(2810, "systemd", ticks=700, namespace=4026532310, received=120_000),
    Process(2901, "caddy", cores=0.01, ticks=600, threads=7, namespace=4026532306, received=100),
    Process(2950, "conmon", ticks=4, rss_bytes=2 * MIB),
)


def all_processes(groups: Iterable[Group]) -> tuple[Process, ...]:
    """The host's processes, and those of the given cgroups."""
    where = {pid: group.path for group in groups for pid in group.pids}
    inside = [replace(one, cgroup=f"/{where[one.pid]}") for one in POD_PROCESSES if one.pid in where]
    return (*HOST_PROCESSES, *inside)
