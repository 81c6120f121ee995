"""Containers: seen at their first tick, kept while they live, remembered when they go."""

from pathlib import Path

import pytest
from tests.collect.nodes import Node, at

from nodescope.base.block import Block
from nodescope.base.clock import SystemClock
from nodescope.base.errors import SourceAbsent
from nodescope.base.frame import Event
from nodescope.base.self_counters import ContainerCounters
from nodescope.base.settings import Settings
from nodescope.collect.run.source import Context
from nodescope.collect.sources.container.cgroup_tree import Hierarchy, find_hierarchies, walk_tree
from nodescope.collect.sources.container.discovery import Discovery
from nodescope.collect.sources.container.source import ContainerSource

BASE = "sys/fs/cgroup"
UID = "f3d2c1b0-1234-5678-9abc-def012345678"


def container_id(number: int) -> str:
    return f"{number:064x}"


def path_of(number: int) -> str:
    return f"kubepods/burstable/pod{UID}/{container_id(number)}"


def write_container(
    node: Node, number: int, *, usage: int = 1000, current: int = 4096, pids: str = ""
) -> None:
    folder = f"{BASE}/{path_of(number)}"
    node.write(f"{folder}/cgroup.procs", pids)
    node.write(f"{folder}/cpu.stat", f"usage_usec {usage}\nuser_usec 1\nsystem_usec 2\n")
    node.write(f"{folder}/memory.current", f"{current}\n")
    node.write(f"{folder}/memory.max", "max\n")
    node.write(f"{folder}/memory.peak", f"{current * 2}\n")
    node.write(f"{folder}/memory.events", "max 0\noom 0\noom_kill 0\n")


@pytest.fixture
def node(tmp_path: Path) -> Node:
    made = Node(tmp_path)
    made.write(f"{BASE}/cgroup.controllers", "cpu memory\n")
    return made


def open_source(node: Node, settings: Settings | None = None) -> tuple[ContainerSource, Context]:
    context = node.context(settings)
    source = ContainerSource(context)
    return source, context


def look(source: ContainerSource, number: int) -> tuple[list[Event], dict[str, Block]]:
    events = list(source.refresh(at(number)))
    blocks = {}
    for segment, tier in source.segments():
        if number % tier == 0:
            segment.read()
            block = segment.block(number)
            if block is not None:
                blocks[block.table.name] = block
    return events, blocks


def test_a_container_is_seen_at_the_tick_after_its_birth_without_inotify(node: Node) -> None:
    source, _ = open_source(node)
    look(source, 0)
    write_container(node, 1)
    events, blocks = look(source, 1)
    assert [event.kind for event in events] == ["start"]
    block = blocks["container"]
    assert block.entities[0].ids[0] == container_id(1)
    assert block.values[0, block.table.columns["cgroup.v2.cpu.stat.usage_usec"]] == 1000
    source.close()


def test_the_set_stays_the_same_object_while_it_is_unchanged(node: Node) -> None:
    """What is made from labels is made once, although every tick walks the tree."""
    write_container(node, 1)
    source, _ = open_source(node)
    sets = [look(source, number)[1]["container"].entities for number in range(3)]
    assert sets[0] is sets[1] is sets[2]
    source.close()


def test_an_obituary_tells_the_last_reading_peak_and_lifetime(node: Node) -> None:
    write_container(node, 1, usage=1000)
    source, context = open_source(node)
    look(source, 0)
    write_container(node, 1, usage=5_000_000, current=8192)
    look(source, 5)
    node.remove(f"{BASE}/{path_of(1)}")
    events, blocks = look(source, 7)
    (death,) = events
    assert death.kind == "exit"
    assert death.facts["cpu_seconds"] == pytest.approx(5.0)
    assert death.facts["memory_peak_bytes"] == 16384
    assert death.facts["lifetime_seconds"] == 7.0
    assert dict(death.labels)["container_id"] == container_id(1)
    assert blocks["container"].entities == ()
    assert context.descriptors.pinned == 0
    source.close()


def test_an_obituary_survives_the_birth_of_a_neighbour(node: Node) -> None:
    """The slow table is not read again before the end: its last reading must not be lost."""
    write_container(node, 1, current=1000)
    source, _ = open_source(node)
    look(source, 0)
    write_container(node, 1, current=9000)
    look(source, 5)
    write_container(node, 2)
    look(source, 6)
    node.remove(f"{BASE}/{path_of(1)}")
    events, _ = look(source, 7)
    assert [event.facts["memory_peak_bytes"] for event in events] == [18000]
    source.close()


def test_an_oom_kill_is_said_in_the_kind_of_the_end(node: Node) -> None:
    write_container(node, 1)
    source, _ = open_source(node)
    look(source, 0)
    node.write(f"{BASE}/{path_of(1)}/memory.events", "max 3\noom 1\noom_kill 1\n")
    look(source, 1)
    node.remove(f"{BASE}/{path_of(1)}")
    (death,), _ = look(source, 2)
    assert (death.kind, death.facts["oom_kills"]) == ("oom_exit", 1.0)
    source.close()


def test_a_folder_made_again_under_the_same_name_is_another_container(node: Node) -> None:
    write_container(node, 1)
    source, _ = open_source(node)
    look(source, 0)
    folder = node.path / BASE / path_of(1)
    folder.rename(folder.parent / "elsewhere")
    write_container(node, 1, usage=5)
    node.remove(f"{BASE}/{path_of(1).rpartition('/')[0]}/elsewhere")
    events, blocks = look(source, 1)
    assert sorted(event.kind for event in events) == ["exit", "start"]
    assert len(blocks["container"].entities) == 1
    source.close()


def test_the_live_containers_follow_processes_that_come_and_go(node: Node) -> None:
    """Sources that ask by pid must not ask those of an hour ago."""
    (node.path.parent / "node.toml").unlink()
    write_container(node, 1, pids="10\n11\n")
    context = node.context()
    source = ContainerSource(context)
    # As where inotify stands: only what changed is walked.
    look(source, 0)
    assert context.live_containers.members[0].pids == (10, 11)
    write_container(node, 1, pids="11\n12\n")
    for number in range(1, 7):
        look(source, number)
    assert context.live_containers.members[0].pids == (11, 12)
    source.close()


def test_over_the_limit_the_longest_known_stay(node: Node) -> None:
    for number in (5, 6):
        write_container(node, number)
    source, _ = open_source(node, Settings(series_limit=2))
    look(source, 0)
    write_container(node, 1)
    _, blocks = look(source, 1)
    assert {entity.ids[0] for entity in blocks["container"].entities} == {container_id(5), container_id(6)}
    assert source.dropped()["container"] == 1
    source.close()


def test_services_are_shown_while_there_is_no_container(node: Node) -> None:
    node.write(f"{BASE}/system.slice/sshd.service/cpu.stat", "usage_usec 7\n")
    source, _ = open_source(node)
    _, blocks = look(source, 0)
    assert [entity.scope for entity in blocks["container"].entities] == ["service"]
    write_container(node, 1)
    _, blocks = look(source, 1)
    assert [entity.scope for entity in blocks["container"].entities] == ["container"]
    source.close()


def test_without_cgroups_the_source_is_absent(tmp_path: Path) -> None:
    with pytest.raises(SourceAbsent):
        ContainerSource(Node(tmp_path).context())


# -- the trees --------------------------------------------------------------------


def test_hierarchies_are_told_by_what_is_there(tmp_path: Path) -> None:
    node = Node(tmp_path)
    assert find_hierarchies(node.root()) == ()
    node.write(f"{BASE}/memory/cgroup.procs", "")
    node.write(f"{BASE}/cpu,cpuacct/cgroup.procs", "")
    assert [one.name for one in find_hierarchies(node.root())] == ["memory", "cpu,cpuacct"]
    node.write(f"{BASE}/unified/cgroup.controllers", "")
    assert find_hierarchies(node.root())[-1] == Hierarchy("v2", f"{BASE}/unified")
    node.write(f"{BASE}/cgroup.controllers", "")
    assert find_hierarchies(node.root()) == (Hierarchy("v2", BASE),)


def test_a_node_in_a_container_is_walked_and_other_insides_are_not(node: Node) -> None:
    """kind runs kubelet's tree inside a container; systemd in a container is its own affair."""
    outer = f"docker/{container_id(9)}"
    inner = f"{outer}/kubelet/kubepods/pod{UID}/{container_id(8)}"
    node.write(f"{BASE}/{inner}/cpu.stat", "")
    node.write(f"{BASE}/{outer}/system.slice/cron.service/cpu.stat", "")
    tree = walk_tree(node.root(), Hierarchy("v2", BASE))
    assert tree.containers == {outer, inner}
    assert not any("cron" in path for path in tree.services)


def test_without_inotify_every_refresh_walks(node: Node) -> None:
    found: list[str] = []
    discovery = Discovery(node.root(), found.append, SystemClock(), ContainerCounters())
    assert not discovery.watching
    assert discovery.refresh(1)
    assert discovery.containers() == {}
    write_container(node, 3)
    assert discovery.refresh(2)
    assert set(discovery.containers()) == {path_of(3)}
    node.remove(f"{BASE}/{path_of(3)}")
    discovery.refresh(3)
    assert discovery.containers() == {}
    assert not any(discovery._folder_watches.values())
    discovery.close()


def list_named(blocks: dict[str, Block]) -> dict[str, tuple[str, str]]:
    """Container id -> (its name, whether it is the sandbox)."""
    entities = blocks["container"].entities
    return {
        entity.ids[0]: (entity.attribute("container") or "", entity.attribute("sandbox") or "")
        for entity in entities
    }


def test_a_sandbox_that_is_not_called_pause_at_its_birth_gives_the_name_back(node: Node) -> None:
    """The runtime sets up the sandbox as runc:[2:INIT]; the pod's only name belongs to the container after it."""
    node.write(f"var/log/pods/shop_web-0_{UID}/nginx/0.log", "")
    node.write("proc/70/comm", "runc:[2:INIT]\n")
    write_container(node, 1, pids="70\n")
    source, _ = open_source(node)
    _, blocks = look(source, 0)
    assert list_named(blocks) == {container_id(1): ("nginx", "")}
    node.write("proc/70/comm", "pause\n")
    node.write("proc/71/comm", "nginx\n")
    write_container(node, 2, pids="71\n")
    _, blocks = look(source, 1)
    assert list_named(blocks) == {container_id(1): ("", "true"), container_id(2): ("nginx", "")}


def test_a_container_knows_when_its_cgroup_was_made(node: Node) -> None:
    """A fixture does not tell: then it is when it was first seen."""
    write_container(node, 1)
    source, _ = open_source(node)
    _, blocks = look(source, 5)
    assert blocks["container"].entities[0].attribute("started") == "5"
