"""Intel cards of both drivers, on synthetic files."""

import json
import math
from pathlib import Path

import pytest
from tests.support import TurnableClock

from nodescope.base.block import Block
from nodescope.base.errors import SourceAbsent
from nodescope.base.settings import Settings
from nodescope.collect.containers.live_containers import LiveContainers
from nodescope.collect.containers.names import ContainerNames
from nodescope.collect.files.roots import Descriptors, NodeRoot
from nodescope.collect.run.source import Context
from nodescope.collect.sources.intel.source import IntelSource

XE = "sys/class/drm/card1/device"
I915 = "sys/class/drm/card0"


def write(root: Path, path: str, text: object) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(f"{text}\n")


def build(root: Path) -> None:
    write(root, f"{I915}/device/uevent", "DRIVER=i915\nPCI_ID=8086:9A49\nPCI_SLOT_NAME=0000:00:02.0")
    write(root, f"{I915}/gt/gt0/rc6_residency_ms", 1000)
    write(root, f"{I915}/gt/gt0/rps_act_freq_mhz", 1300)
    write(root, f"{XE}/uevent", "DRIVER=xe\nPCI_ID=8086:E20B\nPCI_SLOT_NAME=0000:03:00.0")
    write(root, f"{XE}/tile0/gt0/gtidle/idle_residency_ms", 2000)
    write(root, f"{XE}/tile0/gt1/gtidle/idle_residency_ms", 4000)
    write(root, f"{XE}/tile0/gt0/freq0/act_freq", 1950)
    write(root, f"{XE}/hwmon/hwmon4/energy1_input", 5_000_000)
    write(root, f"{XE}/hwmon/hwmon4/temp2_input", 52_000)
    write(root, "sys/class/drm/card0-DP-1/status", "connected")
    write(root, "sys/class/drm/card2/device/uevent", "DRIVER=ast")


def open_source(root: Path, clock: TurnableClock) -> IntelSource:
    node = NodeRoot(root)
    return IntelSource(
        Context(node, Descriptors(100), Settings(), ContainerNames(node), LiveContainers(), clock=clock)
    )


def take(source: IntelSource) -> dict[str, dict[str, float]]:
    answer = json.loads(json.dumps(source.read()))
    block: Block = source.parse(answer, 1)[0]
    return {
        entity.ids[0]: {
            name: value for name, value in zip(block.table.columns, row.tolist()) if not math.isnan(value)
        }
        for entity, row in zip(block.entities, block.values)
    }


def test_awake_time_is_use_and_needs_two_readings(tmp_path: Path) -> None:
    build(tmp_path)
    clock = TurnableClock()
    source = open_source(tmp_path, clock)
    first = take(source)
    assert set(first) == {"pci-0000:00:02.0", "pci-0000:03:00.0"}
    assert "gpu.utilization" not in first["pci-0000:03:00.0"]
    clock.advance(10**9)
    write(tmp_path, f"{I915}/gt/gt0/rc6_residency_ms", 1900)
    write(tmp_path, f"{XE}/tile0/gt0/gtidle/idle_residency_ms", 2200)
    write(tmp_path, f"{XE}/tile0/gt1/gtidle/idle_residency_ms", 5000)
    second = take(source)
    assert second["pci-0000:00:02.0"]["gpu.utilization"] == pytest.approx(10)
    assert second["pci-0000:03:00.0"]["gpu.utilization"] == pytest.approx(40)
    assert second["pci-0000:03:00.0"]["gpu.energy"] == 5
    assert second["pci-0000:03:00.0"]["gpu.temperature"] == 52
    assert second["pci-0000:00:02.0"]["gpu.clock.graphics"] == 1.3e9


def test_what_a_card_does_not_say_it_does_not_have(tmp_path: Path) -> None:
    write(tmp_path, f"{XE}/uevent", "DRIVER=xe\nPCI_SLOT_NAME=0000:03:00.0")
    write(tmp_path, f"{XE}/tile0/gt0/freq0/act_freq", "unknown")
    assert take(open_source(tmp_path, TurnableClock())) == {"pci-0000:03:00.0": {"gpu.up": 1}}


def test_a_counter_that_began_again_is_no_use(tmp_path: Path) -> None:
    build(tmp_path)
    clock = TurnableClock()
    source = open_source(tmp_path, clock)
    take(source)
    clock.advance(10**9)
    write(tmp_path, f"{I915}/gt/gt0/rc6_residency_ms", 3)
    assert "gpu.utilization" not in take(source)["pci-0000:00:02.0"]


def test_without_a_card_it_is_absent(tmp_path: Path) -> None:
    with pytest.raises(SourceAbsent, match="no Intel GPU"):
        open_source(tmp_path, TurnableClock())
