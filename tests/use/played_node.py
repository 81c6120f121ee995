"""A node's archive from a list of containers, each with its levels: what a test plants, in full."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nodescope.base.entity import NODE, Entity
from nodescope.keep.demo.archive import gather_columns
from nodescope.keep.demo.samples import CONTAINER_METRICS, NODE_METRICS, Page, metric, run_of
from nodescope.keep.demo.story import DemoRequest, hexadecimal
from nodescope.keep.disk import Disk
from nodescope.keep.file_writer import begin_head, write_file
from nodescope.keep.folder import DataFolder, render_day, render_stamp
from nodescope.keep.sidecar import Sidecar

# Noon of 2026-03-01.
END_MS = 1_772_366_400_000
MIB = 2.0**20
CORES = 8
GPU_METRICS = {
    "time": metric("gpu.process.utilization", "gauge", "Share of the GPU's time.", "percent"),
    "memory": metric("gpu.process.memory", "gauge", "GPU memory of a process.", "bytes"),
}
CPU_METRICS = {"idle": metric("cpu.idle", "counter", "Time idle.", "seconds")}


@dataclass(frozen=True, slots=True)
class Played:
    """One container with steady levels; seconds count from the start of the archive."""

    pod: str
    container: str
    start: int
    end: int
    cores: float
    anon_mib: float = 50.0
    file_mib: float = 10.0
    limit_mib: float = float("inf")
    namespace: str = "shop"
    image: str = ""
    owner: str = ""
    previous_exit: str = ""
    gpus: float = 0.0
    """GPU time of its one process, of one GPU; 0: it has none there."""
    life: int = 0
    """Tells lives of one name in one pod apart."""

    def entity(self) -> Entity:
        container_id = hexadecimal("played", self.namespace, self.pod, self.container, self.life)
        names = (("namespace", self.namespace), ("pod", self.pod), ("container", self.container))
        pod_uid = hexadecimal("pod", self.namespace, self.pod)[:32]
        details = (("container_id", container_id), ("pod_uid", pod_uid), ("qos", "Burstable"))
        return Entity(
            "container",
            (container_id,),
            (*names, ("image", self.image)),
            (*details, ("owner", self.owner), ("previous_exit", self.previous_exit)),
        )


def write_played(folder: Path, containers: Sequence[Played], seconds: int = 3600, node: str = "n1") -> Path:
    """One Parquet file with its sidecar."""
    request = DemoRequest(folder, seconds / 3600, 0, 1, END_MS, node)
    page = Page(request, END_MS - seconds * 1000, END_MS)
    page.time_ms = page.second_ms
    size = np.full(seconds, 32 * 1024 * MIB)
    page.keep(NODE, NODE_METRICS, {"load": np.ones(seconds), "available": size / 2, "total": size})
    for number in range(CORES):
        page.keep(Entity("cpu", (str(number),)), CPU_METRICS, {"idle": np.arange(seconds, dtype=float)})
    for one in containers:
        keep_container(page, one)
    data = DataFolder(folder)
    partition = data.partition(render_day(END_MS - 1), node)
    disk = Disk()
    disk.make_folder(partition)
    ticks = page.ticks()
    subjects = dict(sorted(page.subjects.items()))
    head = begin_head(ticks, node, partition, {run_of(request): [[1, 1]]})
    sidecar = Sidecar(head, (), tuple(subjects.values()), ticks, {}, [], [])
    parts = gather_columns(page.columns, {identity: place for place, identity in enumerate(subjects)})
    write_file(disk, partition / f"metrics-{render_stamp(int(ticks.time_ms[0]))}.parquet", sidecar, parts)
    return folder


def keep_container(page: Page, one: Played) -> None:
    inside = slice(one.start, one.end)
    count = len(page.second_ms[inside])
    used = np.cumsum(np.full(count, round(one.cores * 1e6), float))
    values = {
        "cpu.stat.usage_usec": used,
        "memory.current": np.full(count, (one.anon_mib + one.file_mib) * MIB),
        "memory.stat.anon": np.full(count, one.anon_mib * MIB),
        "memory.stat.file": np.full(count, one.file_mib * MIB),
        "memory.stat.inactive_file": np.full(count, one.file_mib * MIB),
        "memory.max": np.full(count, one.limit_mib * MIB),
    }
    page.keep(one.entity(), CONTAINER_METRICS, values, inside)
    if one.gpus:
        keep_gpu_process(page, one, inside)


def keep_gpu_process(page: Page, one: Played, inside: slice) -> None:
    """As a GPU source names it: the process' own ids, and the names of its container."""
    count = len(page.second_ms[inside])
    pid = str(1000 + int(hexadecimal("pid", one.pod, one.life)[:3], 16))
    process = Entity("gpu", ("GPU-1", "process", pid, "1"), one.entity().labels)
    time_share = np.full(count, 100 * one.gpus)
    page.keep(process, GPU_METRICS, {"time": time_share, "memory": time_share * 64 * MIB}, inside)
