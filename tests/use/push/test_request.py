"""Blocks to OTLP, read back by OpenTelemetry's own schema and compared with its own names."""

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from tests.support import FixtureNode

from nodescope.base.block import Table, make_block
from nodescope.base.entity import NODE, Entity
from nodescope.base.frame import Frame
from nodescope.base.metric import Metric
from nodescope.use.push.convention import CONVENTIONS, WORKING_SET
from nodescope.use.push.request import RequestEncoder, Timed
from nodescope.use.push.resource import describe_node

Point = tuple[tuple[tuple[str, str], ...], str, tuple[tuple[str, str], ...], Any]


def list_pairs(attributes: Any) -> tuple[tuple[str, str], ...]:
    return tuple((one.key, str(getattr(one.value, one.value.WhichOneof("value")))) for one in attributes)


def iterate_points(bodies: list[bytes]) -> Iterator[Point]:
    for body in bodies:
        for group in ExportMetricsServiceRequest.FromString(body).resource_metrics:
            for scope in group.scope_metrics:
                for metric in scope.metrics:
                    points = getattr(metric, metric.WhichOneof("data")).data_points
                    for point in points:
                        yield (
                            list_pairs(group.resource.attributes),
                            metric.name,
                            list_pairs(point.attributes),
                            point,
                        )


def time_blocks(frame: Frame) -> list[Timed]:
    return [Timed(block, frame.at_ns + block.mono_ns - frame.mono_ns) for block in frame.blocks]


def encode(encoder: RequestEncoder, blocks: list[Timed]) -> list[Point]:
    return list(iterate_points([request.body for request in encoder.encode(blocks)]))


@pytest.fixture(params=["cgroup2-systemd", "hybrid-split", "hostile", "gpus"])
def frames(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Frame, Frame]]:
    node = FixtureNode(request.param, tmp_path)
    yield node.run()
    node.close()


def make_encoder(only_conventions: bool = False) -> RequestEncoder:
    return RequestEncoder(describe_node("n1", "c1"), only_conventions)


def test_every_measured_cell_is_one_point_and_no_other_is(frames: tuple[Frame, Frame]) -> None:
    points = encode(make_encoder(), time_blocks(frames[1]))
    seen = Counter((resource, name, attributes) for resource, name, attributes, _ in points)
    assert [key for key, count in seen.items() if count > 1] == []
    assert all(math.isfinite(point.as_double) for *_, point in points)
    names = {name for _, name, _, _ in points}
    conventional = {row.column for row in CONVENTIONS}
    for block in frames[1].blocks:
        for metric, column in zip(block.table.metrics, block.values.T):
            measured = bool(np.isfinite(column).any())
            if metric.published and metric.name not in conventional:
                assert (metric.published in names) >= measured, metric.name


def test_a_value_is_what_metrics_says(frames: tuple[Frame, Frame]) -> None:
    points = encode(make_encoder(), time_blocks(frames[1]))
    [memory] = [block for block in frames[1].blocks if block.table.name == "memory"]
    total = memory.values[0, memory.table.columns["memory.MemTotal"]] * 1024
    states = {
        dict(attributes)["system.memory.state"]: point.as_double
        for _, name, attributes, point in points
        if name == "system.memory.usage"
    }
    assert sum(states.values()) == total
    assert [point.as_double for _, name, _, point in points if name == "system.memory.limit"] == [total]


def test_conventions_alone_leaves_the_rest_out(frames: tuple[Frame, Frame]) -> None:
    names = {name for _, name, _, _ in encode(make_encoder(only_conventions=True), time_blocks(frames[1]))}
    assert names <= {row.name for row in (*CONVENTIONS, WORKING_SET)}
    assert "system.cpu.time" in names


def test_a_counter_keeps_its_start_and_a_container_has_its_own(frames: tuple[Frame, Frame]) -> None:
    encoder = make_encoder()
    first, second = (encode(encoder, time_blocks(frame)) for frame in frames)
    starts = {point[:3]: point[3].start_time_unix_nano for point in first}
    assert encoder.boot_ns is not None
    for resource, name, attributes, point in second:
        if name == "system.cpu.time":
            assert point.start_time_unix_nano == starts[resource, name, attributes]
        assert point.start_time_unix_nano <= point.time_unix_nano


def test_counters_count_from_boot_a_container_s_from_its_start_and_others_from_their_first_point() -> None:
    count = Metric("x", "counter", "X.", "x_total")
    boot = Table("cpu", "cpu", ("node",), (Metric("cpu.btime", "gauge", "B.", "b"), count))
    other = Table("t", "t", ("container", "gpu"), (count,))
    container = Entity("container", ("c",), (), (("container_id", "c"), ("started", "50")))
    blocks = [
        Timed(make_block(boot, {NODE: (7.0, 1.0)}, 0), 100 * 10**9),
        Timed(make_block(other, {container: (1.0,), Entity("gpu", ("g",)): (1.0,)}, 0), 100 * 10**9),
    ]
    starts = [
        point.start_time_unix_nano // 10**9
        for _, name, _, point in encode(make_encoder(), blocks)
        if name == "x_total"
    ]
    assert sorted(starts) == [7, 50, 100]


def semantic_conventions() -> dict[str, str]:
    """Name -> what stands under it; deprecated ones say so."""
    found = {}
    for area in ("system", "container", "k8s", "process", "hw"):
        module = import_module(f"opentelemetry.semconv._incubating.metrics.{area}_metrics")
        text = Path(str(module.__file__)).read_text()
        for match in re.finditer(
            r'^[A-Z0-9_]+: Final = \(?\s*"([^"]+)"\s*\)?\n"""\n(.*?)"""', text, re.DOTALL | re.MULTILINE
        ):
            found[match[1]] = match[2]
    return found


OFFICIAL = semantic_conventions()
INSTRUMENTS = {"counter": "counter", "updown": "updowncounter", "gauge": "gauge"}


@pytest.mark.parametrize("row", [*CONVENTIONS, WORKING_SET], ids=lambda row: f"{row.name}-{row.column}")
def test_names_units_and_instruments_are_opentelemetry_s_own(row: Any) -> None:
    words = OFFICIAL[row.name]
    assert "Deprecated" not in words
    assert f"Instrument: {INSTRUMENTS[row.instrument]}\n" in words
    assert f"Unit: {row.unit}\n" in words


def test_what_is_not_measured_and_what_has_no_limit_has_no_point() -> None:
    table = Table(
        "t",
        "t",
        ("node",),
        (Metric("a", "gauge", "A.", "a"), Metric("b", "gauge", "B.", "b"), Metric("c", "gauge", "C.", "c")),
    )
    block = make_block(table, {NODE: (math.nan, math.inf, 0.0)}, 0)
    points = encode(make_encoder(), [Timed(block, 5)])
    assert [(name, point.as_double) for _, name, _, point in points] == [("c", 0.0)]


def test_a_part_that_is_missing_makes_no_sum() -> None:
    columns = ("memory.MemTotal", "memory.MemFree", "memory.Buffers", "memory.Cached")
    table = Table("memory", "memory", ("node",), tuple(Metric(name, "gauge", "M.", name) for name in columns))
    block = make_block(table, {NODE: (100.0, 20.0, math.nan, 5.0)}, 0)
    found = encode(make_encoder(), [Timed(block, 5)])
    states = [
        dict(attributes)["system.memory.state"]
        for _, name, attributes, _ in found
        if name == "system.memory.usage"
    ]
    assert sorted(states) == ["cached", "free"]


def test_names_of_others_stay_text() -> None:
    """Bytes that are no UTF-8 reach us as replacement characters; quotes and breaks need no escape in protobuf."""
    table = Table("t", "t", ("container",), (Metric("a", "gauge", "A.", "a"),))
    entity = Entity(
        "container",
        ("c", "1"),
        (("pod", 'x"\n\ud800'), ("id", "/x")),
        (("container_id", "c"), ("pod_uid", "u")),
    )
    [(resource, _, attributes, _)] = encode(
        make_encoder(), [Timed(make_block(table, {entity: (1.0,)}, 0), 5)]
    )
    assert dict(resource)["k8s.pod.name"] == 'x"\n?'
    assert dict(resource)["container.id"] == "c"
    assert attributes == ()


def test_a_large_node_is_sent_in_pieces() -> None:
    table = Table("t", "t", ("container",), (Metric("a", "gauge", "A" * 2000, "a"),))
    rows = {
        Entity("container", (str(number),), (), (("container_id", str(number)),)): (1.0,)
        for number in range(2000)
    }
    requests = make_encoder().encode([Timed(make_block(table, rows, 0), 5)])
    assert len(requests) > 1
    assert (
        sum(request.points for request in requests)
        == len(list(iterate_points([request.body for request in requests])))
        == 2000
    )
    assert max(len(request.body) for request in requests) < 2**20 + 4096


def test_a_limit_is_a_container_s_of_kubernetes() -> None:
    names = ("cgroup.v2.cpu.max.quota", "cgroup.v2.cpu.max.period", "cgroup.v2.memory.max")
    table = Table(
        "container.limits",
        "container",
        ("container",),
        tuple(Metric(name, "gauge", "L.", name) for name in names),
    )
    pod = Entity("container", ("c", "1"), (), (("container_id", "c"), ("pod_uid", "u")))
    plain = replace(pod, ids=("d", "1"), details=(("container_id", "d"),))
    block = make_block(table, {pod: (150000.0, 100000.0, math.inf), plain: (1.0, 1.0, 1.0)}, 0)
    points = encode(make_encoder(only_conventions=True), [Timed(block, 5)])
    assert [(name, point.as_double) for _, name, _, point in points] == [
        ("k8s.container.cpu.limit.current", 1.5)
    ]
