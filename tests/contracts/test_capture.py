"""The capture tool: a machine becomes a fixture node, and nobody's names come along."""

from pathlib import Path

import pytest
from tests.nodes.bundles import CONTAINERD, SECRET
from tests.nodes.pods import DATABASE, WEB
from tests.support import NODES, TurnableClock, build_parts_at
from tools.capture import Scrub, capture

from nodescope.base.frame import Frame

SECRETS = (WEB.name, WEB.uid, WEB.container("app"), DATABASE.name, "worker-1", "shop", "nginx", "sshd")


@pytest.fixture
def captured(tmp_path: Path) -> Path:
    """A described node, captured as if it were a machine."""
    root = NODES / "cgroup2-systemd" / "t0"
    assert capture("again", root, tmp_path, 25, 0, TurnableClock()) == 0
    return tmp_path / "again"


def read_all(folder: Path) -> bytes:
    return b"\n".join(path.read_bytes() + bytes(path) for path in folder.rglob("*") if path.is_file())


def look(root: Path) -> Frame:
    parts = build_parts_at(root, TurnableClock())
    frame = parts.sampler.tick()
    parts.sampler.stop()
    return frame


def test_no_name_of_anybody_is_saved(captured: Path) -> None:
    """Neither in a file nor in a path: host, pods, namespaces, containers, processes, services."""
    saved = read_all(captured / "t0") + read_all(captured / "t1")
    assert [name for name in SECRETS if name.encode() in saved] == []


def test_what_a_runtime_wrote_is_not_even_read(captured: Path) -> None:
    """Such files hold environment variables."""
    assert (NODES / "cgroup2-systemd" / "t0" / CONTAINERD).exists()
    assert not (captured / "t0" / "run").exists()
    assert SECRET.encode() not in read_all(captured)


def test_the_agent_sees_the_same_node_again(captured: Path) -> None:
    """Every file that was read is there: equal numbers, table by table."""
    before = look(NODES / "cgroup2-systemd" / "t0")
    after = look(captured / "t0")
    totals = [
        {block.table.name: sorted(block.values[:, 0].tolist()) for block in frame.blocks}
        for frame in (before, after)
    ]
    assert totals[0] == totals[1]
    assert {name: one.state for name, one in before.outcomes.items()} == {
        name: one.state for name, one in after.outcomes.items()
    }


def test_one_name_has_one_stand_in_everywhere() -> None:
    """A container's id in a cgroup's path and in a log's name is the same afterwards."""
    scrub = Scrub()
    first = scrub.cgroup_name(f"cri-containerd-{WEB.container('app')}.scope")
    log = scrub.path(f"var/log/containers/{WEB.log_file('app')}")
    assert first.removeprefix("cri-containerd-").removesuffix(".scope") in log
    assert scrub.cgroup_name(f"x-pod{WEB.uid.replace('-', '_')}.slice").count("_") == 4


def test_two_captures_have_different_stand_ins_for_ids() -> None:
    """Nobody can look up an id by hashing guesses."""
    assert Scrub().hex_id("a" * 64) != Scrub().hex_id("a" * 64)
