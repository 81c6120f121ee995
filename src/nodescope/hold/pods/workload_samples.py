"""The last seconds of the node and of its pods, added up by workload."""

from collections.abc import Iterable

from nodescope.base.errors import RequestRejected
from nodescope.hold.feature import FEATURES
from nodescope.hold.pods.node_contention import take_node_contention
from nodescope.hold.pods.pod_window import PodLook, PodWindow, take_pod_windows
from nodescope.hold.pods.workload_tracker import NodeSample, WorkloadSample
from nodescope.hold.ring import Ring
from nodescope.hold.window import take_node_window

NODE_FEATURES = tuple(feature for feature in FEATURES if feature.name in ("cpu_util", "mem_bw"))


def take_node_sample(
    ring: Ring, seconds: float, now_mono_ns: int, at_seconds: float, cpus: int
) -> NodeSample | None:
    """None before the first samples."""
    try:
        window = take_node_window(ring, seconds, now_mono_ns, ("mean",), NODE_FEATURES)
    except RequestRejected:
        return None
    busy = window.metrics.get("mean_cpu_util")
    waited = take_node_contention(PodLook.back(ring, seconds, now_mono_ns))
    return NodeSample(
        at_seconds,
        busy * cpus if busy is not None and cpus else None,
        window.metrics.get("mean_mem_bw"),
        waited.mean if waited else None,
    )


def take_workload_samples(ring: Ring, seconds: float, now_mono_ns: int) -> dict[str, WorkloadSample]:
    """By full name; a pod whose workload or CPU is not known is left out."""
    groups: dict[str, list[PodWindow]] = {}
    for window in take_pod_windows(PodLook.back(ring, seconds, now_mono_ns)):
        if window.identity.workload and "cpu" in window.metrics:
            groups.setdefault(window.identity.workload, []).append(window)
    return {name: add_up(windows) for name, windows in groups.items()}


def add_up(windows: list[PodWindow]) -> WorkloadSample:
    cores = sum(window.metrics["cpu"].mean for window in windows)
    waits, gpu = (find_mean(pick(windows, name)) for name in ("cpu_contention", "gpu_util"))
    return WorkloadSample(len(windows), cores, waits, gpu)


def pick(windows: Iterable[PodWindow], name: str) -> list[float]:
    return [window.metrics[name].mean for window in windows if name in window.metrics]


def find_mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
