"""Every plain name, of every scope, on archives of nodes with cgroup v1, v2 and both."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.keep.frames import MONO_NS, NODES, SECOND_NS, START_NS, A, B, frame_at, read_log_tail, write_log
from tests.support import FixtureNode

from nodescope.base.block import Block, Table
from nodescope.base.entity import Entity
from nodescope.base.errors import RequestRejected
from nodescope.base.frame import OK, Frame
from nodescope.base.metric import Metric
from nodescope.base.metric_names import ROWS, SCOPED
from nodescope.keep.consolidator import Consolidator
from nodescope.keep.convert import convert_all
from nodescope.keep.disk import Disk
from nodescope.keep.folder import DataFolder
from nodescope.read.files.catalog import Catalog, read_catalog
from nodescope.read.query.engine import Engine

GOLDEN = Path(__file__).parents[2] / "golden"
LATER_MS = START_NS // 10**6 + 90 * 86_400_000
CGROUP_NAMES = [row.name for row in ROWS if not row.scope]
# v1 has no pressure of a cgroup.
V2_ONLY = {"pressure_cpu", "pressure_memory", "pressure_io"}


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine()


@pytest.fixture(scope="module", params=["cgroup1", "cgroup2-systemd", "hybrid"])
def fixture(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Catalog]:
    """What the agent archives of a captured node's two instants."""
    return request.param, archive_node(request.param, tmp_path_factory.mktemp(request.param))


def archive_node(name: str, place: Path) -> Catalog:
    node = FixtureNode(name, place)
    # The pods' networks are known from the first tick on: those are asked at the next.
    node.tick()
    node.clock.advance(SECOND_NS)
    node.run()
    folder = DataFolder(place / "data")
    write_log(folder, node.parts.ring.since(-1)[1])
    node.close()
    convert_all(Disk(), folder)
    return read_catalog([folder.path])


@pytest.mark.parametrize("name", CGROUP_NAMES)
def test_a_plain_name_has_an_answer_for_v1_and_v2(
    engine: Engine, fixture: tuple[str, Catalog], name: str
) -> None:
    node, catalog = fixture
    if node == "cgroup1" and name in V2_ONLY:
        with pytest.raises(RequestRejected, match="was not collected here: it needs"):
            engine.query(catalog, name)
        return
    answer = engine.query(catalog, name)
    assert answer.lines
    assert {line.subject.label("l_scope") for line in answer.lines} == {"container"}
    ids = {one.label("l_container_id") for one in catalog.containers()}
    assert {line.subject.label("l_container_id") for line in answer.lines} <= ids


def test_a_nodes_cpu_is_what_its_window_says(engine: Engine, fixture: tuple[str, Catalog]) -> None:
    """
    The window's mean_cpu_util comes from the ring, by other code; the golden was reviewed.

    It divides by the kernel's own ticks, 101 in this second; we by the clock.
    """
    node, catalog = fixture
    util = json.loads((GOLDEN / node / "window.json").read_text())["node"]["metrics"]["mean_cpu_util"]
    (share,) = engine.query(catalog, "cpu_limit_share", scope="node").lines
    assert share.points.mean[-1] == pytest.approx(util, rel=0.02)
    (cores,) = engine.query(catalog, "cpu", scope="node").lines
    each = engine.query(catalog, "cpu", scope="cpu").lines
    assert cores.points.mean[-1] == pytest.approx(sum(line.points.mean[-1] for line in each))
    assert cores.subject.label("l_node_name") == "n1"


STACK = [key for key in SCOPED if key[0] == "node" and key[1].startswith("tcp_")]
FILES = [key for key in SCOPED if not key[1].startswith("gpu") and key[0] != "gpu" and key not in STACK]


def test_tcp_of_the_node_itself_is_what_its_network_stack_counts(engine: Engine, tmp_path: Path) -> None:
    """Twelve segments more are sent again at the second instant, of 500 that are sent."""
    catalog = archive_node("board", tmp_path)
    answers = {name: engine.query(catalog, name, scope=scope).lines for scope, name in STACK}
    assert all(len(lines) == 1 for lines in answers.values()), answers
    assert answers["tcp_retransmits"][0].points.mean[-1] == pytest.approx(12, rel=0.01)
    assert answers["tcp_retransmit_share"][0].points.mean[-1] == pytest.approx(12 / 500, rel=0.01)
    assert answers["tcp_connections"][0].points.mean[-1] == 2


@pytest.mark.parametrize("key", FILES)
def test_a_scoped_name_has_series_of_that_scope(
    engine: Engine, fixture: tuple[str, Catalog], key: tuple[str, str]
) -> None:
    scope, name = key
    if fixture[0] == "cgroup1" and name in V2_ONLY:
        pytest.skip("a node as old as this has no pressure at all")
    answer = engine.query(fixture[1], name, scope=scope)
    assert {line.subject.label("l_scope") for line in answer.lines} == {scope}


def test_every_input_is_a_metric_of_a_source() -> None:
    """A name that no source has would be answered "not collected" for ever."""
    docs = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text()
    for row in (*ROWS, *SCOPED.values()):
        for raw in (name for alternatives in row.inputs for name in alternatives):
            assert f"`{raw}`" in docs, f"{row.name} needs {raw}"


# -- summed to something larger ------------------------------------------------------

RECEIVED = Metric("pod.network.receive_bytes", "counter", "Bytes.", unit="bytes")
PODS = Table("pod", "pod", ("pod",), (RECEIVED,))
USED = Metric("gpu.utilization", "gauge", "Share of time.", unit="percent")
POWER = Metric("gpu.power", "gauge", "Power.", unit="watts")
GPUS = Table("gpu", "nvidia", ("gpu",), (USED, POWER))


def of_pod(entity: Entity, uid: str) -> Entity:
    return Entity(entity.scope, entity.ids, entity.labels, (*entity.details, ("pod_uid", uid)))


WEB, SIDE, OTHER = of_pod(A, "u1"), of_pod(B, "u1"), of_pod(Entity("container", ("c" * 64, "7")), "u2")
INTERFACES = tuple(
    Entity("pod", (uid, name)) for uid, name in (("u1", "eth0"), ("u1", "net1"), ("u2", "eth0"))
)
CARDS = (Entity("gpu", ("GPU-a",)), Entity("gpu", ("GPU-b",)))


def make_frame(number: int) -> Frame:
    """Pod u1 receives 100 bytes a second on one interface, 20 on another; u2 receives 7."""
    base = frame_at(number, (WEB, SIDE, OTHER))
    mono_ns = MONO_NS + number * SECOND_NS
    pods = Block(PODS, INTERFACES, np.array([[100.0 * number], [20.0 * number], [7.0 * number]]), mono_ns)
    gpus = Block(GPUS, CARDS, np.array([[50.0, 200.0], [30.0, 100.0]]), mono_ns)
    return Frame(number, base.at_ns, mono_ns, (*base.blocks, pods, gpus), {"pod": OK}, ())


@pytest.fixture(scope="module")
def summed(tmp_path_factory: pytest.TempPathFactory) -> DataFolder:
    """Twenty minutes, consolidated and rolled up, and ten more ticks in the log."""
    folder = DataFolder(tmp_path_factory.mktemp("summed"))
    for segment in (1, 2):
        many = [make_frame(number) for number in range((segment - 1) * 600, segment * 600)]
        write_log(folder, many, segment=segment)
    convert_all(Disk(), folder)
    Consolidator(Disk(), folder).run_pass(LATER_MS)
    write_log(folder, [make_frame(number) for number in range(1200, 1210)], segment=3)
    return folder


@pytest.mark.parametrize("points", [5, 100_000])
def test_a_pods_interfaces_are_summed_to_each_of_its_containers(
    engine: Engine, summed: DataFolder, points: int
) -> None:
    """From rollups and from samples, with the log behind them."""
    catalog = read_catalog([summed.path])
    tail = read_log_tail(summed.path, catalog)
    answer = engine.query(catalog, "network_receive", max_points=points, tail=tail)
    means = {line.subject.label("l_container_id"): line.points for line in answer.lines}
    assert set(means) == {WEB.ids[0], SIDE.ids[0], OTHER.ids[0]}
    for container, rate in ((WEB, 120.0), (SIDE, 120.0), (OTHER, 7.0)):
        found = means[container.ids[0]]
        np.testing.assert_allclose(found.mean[found.count > 0], rate, rtol=0.01)
        assert found.count.sum() > 1190
    (one,) = engine.query(catalog, "network_receive", [SIDE.ids[0]], max_points=points, tail=tail).lines
    assert one.subject.label("l_pod_name") == "pod-b"
    pods = engine.query(catalog, "network_receive", max_points=points, scope="pod").lines
    assert [line.subject.label("l_pod_uid") for line in pods] == ["u1", "u2"]


def test_gpus_are_ratios_and_a_node_has_their_mean_or_sum(engine: Engine, summed: DataFolder) -> None:
    catalog = read_catalog([summed.path])
    for points in (5, 100_000):
        each = engine.query(catalog, "gpu_utilization", max_points=points).lines
        assert [line.subject.label("l_gpu") for line in each] == ["GPU-a", "GPU-b"]
        np.testing.assert_allclose([line.points.mean[0] for line in each], [0.5, 0.3])
        (node,) = engine.query(catalog, "gpu_utilization", max_points=points, scope="node").lines
        np.testing.assert_allclose(node.points.mean[0], 0.4)
        (power,) = engine.query(catalog, "gpu_power", max_points=points, scope="node").lines
        np.testing.assert_allclose(power.points.mean[0], 300.0)


def test_a_question_that_cannot_be_meant_is_refused(engine: Engine, summed: DataFolder) -> None:
    catalog = read_catalog([summed.path])
    with pytest.raises(RequestRejected, match='"gpu_power" is measured per gpu, not per container'):
        engine.query(catalog, "gpu_power", [WEB.ids[0]])
    with pytest.raises(RequestRejected, match='no scope "nodes"; did you mean "node"'):
        engine.query(catalog, "cpu", scope="nodes")
    with pytest.raises(RequestRejected, match='no metric "cpu_throttled" of a node'):
        engine.query(catalog, "cpu_throttled", scope="node")


def test_a_raw_name_is_narrowed_to_a_scope(engine: Engine, summed: DataFolder) -> None:
    catalog = read_catalog([summed.path])
    (load,) = engine.query(catalog, NODES.metrics[0].name, scope="node").lines
    assert load.subject.label("l_scope") == "node"
    assert not engine.query(catalog, NODES.metrics[0].name, scope="disk").lines


def test_two_nodes_are_not_mixed(engine: Engine, tmp_path: Path) -> None:
    """Each has a first core, and one has cgroup v1: four containers, two loads."""
    folders = []
    for name in ("cgroup1", "cgroup2-systemd"):
        place = tmp_path / name
        place.mkdir()
        node = FixtureNode(name, place)
        node.run()
        folder = DataFolder(place / "data")
        write_log(folder, node.parts.ring.since(-1)[1], run=name, node=name)
        node.close()
        convert_all(Disk(), folder)
        folders.append(folder.path)
    both = read_catalog(folders)
    alone = [engine.query(read_catalog([path]), "cpu") for path in folders]
    together = engine.query(both, "cpu")
    assert len(together.lines) == sum(len(one.lines) for one in alone)
    loads = engine.query(both, "cpu.load_1m")
    assert [line.subject.label("l_node_name") for line in loads.lines] == ["cgroup1", "cgroup2-systemd"]
    assert loads.lines[0].points.count.sum() == 2
