"""Processes on GPUs, from synthetic /proc trees."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support import TurnableClock

from nodescope.base.block import Block
from nodescope.base.errors import SourceAbsent
from nodescope.base.settings import Settings
from nodescope.collect.containers.live_containers import LiveContainers
from nodescope.collect.containers.names import ContainerNames
from nodescope.collect.files.roots import Descriptors, NodeRoot
from nodescope.collect.run.source import Context
from nodescope.collect.sources.drm.fdinfo import parse_fdinfo
from nodescope.collect.sources.drm.source import LOOK_SECONDS, DrmSource

SECOND_NS = 10**9


class Tree:
    """A /proc and a /sys with one card."""

    def __init__(self, root: Path, driver: str = "xe") -> None:
        self.root = root
        self.clock = TurnableClock()
        self.write("sys/class/drm/card0/device/uevent", f"DRIVER={driver}\nPCI_SLOT_NAME=0000:03:00.0\n")

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def open_device(self, pid: int, descriptor: int, text: str, device: str = "/dev/dri/renderD128") -> None:
        link = self.root / f"proc/{pid}/fd/{descriptor}"
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(device)
        self.write(f"proc/{pid}/fdinfo/{descriptor}", text)

    def source(self, **settings: Any) -> DrmSource:
        root = NodeRoot(self.root)
        context = Context(
            root,
            Descriptors(100),
            Settings(**settings),
            ContainerNames(root),
            LiveContainers(),
            clock=self.clock,
        )
        return DrmSource(context)


def take(source: DrmSource) -> dict[str, Block]:
    answer = json.loads(json.dumps(source.read()))
    return {block.table.name: block for block in source.parse(answer, 1)}


def rows(block: Block) -> dict[tuple[str, ...], list[float]]:
    return {
        tuple(value for _, value in entity.labels): row.tolist()
        for entity, row in zip(block.entities, block.values)
    }


def xe(client: int, busy: int, passed: int, memory: str = "2 MiB") -> str:
    return (
        f"drm-driver: xe\ndrm-client-id: {client}\ndrm-pdev: 0000:03:00.0\ndrm-resident-vram0: {memory}\n"
        f"drm-cycles-rcs: {busy}\ndrm-total-cycles-rcs: {passed}\n"
    )


def timed(driver: str, client: int, busy_ns: int, capacity: int = 1) -> str:
    return (
        f"drm-driver: {driver}\ndrm-client-id: {client}\ndrm-pdev: 0000:03:00.0\n"
        f"drm-engine-render: {busy_ns} ns\ndrm-engine-capacity-render: {capacity}\ndrm-memory-gtt: 8 KiB\n"
    )


def test_cycles_and_time_both_give_a_share(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.open_device(7, 3, xe(1, 100, 1000))
    tree.open_device(8, 3, timed("i915", 2, 5 * SECOND_NS, capacity=2))
    source = tree.source()
    first = rows(take(source)["drm.engine"])
    assert math.isnan(first["0000:03:00.0", "xe", "7", "rcs"][1]), "one reading is no share"
    tree.clock.advance(5 * SECOND_NS)
    tree.open_device(7, 3, xe(1, 350, 2000))
    tree.open_device(8, 3, timed("i915", 2, 7 * SECOND_NS, capacity=2))
    blocks = take(source)
    second = rows(blocks["drm.engine"])
    assert second["0000:03:00.0", "xe", "7", "rcs"][1] == 25
    assert second["0000:03:00.0", "i915", "8", "render"] == [7 * SECOND_NS, 20]
    assert math.isnan(second["0000:03:00.0", "xe", "7", "rcs"][0]), "cycles are no seconds"
    assert rows(blocks["drm.memory"]) == {
        ("0000:03:00.0", "xe", "7", "vram0"): [2 * 2**20],
        ("0000:03:00.0", "i915", "8", "gtt"): [8192],
    }


def test_a_client_counts_once_however_often_it_is_open(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    for pid, descriptor in ((7, 3), (7, 4), (9, 3)):
        tree.open_device(pid, descriptor, xe(1, 100, 1000))
    tree.open_device(7, 5, xe(2, 50, 1000, "1024 KiB"))
    blocks = take(tree.source())
    assert rows(blocks["drm"]) == {("0000:03:00.0", "xe", "7"): [2]}
    assert rows(blocks["drm.memory"]) == {("0000:03:00.0", "xe", "7", "vram0"): [3 * 2**20]}


def test_a_client_that_closed_makes_no_negative_share(tmp_path: Path) -> None:
    tree = Tree(tmp_path, "amdgpu")
    tree.open_device(7, 3, timed("amdgpu", 1, 9 * SECOND_NS))
    source = tree.source()
    take(source)
    tree.clock.advance(SECOND_NS)
    tree.open_device(7, 3, timed("amdgpu", 2, SECOND_NS))
    ((busy, share),) = rows(take(source)["drm.engine"]).values()
    assert busy == SECOND_NS
    assert math.isnan(share)


def test_other_processes_are_looked_for_now_and_then_only(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.open_device(7, 3, xe(1, 1, 10))
    source = tree.source()
    take(source)
    tree.open_device(8, 3, xe(2, 1, 10))
    tree.clock.advance(5 * SECOND_NS)
    assert len(rows(take(source)["drm"])) == 1
    tree.clock.advance(round(LOOK_SECONDS * SECOND_NS))
    assert len(rows(take(source)["drm"])) == 2


def test_files_of_other_kinds_are_not_read(tmp_path: Path) -> None:
    """fdinfo of a socket may be as long as it likes; a link elsewhere that holds the words is no device."""
    tree = Tree(tmp_path)
    tree.open_device(7, 3, xe(1, 1, 10), device="/home/me/dev/dri/renderD128")
    tree.open_device(7, 4, "drm-driver: nouveau\ndrm-client-id: 1\n")
    tree.open_device(7, 5, "drm-driver: xe\n")
    assert rows(take(tree.source())["drm"]) == {}


def test_an_npu_is_a_device_too(tmp_path: Path) -> None:
    (tmp_path / "sys").mkdir()
    tree = Tree(tmp_path, "snd_hda_intel")
    with pytest.raises(SourceAbsent):
        tree.source()
    tree.write("sys/class/accel/accel0/device/uevent", "DRIVER=amdxdna\nPCI_SLOT_NAME=0000:c5:00.1\n")
    tree.open_device(
        7,
        3,
        "drm-driver: amdxdna\ndrm-client-id: 3\ndrm-pdev: 0000:c5:00.1\ndrm-engine-npu-amdxdna: 12 ns\n",
        "/dev/accel/accel0",
    )
    assert rows(take(tree.source())["drm.engine"])["0000:c5:00.1", "amdxdna", "7", "npu-amdxdna"][0] == 12


def test_a_process_is_its_pod_s(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.open_device(7, 3, xe(1, 1, 10))
    tree.write("proc/7/stat", "7 (train er) S 1 1 1 0 -1 4194304 1 0 0 0 1 1 0 0 20 0 1 0 1234 1 1 1")
    uid = "0123abcd-1111-2222-3333-444455556666"
    group = f"kubepods-burstable-pod{uid.replace('-', '_')}.slice/cri-containerd-{'ab' * 32}.scope"
    tree.write("proc/7/cgroup", f"0::/kubepods.slice/kubepods-burstable.slice/{group}\n")
    (entity,) = take(tree.source())["drm"].entities
    assert entity.attribute("name") == "train er"
    assert entity.attribute("pod_uid") == uid
    assert "1234" in entity.ids


@given(st.text())
def test_any_text_is_a_client_or_none(text: str) -> None:
    client = parse_fdinfo(f"drm-driver: xe\ndrm-client-id: 1\n{text}")
    assert client is None or all(value >= 0 for value in client.memory.values())


def test_a_flood_of_names_is_bounded() -> None:
    text = "drm-driver: xe\ndrm-client-id: 1\n" + "".join(
        f"drm-engine-{'e' * 50}{n}: 1 ns\n" for n in range(9999)
    )
    client = parse_fdinfo(text)
    assert client is not None
    assert len(client.busy_ns) <= 64
    assert max(map(len, client.busy_ns)) <= 32
