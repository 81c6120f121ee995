"""
One node, parsed from its labels and annotations.

A state that was written a while ago still says when each part leaves the
window: its buckets are kept by time with the sums from each on, so that "how
much is recent now" is one search, however much the node reported.
"""

import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import accumulate
from typing import Any, NamedTuple

from nodescope.base.errors import ParseError
from nodescope.base.workload.pod_use import NodeWorkloads
from nodescope.fpga.node_load import WINDOW_KEY, NodeLoad, parse_load
from nodescope.fpga.node_workloads import WORKLOADS_KEY, parse_workloads
from nodescope.fpga.state import KEY, FpgaState, derive_buckets, parse_state
from nodescope.fpga.tracker import Bitstream
from nodescope.use.scheduler.host_cost import derive_host
from nodescope.use.scheduler.pod_request import VENDOR, read_mapping, read_text
from nodescope.use.scheduler.profile.node_outlook import NodeOutlook

NO_STATE = f"no annotation {KEY}: no FPGA event was ever reported there"
NO_LOAD = f"no annotation {WINDOW_KEY} at its Lease or Node: its agent does not run with --annotate window"
# A node has a few devices of a few regions: more use than this within its window is none.
REGIONS = 16
# Bitstreams of a node that count, the newest ones: a device has a few regions.
BITSTREAMS = 64
UNDATED = "an annotation that does not say when it was written"


class Recent(NamedTuple):
    """Sums of the window at one moment."""

    usage_ms: float
    reconfiguration_ms: float
    sessions: float


@dataclass(frozen=True, slots=True)
class NodeFpga:
    """What a node's FPGA state says."""

    at_ms: int
    window_ms: int
    bitstreams: Mapping[str, Bitstream]
    """Those it has, or had a moment ago, the newest first: each may have replaced the ones behind it."""
    _times: list[int]
    _sums: list[Recent]
    """From each of the times on; one more than times, the last is 0."""

    def recent(self, now_ms: int) -> Recent:
        """What is still in the window, by what was known when the state was written."""
        return self._sums[bisect_right(self._times, now_ms - self.window_ms)]


@dataclass(frozen=True, slots=True)
class AnnotatedNode:
    """One node; where `fpga` or `load` is None its reason says why."""

    name: str
    vendor: str = ""
    fpga: NodeFpga | None = None
    fpga_reason: str = ""
    load: NodeLoad | None = None
    load_reason: str = ""
    host: Mapping[str, float] = field(default_factory=dict)
    """What the load costs, by cause: shares of a unit of work."""
    host_lost: float = 0.0
    """Their sum."""
    workloads: NodeWorkloads | None = field(default=None, compare=False)
    """As they were parsed, until somebody has made the outlook of them."""
    outlook: NodeOutlook | None = None
    """What its pods will use; None where its agent does not tell, or is not believed."""
    texts: tuple[str | None, str | None, int] = field(default=(None, None, 0), compare=False)
    """The annotations as they were parsed; of the workloads, which are long, a hash."""


def derive_from_each_on(values: list[float]) -> list[float]:
    """sums[i] == sum(values[i:]); one more than values, the last is 0."""
    return [*reversed(list(accumulate(reversed(values)))), 0.0]


def limit_sum(values: list[float], most: float) -> list[float]:
    """The same in proportion, with a sum of `most` where it is more."""
    total = sum(values)
    return [value * (most / total) for value in values] if total > most else values


def derive_fpga(state: FpgaState, at_ms: int) -> NodeFpga:
    buckets = sorted(derive_buckets(state, at_ms))
    # Loading is done one bitstream at a time; a session is at least a millisecond.
    most = (REGIONS * state.window_ms, state.window_ms, REGIONS * state.window_ms)
    columns = [
        derive_from_each_on(limit_sum([bucket[number] for bucket in buckets], most[number - 1]))
        for number in (1, 2, 3)
    ]
    ordered = sorted(state.bitstreams, key=lambda one: -one.seen_at_ms)[:BITSTREAMS]
    return NodeFpga(
        at_ms,
        state.window_ms,
        {one.name: one for one in ordered if one.name},
        [bucket[0] for bucket in buckets],
        [Recent(*sums) for sums in zip(*columns)],
    )


def parse_node(item: Mapping[str, Any], now_ms: int, before: AnnotatedNode | None = None) -> AnnotatedNode:
    """A Node, or its metadata alone; annotations that did not change since `before` are not parsed again."""
    about = read_mapping(item, "metadata")
    annotations = read_mapping(about, "annotations")
    told = annotations.get(WORKLOADS_KEY)
    texts = (annotations.get(KEY), annotations.get(WINDOW_KEY), hash(told) if isinstance(told, str) else 0)
    name, vendor = read_text(about, "name"), read_text(read_mapping(about, "labels"), VENDOR)
    if before is not None and before.texts == texts:
        is_same = (before.name, before.vendor) == (name, vendor)
        return before if is_same else replace(before, name=name, vendor=vendor)
    fpga, fpga_reason = parse_fpga(texts[0], about, now_ms)
    if fpga is not None and before is not None and before.fpga is not None:
        fpga = keep_loaded(fpga, before.fpga)
    load, load_reason = parse_window(texts[1])
    host = derive_host(load) if load else {}
    is_known = before is not None and before.texts[2] == texts[2]
    return AnnotatedNode(
        name,
        vendor,
        fpga,
        fpga_reason,
        load,
        load_reason,
        host,
        sum(host.values()),
        None if is_known else parse_uses(told),
        before.outlook if before is not None and is_known else None,
        texts,
    )


def parse_fpga(text: object, about: Mapping[str, Any], now_ms: int) -> tuple[NodeFpga | None, str]:
    if not isinstance(text, str):
        return None, NO_STATE
    try:
        state = parse_state(text, now_ms)
    except ParseError as error:
        return None, f"annotation not understood: {error}"
    at_ms = state.updated_at_ms
    if at_ms is None:
        at_ms = read_written_ms(about) or state.newest_event_ms
    if at_ms is None:
        return None, UNDATED
    return derive_fpga(state, at_ms), ""


def parse_window(text: object) -> tuple[NodeLoad | None, str]:
    if not isinstance(text, str):
        return None, NO_LOAD
    try:
        return parse_load(text), ""
    except ParseError as error:
        return None, f"annotation not understood: {error}"


def parse_uses(text: object) -> NodeWorkloads | None:
    """None where it is not told, or makes no sense: it is then as if it were not told."""
    try:
        return parse_workloads(text) if isinstance(text, str) else None
    except ParseError:
        return None


def read_written_ms(about: Mapping[str, Any]) -> int | None:
    """When our key was last changed, by the object's managed fields."""
    found = None
    managers = about.get("managedFields")
    for manager in managers if isinstance(managers, list) else ():
        if not isinstance(manager, Mapping):
            continue
        owned = read_mapping(read_mapping(read_mapping(manager, "fieldsV1"), "f:metadata"), "f:annotations")
        if f"f:{KEY}" in owned:
            found = max(found or 0, parse_moment_ms(read_text(manager, "time")) or 0) or found
    return found


def parse_moment_ms(text: str) -> int | None:
    """RFC 3339, as the API server writes it."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return round(moment.timestamp() * 1000) if moment.tzinfo else None


def keep_loaded(now: NodeFpga, before: NodeFpga) -> NodeFpga:
    """
    A bitstream stays on its device until another replaces it.

    The collector drops it a minute after its last report; while the node has
    reported no other, the newest known one is still loaded.
    """
    if now.bitstreams or not before.bitstreams:
        return now
    name, newest = next(iter(before.bitstreams.items()))
    return replace(now, bitstreams={name: newest})


def is_measured(value: float) -> bool:
    return not math.isnan(value)
