"""A generated node as files, written as a collector and a consolidator leave them."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tools.incidents.machine import Floats, Wish
from tools.incidents.stories import Generated

from nodescope.base.cgroup_metrics import CGROUP_METRICS
from nodescope.base.entity import Entity
from nodescope.base.frame import EXIT, OOM_EXIT, START
from nodescope.base.metric import Metric
from nodescope.keep.demo.samples import DemoColumn
from nodescope.keep.disk import Disk
from nodescope.keep.file_writer import begin_head, write_file
from nodescope.keep.folder import PARQUET, DataFolder, render_day, render_stamp
from nodescope.keep.label_columns import Identity, Subject, describe_entity
from nodescope.keep.merge import join_series
from nodescope.keep.parquet import SampleRows
from nodescope.keep.session import Session, render_time, write_session
from nodescope.keep.sidecar import Sidecar, Ticks

Integers = NDArray[np.int64]
NODE = "story-1"
RUN = "0123456789ab"
END_MS = 1_772_366_400_000
ROTATION_SECONDS = 90
GPU = "GPU-5a0f"
NODE_ENTITY = Entity("node", ())
BUILT = {row.v2: row.build("v2", 100) for row in CGROUP_METRICS if row.v2}
COUNTERS = {
    name: Metric(f"perf_cgroup.{name}", "counter", "Counted.")
    for name in ("cycles", "instructions", "cache_misses")
}
NODE_METRICS = {
    "memory": Metric("pcm.memory", "counter", "Bytes moved.", unit="bytes"),
    "seconds": Metric("pcm.memory.seconds", "counter", "Seconds covered.", unit="seconds"),
    "available": Metric("memory.MemAvailable", "gauge", "Memory available.", unit="bytes"),
    "total": Metric("memory.MemTotal", "gauge", "Memory of the node.", unit="bytes"),
    "instructions": Metric("pcm.ipc.instructions", "counter", "Instructions."),
    "cycles": Metric("pcm.ipc.cycles", "counter", "Cycles."),
}
CORE_METRICS = {
    name: Metric(f"cpu.{name}", "counter", f"Seconds: {name}.", unit="seconds", scale=0.01)
    for name in ("user", "iowait")
}
CORE_QUEUE = Metric(
    "schedstat.waiting", "counter", "Time that tasks waited for the core.", unit="seconds", scale=1e-9
)
GPU_TIME = Metric("gpu.process.utilization", "gauge", "Share of the GPU's time.", unit="percent")


def write_archive(node: Generated, folder: Path, file_seconds: int = 3600, end_ms: int = END_MS) -> None:
    """One sample a second: the node must be generated with steps of one second."""
    disk = Disk()
    start_ms = end_ms - node.steps * 1000
    disk.make_folder(folder)
    session = Session(RUN, NODE, render_time(start_ms * 1_000_000), NODE, "", 1000, 90.0, "0", {})
    write_session(disk, DataFolder(folder), session)
    series = list(list_series(node, start_ms))
    edges = list(range(start_ms // (file_seconds * 1000) * file_seconds * 1000, end_ms, file_seconds * 1000))
    for number, first in enumerate(edges):
        write_page(
            disk,
            folder,
            node,
            series,
            (max(first, start_ms), min(end_ms, first + file_seconds * 1000)),
            number + 1,
            start_ms,
        )


Column = tuple[Metric, Subject, Integers, Floats]


def list_series(node: Generated, start_ms: int) -> Iterator[Column]:
    for place, wish in enumerate(node.wishes):
        times = start_ms + np.arange(wish.first, wish.last, dtype=np.int64) * 1000
        entity = describe(wish, place)
        subject = describe_entity(entity, NODE, int(times[0]))
        for metric, values in rows_of(wish, node.has_counters).items():
            yield metric, subject, times, values
        if wish.gpu is not None:
            process = Entity("gpu", (GPU, "process", str(1000 + place), "1"), entity.labels)
            yield GPU_TIME, describe_entity(process, NODE, int(times[0])), times, 100 * wish.got["gpu"]
        pod = Entity("pod", (uid_of(wish), "eth0"))
        its_pod = describe_entity(pod, NODE, int(times[0]))
        received = Metric("pod.network.receive_bytes", "counter", "Bytes received.", unit="bytes")
        sent = Metric("pod.network.transmit_bytes", "counter", "Bytes sent.", unit="bytes")
        yield received, its_pod, times, np.cumsum(np.rint(wish.got["network"] * 0.5))
        yield sent, its_pod, times, np.cumsum(np.rint(wish.got["network"] * 0.5))
    yield from list_node(node, start_ms)


def list_node(node: Generated, start_ms: int) -> Iterator[Column]:
    times = start_ms + np.arange(node.steps, dtype=np.int64) * 1000
    subject = describe_entity(NODE_ENTITY, NODE, int(times[0]))
    ones = np.ones(node.steps)
    values = {
        "memory": np.cumsum(np.rint(node.curves["memory_bandwidth"])),
        "seconds": np.cumsum(ones),
        "total": ones * node.machine.memory_bytes,
        "available": np.rint(node.curves["available"] * node.machine.memory_bytes),
        "instructions": np.cumsum(np.rint(node.curves["ipc"] * 1e9)),
        "cycles": np.cumsum(ones * 1e9),
    }
    for name, value in values.items():
        yield NODE_METRICS[name], subject, times, value
    for core in range(int(node.machine.cores)):
        its_core = describe_entity(Entity("cpu", (str(core),)), NODE, int(times[0]))
        yield CORE_METRICS["user"], its_core, times, np.cumsum(ones * 50)
        yield CORE_METRICS["iowait"], its_core, times, np.cumsum(np.rint(node.curves["io_wait"] * 100))
        yield CORE_QUEUE, its_core, times, np.cumsum(np.rint(node.curves["run_queue"] * 1e9))


def rows_of(wish: Wish, has_counters: bool) -> dict[Metric, Floats]:
    got = wish.got
    size = len(wish.cpu)

    def total(name: str, factor: float = 1.0) -> Floats:
        return np.cumsum(np.rint(got[name] * factor))

    found = {
        "cpu.stat.usage_usec": total("cpu", 1e6),
        "cpu.pressure.some.total": total("pressure_cpu", 1e6),
        "memory.pressure.some.total": total("pressure_memory", 1e6),
        "io.pressure.some.total": total("pressure_io", 1e6),
        **{
            f"{what}.pressure.full.total": total(f"pressure_{what}_full", 1e6)
            for what in ("cpu", "memory", "io")
        },
        "memory.stat.anon": np.rint(got["memory_anon"]),
        "memory.stat.file": np.rint(got["memory_file"]),
        "memory.current": np.rint(got["memory_anon"] + got["memory_file"]),
        "memory.max": np.full(size, wish.limit_bytes),
        "io.stat.rbytes": total("disk", 0.5),
        "io.stat.wbytes": total("disk", 0.5),
        "io.stat.rios": total("ios", 0.5),
        "io.stat.wios": total("ios", 0.5),
        "memory.stat.pgmajfault": total("major_faults"),
        "cpu.max.quota": np.full(size, wish.quota * 1e5),
        "cpu.max.period": np.full(size, 1e5),
    }
    if np.isfinite(wish.quota):
        found["cpu.stat.nr_periods"] = np.cumsum(np.full(size, 10.0))
        found["cpu.stat.nr_throttled"] = np.cumsum(np.rint(got["cpu_throttled"] * 10))
    rows = {BUILT[name]: values for name, values in found.items()}
    if has_counters:
        rows |= {metric: total(name) for name, metric in COUNTERS.items()}
    return rows


def hexadecimal(*words: object) -> str:
    return hashlib.sha256("/".join(map(str, words)).encode()).hexdigest()


def uid_of(wish: Wish) -> str:
    uid = hexadecimal("pod", wish.pod)
    return f"{uid[:8]}-{uid[8:12]}-{uid[12:16]}-{uid[16:20]}-{uid[20:32]}"


# As Kubernetes spells random words: no vowels, nothing that looks like another letter.
ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


def suffix(text: str, size: int) -> str:
    number = int(hexadecimal(text)[:16], 16)
    letters = []
    for _ in range(size):
        number, place = divmod(number, len(ALPHABET))
        letters.append(ALPHABET[place])
    return "".join(letters)


def name_pod(wish: Wish) -> str:
    if wish.kind == "cron":
        return f"{wish.workload}-{29_000_000 + wish.first // 60}-{suffix(wish.pod, 5)}"
    if wish.kind == "job":
        return f"{wish.workload}-{suffix(wish.pod, 5)}"
    return f"{wish.workload}-{suffix(wish.workload + wish.image, 10)}-{suffix(wish.pod, 5)}"


OWNERS = {"service": "Deployment", "loop": "Deployment", "cron": "CronJob", "job": "Job"}


def describe(wish: Wish, place: int) -> Entity:
    container_id = hexadecimal("container", place, wish.workload)
    names = (
        ("namespace", "shop"),
        ("pod", name_pod(wish)),
        ("container", "main"),
        ("image", f"registry.example/{wish.workload}:{wish.image}"),
    )
    details = (
        ("container_id", container_id),
        ("pod_uid", uid_of(wish)),
        ("qos", "Burstable"),
        ("restarts", str(wish.restarts) if wish.restarts else ""),
        ("owner", f"{OWNERS[wish.kind]}/{wish.workload}"),
    )
    return Entity("container", (container_id,), names, details)


def write_page(
    disk: Disk,
    folder: Path,
    node: Generated,
    series: Sequence[Column],
    span: tuple[int, int],
    number: int,
    start_ms: int,
) -> None:
    from_ms, to_ms = span
    time_ms = np.arange(from_ms, to_ms, 1000, dtype=np.int64)
    ticks = Ticks(time_ms, time_ms * 1_000_000, np.zeros(len(time_ms), np.int64), (RUN,))
    partition = DataFolder(folder).partition(render_day(from_ms), NODE)
    disk.make_folder(partition)
    columns: list[DemoColumn] = []
    subjects: dict[Identity, Subject] = {}
    for metric, subject, times, values in series:
        first, last = np.searchsorted(times, (from_ms, to_ms))
        if first < last:
            subjects[subject.identity] = subject
            columns.append(DemoColumn(metric, subject.identity, times[first:last], values[first:last]))
    subjects = dict(sorted(subjects.items()))
    head = begin_head(ticks, NODE, partition, {RUN: [[number, number]]})
    events = list_events(node, from_ms, to_ms, start_ms)
    sidecar = Sidecar(
        head, (), tuple(subjects.values()), ticks, {}, events, [(from_ms, {"container": ["ok", ""]})]
    )
    stem = f"consolidated-{render_stamp(from_ms)}-{render_stamp(to_ms - 1000)}"
    if to_ms - from_ms < 600_000:
        stem = f"metrics-{render_stamp(from_ms)}"
    ranks = {identity: place for place, identity in enumerate(subjects)}
    write_file(disk, partition / f"{stem}{PARQUET}", sidecar, gather(columns, ranks))


def gather(columns: Sequence[DemoColumn], ranks: Mapping[Identity, int]) -> Iterator[SampleRows]:
    ordered = sorted(columns, key=lambda column: (column.metric.name, column.identity))
    for _, group in groupby(ordered, lambda column: column.metric.name):
        many = list(group)
        yield join_series(many[0].metric, many, ranks)


def list_events(node: Generated, from_ms: int, to_ms: int, start_ms: int) -> list[dict[str, Any]]:
    found = []
    for place, wish in enumerate(node.wishes):
        entity = describe(wish, place)
        labels = {**dict(entity.labels), **dict(entity.details)}
        base = {"scope": "container", "ids": list(entity.ids), "labels": labels}
        first_ms, last_ms = start_ms + wish.first * 1000, start_ms + wish.last * 1000
        if wish.first and from_ms <= first_ms < to_ms:
            found.append({"kind": START, "at_ms": first_ms, "facts": {}, **base})
        if wish.ends and from_ms <= last_ms < to_ms:
            facts = {"lifetime_seconds": (last_ms - first_ms) / 1000, "memory_limit_bytes": wish.limit_bytes}
            found.append(
                {"kind": OOM_EXIT if wish.ends_in_oom else EXIT, "at_ms": last_ms, "facts": facts, **base}
            )
    return sorted(found, key=lambda event: int(event["at_ms"]))
