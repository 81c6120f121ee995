"""The NVIDIA source on a library of our own that says what a scenario file says."""

import json
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.nvml.library import Scenario, build_library, many_gpus, point_binding_at

from nodescope.base.block import Block
from nodescope.base.clock import SystemClock
from nodescope.base.errors import SourceAbsent, SourceFailed
from nodescope.base.settings import Settings
from nodescope.collect.containers.live_containers import LiveContainers
from nodescope.collect.containers.names import ContainerNames
from nodescope.collect.files.roots import Descriptors, NodeRoot
from nodescope.collect.run.call_runner import CallRunner
from nodescope.collect.run.source import Context
from nodescope.collect.sources.gpu.metrics import GpuFamily
from nodescope.collect.sources.nvidia.source import NvidiaSource

pytest.importorskip("pynvml")
UID = "0123abcd-1111-2222-3333-444455556666"
CONTAINER = "ab" * 32


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_library(tmp_path_factory.mktemp("nvml"))


@pytest.fixture(scope="module")
def old_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_library(tmp_path_factory.mktemp("old-nvml"), "-DOLD_DRIVER")


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scenario:
    path = tmp_path / "scenario"
    monkeypatch.setenv("FAKE_NVML_SCENARIO", str(path))
    return Scenario(path)


def context_in(folder: Path, **settings: Any) -> Context:
    root = NodeRoot(folder)
    return Context(root, Descriptors(100), Settings(**settings), ContainerNames(root), LiveContainers())


Open = Callable[..., NvidiaSource]


@pytest.fixture
def open_source(library: Path, tmp_path: Path) -> Iterator[Open]:
    opened: list[NvidiaSource] = []

    def open_it(path: Path = library, **settings: Any) -> NvidiaSource:
        point_binding_at(path)
        source = NvidiaSource(context_in(tmp_path, **settings), str(path))
        opened.append(source)
        return source

    yield open_it
    for source in opened:
        source.close()


def take(source: NvidiaSource) -> dict[str, Block]:
    """One reading, by way of JSON, as a capture would keep it."""
    answer = json.loads(json.dumps(source.read()))
    return {block.table.name: block for block in source.parse(answer, 1)}


def cell(block: Block, row: int, column: str) -> float:
    return float(block.values[row, block.table.columns[f"gpu.{column}"]])


def test_every_reading_arrives_in_base_units(open_source: Open, scenario: Scenario) -> None:
    """Milliwatts, millijoules, megahertz and KiB become watts, joules, hertz and bytes."""
    scenario.say(many_gpus(1) | {"gpu0.fan": 30, "gpu0.pages.pending": 0})
    gpus = take(open_source())["nvidia"]
    expected = {
        "up": 1,
        "utilization": 7,
        "memory_busy": 41,
        "memory_used": 5 * 2**30,
        "memory_total": 85520809984,
        "memory_reserved": 540016640,
        "memory_used_percent": 100 * 5 * 2**30 / 85520809984,
        "temperature": 40,
        "temperature_memory": 58,
        "power": 100.23,
        "power_limit": 700,
        "energy": 123456789.012,
        "clock.sm": 1.98e9,
        "clock.memory": 2.619e9,
        "throttled.software_power_cap": 1,
        "throttled.hardware_thermal": 0,
        "ecc.corrected": 3,
        "ecc_lifetime.corrected": 12,
        "ecc_lifetime.uncorrected": 1,
        "rows_remapped.corrected": 1,
        "row_remap_failed": 0,
        "nvlink_transmit": 1024 * 1024,
        "pcie_transmit_rate": 12_345_000,
        "pcie_receive_rate": 54_321_000,
        "pcie_replays": 2,
        "encoder": 0,
        "decoder": 7,
        "fan": 30,
        "processes": 0,
        "recovery_action": 0,
        "xids": 0,
    }
    assert {key: cell(gpus, 0, key) for key in expected} == expected
    assert math.isnan(cell(gpus, 0, "temperature_junction"))


def test_bytes_counted_by_the_gpu_spare_the_20_ms_of_the_rate(open_source: Open, scenario: Scenario) -> None:
    scenario.say(many_gpus(1) | {"gpu0.field.197": 5000, "gpu0.field.198": 7000})
    gpus = take(open_source())["nvidia"]
    assert cell(gpus, 0, "pcie_transmit") == 5000
    assert math.isnan(cell(gpus, 0, "pcie_transmit_rate"))


def test_eight_gpus_keep_their_own_values_and_names(open_source: Open, scenario: Scenario) -> None:
    scenario.say(many_gpus(8))
    source = open_source()
    gpus = take(source)["nvidia"]
    assert [cell(gpus, row, "utilization") for row in range(8)] == [10 * row + 7 for row in range(8)]
    entity = gpus.entities[3]
    assert dict(entity.labels) == {
        "gpu_index": "3",
        "uuid": "GPU-00000003-1111-2222-3333-444444444444",
        "vendor": "nvidia",
    }
    assert entity.attribute("driver_version") == "590.48.01"
    assert entity.attribute("pci_bus_id") == "00000000:0A:00.0"
    assert take(source)["nvidia"].entities == gpus.entities


def test_the_set_of_gpus_is_the_same_object_while_unchanged(
    library: Path, scenario: Scenario, tmp_path: Path
) -> None:
    """What is derived from labels is computed once."""
    scenario.say(many_gpus(8))
    point_binding_at(library)

    class FakeLibrarySource(NvidiaSource):
        def __init__(self, context: Context) -> None:
            super().__init__(context, str(library))

    caller = CallRunner(FakeLibrarySource, context_in(tmp_path), SystemClock())
    sets = []
    for _ in range(2):
        caller.ask()
        sets.append(caller.take().blocks[0].entities)
    assert sets[0] is sets[1]
    caller._close()


def test_a_gpu_lost_while_running_leaves_the_others_alone(open_source: Open, scenario: Scenario) -> None:
    """It stays by name with gpu_up 0 and no other value; it comes back when it does."""
    scenario.say(many_gpus(3))
    source = open_source()
    before = take(source)["nvidia"]
    scenario.say({"gpu1.*": "!15"})
    after = take(source)["nvidia"]
    assert [entity.ids for entity in after.entities] == [entity.ids for entity in before.entities]
    assert [cell(after, row, "up") for row in range(3)] == [1, 0, 1]
    assert math.isnan(cell(after, 1, "utilization"))
    assert math.isnan(cell(after, 1, "memory_used"))
    assert cell(after, 2, "utilization") == 27
    assert "GPU 1" in source.note
    scenario.say({"gpu1.*": "ok"})
    assert cell(take(source)["nvidia"], 1, "utilization") == 17


def test_a_gpu_that_left_the_list_is_lost_too(open_source: Open, scenario: Scenario) -> None:
    scenario.say(many_gpus(2))
    source = open_source()
    take(source)
    scenario.say({"count": 1})
    gpus = take(source)["nvidia"]
    assert [cell(gpus, row, "up") for row in range(2)] == [1, 0]


def test_a_gpu_that_never_gave_its_name_has_its_place_for_a_name(
    open_source: Open, scenario: Scenario
) -> None:
    scenario.say(many_gpus(2) | {"gpu1.handle": "!15"})
    gpus = take(open_source())["nvidia"]
    assert gpus.entities[1].ids == ("nvidia-1",)
    assert [cell(gpus, row, "up") for row in range(2)] == [1, 0]


def test_not_supported_everywhere_is_a_gpu_that_is_up_and_silent(
    open_source: Open, scenario: Scenario
) -> None:
    """No reading is zero because it could not be had."""
    scenario.say({"driver": "390.157", "count": 1, "gpu0.uuid": "GPU-old"})
    gpus = take(open_source())["nvidia"]
    measured = {
        metric.name for metric, value in zip(gpus.table.metrics, gpus.values[0]) if not math.isnan(value)
    }
    assert measured == {"gpu.up"}


def test_an_old_driver_falls_back_to_its_own_functions(
    open_source: Open, old_library: Path, scenario: Scenario
) -> None:
    """Without MemoryInfo_v2, _v3 processes and the renamed throttle call: v1, v2 and the old name."""
    scenario.say(many_gpus(1) | {"gpu0.compute": "4242:1000"})
    blocks = take(open_source(old_library))
    gpus = blocks["nvidia"]
    # Version 1 cannot tell what is reserved from what is used.
    assert cell(gpus, 0, "memory_used") == 5 * 2**30 + 540016640
    assert math.isnan(cell(gpus, 0, "memory_reserved"))
    assert cell(gpus, 0, "throttled.software_power_cap") == 1
    assert cell(blocks["nvidia.process"], 0, "process.memory") == 1000
    assert math.isnan(cell(gpus, 0, "temperature_memory"))


@pytest.mark.parametrize(
    ("line", "situation", "words"),
    [
        ("!9", SourceAbsent, "not loaded"),
        ("!18", SourceFailed, "restart the agent"),
        ("!4", SourceFailed, "Permission"),
        ("!999", SourceFailed, "Unknown"),
    ],
)
def test_a_driver_that_refuses_is_told_by_its_reason(
    open_source: Open, scenario: Scenario, line: str, situation: type[Exception], words: str
) -> None:
    scenario.say(many_gpus(1) | {"init": line})
    with pytest.raises(situation, match=words):
        open_source()


def test_no_library_is_absence(tmp_path: Path) -> None:
    with pytest.raises(SourceAbsent, match="NVIDIA_VISIBLE_DEVICES"):
        NvidiaSource(context_in(tmp_path), str(tmp_path / "libnvidia-ml.so.1"))


def test_a_driver_without_gpus_is_a_failure_not_idleness(open_source: Open, scenario: Scenario) -> None:
    scenario.say({"driver": "590.48.01", "count": 0})
    with pytest.raises(SourceFailed, match="shows no GPU"):
        open_source().read()


def test_a_mismatch_while_running_is_told_and_healed(open_source: Open, scenario: Scenario) -> None:
    """After a failure NVML is begun anew; a driver that fits again is taken up again."""
    scenario.say(many_gpus(1))
    source = open_source()
    take(source)
    scenario.say({"count": "!18", "init": "!18"})
    for _ in range(2):
        with pytest.raises(SourceFailed, match="different versions"):
            source.read()
    scenario.say({"count": 1, "init": "ok"})
    assert cell(take(source)["nvidia"], 0, "utilization") == 7


def test_a_mismatch_met_at_a_gpu_is_not_the_gpus_fault(open_source: Open, scenario: Scenario) -> None:
    scenario.say(many_gpus(2) | {"gpu1.*": "!18"})
    with pytest.raises(SourceFailed, match="restart the agent"):
        open_source().read()


def test_mig_devices_have_series_of_their_own(open_source: Open, scenario: Scenario) -> None:
    """The parent has no utilisation; its parts have memory, and holes between them are skipped."""
    lines = many_gpus(1) | {
        "gpu0.mig": 1,
        "gpu0.utilization": "!3",
        "gpu0.compute": "77:1000:3, 77:500:5, 78:-:3",
    }
    for place, instance in ((0, 3), (2, 5)):
        lines |= {
            f"gpu0.mig{place}.uuid": f"MIG-{place}",
            f"gpu0.mig{place}.name": "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
            f"gpu0.mig{place}.instance": instance,
            f"gpu0.mig{place}.compute_instance": 0,
            f"gpu0.mig{place}.memory.total": 10 * 2**30,
            f"gpu0.mig{place}.memory.used": (place + 1) * 2**30,
            f"gpu0.mig{place}.multiprocessors": 16,
        }
    scenario.say(lines)
    blocks = take(open_source())
    assert math.isnan(cell(blocks["nvidia"], 0, "utilization"))
    parts = blocks["nvidia.mig"]
    assert [entity.attribute("gpu_instance_id") for entity in parts.entities] == ["3", "5"]
    assert [cell(parts, row, "mig.memory_used") for row in range(2)] == [2**30, 3 * 2**30]
    assert parts.entities[0].attribute("parent_uuid") == blocks["nvidia"].entities[0].ids[0]
    processes = blocks["nvidia.process"]
    assert cell(processes, 0, "process.memory") == 1500
    assert math.isnan(cell(processes, 1, "process.memory"))


def link_lines(gpu: int, link: int, **values: int) -> dict[str, object]:
    fields = {
        "transmit": 138,
        "receive": 139,
        "up": 165,
        "speed": 164,
        "replay": 161,
        "recovery": 162,
        "crc": 163,
    }
    return {f"gpu{gpu}.link{link}.{fields[key]}": value for key, value in values.items()}


def test_single_nvlinks_have_state_bytes_and_errors(open_source: Open, scenario: Scenario) -> None:
    """Each link of each GPU on its own; KiB and MB/s become bytes; what one lacks is absent."""
    lines = many_gpus(2) | {"all.field.91": 3}
    lines |= link_lines(0, 0, up=1, transmit=1000, receive=2000, speed=25781, replay=4, recovery=1, crc=0)
    lines |= link_lines(0, 1, up=0)
    lines |= link_lines(1, 2, up=1, transmit=7)
    scenario.say(lines)
    links = take(open_source())["nvidia.nvlink"]
    names = [(entity.attribute("gpu_index"), entity.attribute("link")) for entity in links.entities]
    assert names == [("0", "0"), ("0", "1"), ("1", "2")]
    expected = {"up": 1, "transmit": 1000 * 1024, "receive": 2000 * 1024, "speed": 25781e6}
    expected |= {"errors.replay": 4, "errors.recovery": 1, "errors.crc": 0}
    assert {key: cell(links, 0, f"nvlink.{key}") for key in expected} == expected
    assert (cell(links, 1, "nvlink.up"), cell(links, 2, "nvlink.transmit")) == (0, 7 * 1024)
    assert math.isnan(cell(links, 1, "nvlink.transmit"))
    assert math.isnan(cell(links, 2, "nvlink.errors.crc"))


def test_nvlinks_of_gpus_before_hopper_are_asked_one_by_one(open_source: Open, scenario: Scenario) -> None:
    """No fields for state and errors there; a link that is down is not asked for its errors."""
    lines = many_gpus(1) | {
        "all.field.91": 2,
        "gpu0.link0.138": 5,
        "gpu0.link0.state": 1,
        "gpu0.link1.state": 0,
    }
    lines |= {
        "gpu0.link0.error.0": 8,
        "gpu0.link0.error.1": 0,
        "gpu0.link0.error.2": 3,
        "gpu0.link1.error.0": 9,
    }
    scenario.say(lines)
    links = take(open_source())["nvidia.nvlink"]
    up, errors = "nvlink.up", ("nvlink.errors.replay", "nvlink.errors.recovery", "nvlink.errors.crc")
    assert [cell(links, row, up) for row in range(2)] == [1, 0]
    assert [cell(links, 0, key) for key in errors] == [8, 0, 3]
    assert math.isnan(cell(links, 1, errors[0]))


def test_a_number_of_nvlinks_that_cannot_be_is_cut(open_source: Open, scenario: Scenario) -> None:
    scenario.say(many_gpus(1) | {"all.field.91": 4_000_000_000, "gpu0.link0.138": 1, "gpu0.link99.138": 1})
    assert len(take(open_source())["nvidia.nvlink"].entities) == 1


def test_a_gpu_without_nvlink_has_no_such_series(open_source: Open, scenario: Scenario) -> None:
    scenario.say(many_gpus(1) | {"all.field.91": 0})
    assert "nvidia.nvlink" not in take(open_source())


def test_a_process_is_led_back_to_its_pod(open_source: Open, scenario: Scenario, tmp_path: Path) -> None:
    """PID -> cgroup -> pod; a pid that is not in /proc keeps its memory and has no owner."""
    proc = tmp_path / "proc" / "4242"
    proc.mkdir(parents=True)
    (proc / "stat").write_text(f"4242 (python train) S {' '.join(['1'] * 18)} 8931 0 0\n")
    slices = f"kubepods.slice/kubepods-pod{UID.replace('-', '_')}.slice"
    (proc / "cgroup").write_text(f"0::/{slices}/cri-containerd-{CONTAINER}.scope\n")
    logs = tmp_path / "var/log/containers"
    logs.mkdir(parents=True)
    (logs / f"trainer-0_research_main-{CONTAINER}.log").touch()
    scenario.say(many_gpus(1) | {"gpu0.compute": "4242:30000000000, 99:-", "gpu0.shares": "4242:80:5"})
    source = open_source()
    assert source._context is not None
    source._context.names.refresh()
    processes = take(source)["nvidia.process"]
    unknown, trainer = processes.entities
    assert {key: trainer.attribute(key) for key in ("pid", "gpu_index", "namespace", "pod", "container")} == {
        "pid": "4242",
        "gpu_index": "0",
        "namespace": "research",
        "pod": "trainer-0",
        "container": "main",
    }
    assert trainer.attribute("name") == "python train"
    assert trainer.attribute("pod_uid") == UID
    assert unknown.attribute("pod") == ""
    assert cell(processes, 1, "process.memory") == 30000000000
    assert cell(processes, 1, "process.utilization") == 80
    assert math.isnan(cell(processes, 0, "process.memory"))
    # The same samples are not counted twice; the process is idle now.
    assert cell(take(source)["nvidia.process"], 1, "process.utilization") == 0
    # Labels vanish with the process.
    scenario.say({"gpu0.compute": ""})
    assert take(source)["nvidia.process"].entities == ()


def wait_for(condition: Callable[[], bool], seconds: float = 5.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


@pytest.mark.real
def test_xids_are_counted_by_gpu_and_kind_even_of_a_lost_gpu(open_source: Open, scenario: Scenario) -> None:
    """A GPU off the bus cannot tell its uuid any more; its XID 79 is still its own."""
    scenario.say(many_gpus(2))
    source = open_source()
    assert "nvidia.xid" not in take(source)
    scenario.say({"gpu1.*": "!15", "event": "1000001 1 79"})
    assert wait_for(lambda: "nvidia.xid" in take(source))
    blocks = take(source)
    (entity,) = blocks["nvidia.xid"].entities
    assert (entity.attribute("gpu_index"), entity.attribute("xid")) == ("1", "79")
    assert cell(blocks["nvidia.xid"], 0, "xid.count") == 1
    assert cell(blocks["nvidia.xid"], 0, "xid.last") > 1.6e9
    assert [cell(blocks["nvidia"], row, "xids") for row in range(2)] == [0, 1]


def test_dcgm_names_carry_its_units(open_source: Open, scenario: Scenario) -> None:
    scenario.say(many_gpus(1))
    source = open_source(dcgm_names=True)
    block = take(source)["nvidia.dcgm"]
    values = dict(zip([metric.published for metric in block.table.metrics], block.values[0]))
    assert values["DCGM_FI_DEV_GPU_UTIL"] == 7
    assert values["DCGM_FI_DEV_FB_USED"] == 5 * 1024
    assert values["DCGM_FI_DEV_SM_CLOCK"] == 1980
    assert values["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"] == 123456789012
    assert values["DCGM_FI_DEV_XID_ERRORS"] == 0
    assert dict(block.entities[0].labels)["gpu"] == "0"


COUNTERS = {
    "all.gpm": 1,
    "all.gpm.1": 96,
    "all.gpm.2": 88.5,
    "all.gpm.3": 61,
    "all.gpm.5": 42.5,
    "all.gpm.10": 55,
}


def test_counters_over_time_need_two_readings(open_source: Open, scenario: Scenario) -> None:
    """Hopper and later (GPM): what DCGM calls profiling, without its privileges."""
    scenario.say({**many_gpus(2), **COUNTERS, "gpu1.gpm": 0, "gpu0.gpm.10": "!4"})
    source = open_source(dcgm_names=True)
    assert math.isnan(cell(take(source)["nvidia"], 0, "tensor_active"))
    blocks = take(source)
    assert cell(blocks["nvidia"], 0, "tensor_active") == 42.5
    assert cell(blocks["nvidia"], 0, "sm_occupancy") == 61
    assert math.isnan(cell(blocks["nvidia"], 0, "dram_active")), "each has a return code of its own"
    assert math.isnan(cell(blocks["nvidia"], 1, "tensor_active")), "an older GPU"
    block = blocks["nvidia.dcgm"]
    values = dict(zip([metric.published for metric in block.table.metrics], block.values[0]))
    assert values["DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"] == 0.425
    assert values["DCGM_FI_PROF_SM_ACTIVE"] == 0.885


def test_a_sample_that_cannot_be_taken_costs_the_counters_only(open_source: Open, scenario: Scenario) -> None:
    scenario.say({**many_gpus(1), **COUNTERS})
    source = open_source()
    take(source)
    take(source)
    scenario.say({"all.gpm.sample": "!10"})
    blocks = take(source)
    assert cell(blocks["nvidia"], 0, "utilization") == 7
    assert math.isnan(cell(blocks["nvidia"], 0, "tensor_active"))
    scenario.say({"all.gpm.sample": "taken"})
    assert math.isnan(cell(take(source)["nvidia"], 0, "tensor_active")), "nothing to compare with"
    assert cell(take(source)["nvidia"], 0, "tensor_active") == 42.5


def test_dcgm_has_the_newest_xid_and_none_of_a_gpu_that_tells_none() -> None:
    known = {"index": 0, "readings": {"xids": 3}, "xids": {"13": [2, 100.0], "79": [1, 90.0]}}
    silent = {"index": 1, "readings": {"up": 1}}
    block = GpuFamily("nvidia").blocks({"gpus": [known, silent]}, 1, dcgm=True)[-1]
    column = block.table.columns["gpu.dcgm.XID_ERRORS"]
    assert block.values[0, column] == 13
    assert math.isnan(block.values[1, column])


@pytest.mark.real
def test_a_call_that_hangs_fails_the_source_and_never_the_tick(
    library: Path, scenario: Scenario, tmp_path: Path
) -> None:
    """The driver sits in a call; whoever takes gets "no answer" at once, and later the answer."""
    scenario.say(many_gpus(1) | {"gpu0.power": "~2"})
    point_binding_at(library)

    class ImpatientSource(NvidiaSource):
        deadline_seconds = 0.3

        def __init__(self, context: Context) -> None:
            super().__init__(context, str(library))

    caller = CallRunner(ImpatientSource, context_in(tmp_path), SystemClock())
    caller.start()
    slowest_seconds = 0.0

    def is_hung() -> bool:
        nonlocal slowest_seconds
        started = time.monotonic()
        outcome = caller.take().outcome
        slowest_seconds = max(slowest_seconds, time.monotonic() - started)
        return outcome.detail == "hung"

    assert wait_for(is_hung)
    assert slowest_seconds < 0.2
    scenario.say({"gpu0.power": 100_000})
    assert wait_for(lambda: caller.take().outcome.state == "ok")
    caller.stop()
    caller._thread.join(timeout=5)


def test_collection_interval_paces_the_gpus_alone(open_source: Open, scenario: Scenario) -> None:
    scenario.say(many_gpus(1))
    assert open_source().pace_seconds == 1.0
    assert open_source(gpu_interval_seconds=30.0).pace_seconds == 30.0
