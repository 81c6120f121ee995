"""Processes: a stable choice, pids that are used again, names that lie."""

from pathlib import Path
from unittest import mock

import pytest
from tests.collect.nodes import SECOND, Node, at

from nodescope.base.block import Block
from nodescope.base.entity import Entity
from nodescope.base.errors import SourceAbsent
from nodescope.base.settings import Settings
from nodescope.collect.containers.cgroup_path import CgroupName
from nodescope.collect.containers.live_containers import LiveContainer
from nodescope.collect.run.source import Context
from nodescope.collect.sources.process.source import (
    RENAME_TICKS,
    TURN_READINGS,
    YOUNG_TICKS,
    Everyone,
    ProcessSource,
)

ID = "ab" * 32
UID = "f3d2c1b0-1234-5678-9abc-def012345678"


def write_process(
    node: Node, pid: int, name: str | bytes = "app", *, cpu: int = 0, rss: int = 10, start: int = 100
) -> None:
    """A line of proc(5): 52 fields, of which five matter here."""
    fields = ["0"] * 50
    fields[0] = "S"
    for number, value in ((14, cpu), (15, 0), (20, 1), (22, start), (24, rss)):
        fields[number - 3] = str(value)
    comm = name if isinstance(name, bytes) else name.encode()
    node.write(f"proc/{pid}/stat", b"%d (%s) %s\n" % (pid, comm, " ".join(fields).encode()))


def open_source(node: Node, top: int = 2, descriptors: int = 1000) -> tuple[ProcessSource, Context]:
    node.write("proc/stat", "")
    context = node.context(Settings(process_top=top), descriptors=descriptors)
    source = ProcessSource(context)
    return source, context


def look(source: ProcessSource, tick: int) -> Block:
    list(source.refresh(at(tick)))
    ((segment, _),) = source.segments()
    segment.read()
    block = segment.block(tick * SECOND)
    assert block is not None
    return block


def names(block: Block) -> list[str]:
    return [entity.attribute("name") or "" for entity in block.entities]


def pids(block: Block) -> set[str]:
    return {entity.ids[0] for entity in block.entities}


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_the_top_by_cpu_and_the_top_by_memory_are_shown(node: Node) -> None:
    for pid, (cpu, rss) in {1: (900, 1), 2: (800, 1), 3: (1, 900), 4: (1, 800), 5: (1, 1)}.items():
        write_process(node, pid, cpu=cpu, rss=rss)
    source, _ = open_source(node)
    block = look(source, 0)
    assert pids(block) == {"1", "2", "3", "4"}
    assert source.dropped() == {"process": 1}
    source.close()


def test_who_is_in_leaves_only_when_somebody_is_clearly_ahead(node: Node) -> None:
    """Equal neighbours do not take turns: a series that comes and goes is no use."""
    for pid in (1, 2, 3):
        write_process(node, pid, rss=100)
    write_process(node, 2, rss=101)
    source, _ = open_source(node, top=1)
    assert pids(look(source, 0)) == {"2"}
    write_process(node, 3, rss=120)
    assert pids(look(source, 1)) == {"2"}
    write_process(node, 3, rss=130)
    assert pids(look(source, 2)) == {"3"}
    source.close()


def test_the_set_is_the_same_object_while_nothing_changes(node: Node) -> None:
    for pid in (1, 2, 3):
        write_process(node, pid, cpu=pid * 10)
    source, _ = open_source(node)
    first, second = look(source, 0), look(source, 1)
    assert first.entities is second.entities
    source.close()


def test_cpu_time_is_the_sum_of_both_modes_and_never_of_two_processes(node: Node) -> None:
    write_process(node, 7, cpu=42)
    source, _ = open_source(node)
    block = look(source, 0)
    assert block.values[0, block.table.columns["process.cpu"]] == 42.0
    source.close()


@pytest.mark.parametrize("descriptors", [1000, 0])
def test_a_pid_that_is_used_again_is_another_process(node: Node, descriptors: int) -> None:
    """The start time is part of the id; found also where no descriptor stays open to tell."""
    write_process(node, 7, "old", start=100, cpu=1000)
    source, _ = open_source(node, descriptors=descriptors)
    assert look(source, 0).entities[0].ids == ("7", "100")
    write_process(node, 7, "new", start=200, cpu=1)
    look(source, 1)
    block = look(source, 2)
    assert [entity.ids for entity in block.entities] == [("7", "200")]
    assert names(block) == ["new"]
    source.close()


def test_a_reading_of_the_next_owner_is_never_shown_under_the_old_name(node: Node) -> None:
    write_process(node, 7, "old", start=100, cpu=1000)
    source, _ = open_source(node, descriptors=0)
    look(source, 0)
    write_process(node, 7, "new", start=200, cpu=1)
    for entity in look(source, 1).entities:
        assert entity.ids == ("7", "200")
    source.close()


def test_exec_changes_the_name_and_the_series_goes_on(node: Node) -> None:
    write_process(node, 7, "sh", cpu=5)
    source, _ = open_source(node)
    before = look(source, 0)
    write_process(node, 7, "server", cpu=6)
    after = [look(source, tick) for tick in range(1, 6)][-1]
    assert names(after) == ["server"]
    assert after.entities[0].key == before.entities[0].key
    source.close()


def test_a_process_that_vanished_leaves_no_row_and_no_descriptor(node: Node) -> None:
    write_process(node, 7, cpu=5)
    write_process(node, 8, cpu=5)
    source, context = open_source(node)
    look(source, 0)
    assert context.descriptors.pinned == 2
    node.remove("proc/7")
    assert pids(look(source, 1)) == {"8"}
    assert context.descriptors.pinned == 1
    source.close()
    assert context.descriptors.pinned == 0


def test_a_process_that_vanishes_between_listing_and_opening_is_no_fault(node: Node) -> None:
    node.write("proc/9/comm", "gone")
    write_process(node, 7)
    source, _ = open_source(node)
    assert pids(look(source, 0)) == {"7"}
    ((segment, _),) = source.segments()
    assert segment.faults == []
    source.close()


@pytest.mark.parametrize(
    ("comm", "shown"),
    [
        (b"a) S 1 2 3", "a) S 1 2 3"),
        (b"((sd-pam))", "((sd-pam))"),
        (b"two\nlines", "two lines"),
        (b"kworker/0:1-ev", "kworker/0:1-ev"),
        (b"\x1b[31mred", " [31mred"),
        (b"", ""),
    ],
)
def test_a_name_may_hold_parentheses_and_line_breaks(node: Node, comm: bytes, shown: str) -> None:
    write_process(node, 7, comm, cpu=3, rss=4)
    source, _ = open_source(node)
    block = look(source, 0)
    assert names(block) == [shown]
    assert block.values[0, block.table.columns["process.rss"]] == 4.0
    source.close()


def test_a_process_of_a_container_knows_its_owner(node: Node) -> None:
    write_process(node, 7)
    node.write("proc/7/cgroup", f"0::/kubepods/burstable/pod{UID}/{ID}\n")
    node.write(f"var/log/containers/web-0_shop_nginx-{ID}.log", "")
    source, context = open_source(node)
    context.names.refresh()
    entity = look(source, 0).entities[0]
    owner = {
        key: entity.attribute(key) for key in ("namespace", "pod", "container", "container_id", "pod_uid")
    }
    assert owner == {
        "namespace": "shop",
        "pod": "web-0",
        "container": "nginx",
        "container_id": ID,
        "pod_uid": UID,
    }
    source.close()


def test_an_owner_that_is_named_later_is_known_at_the_next_look(node: Node) -> None:
    """The text of its cgroup is the same; what it means has changed."""
    write_process(node, 7)
    write_process(node, 8)
    for pid in (7, 8):
        node.write(f"proc/{pid}/cgroup", f"0::/kubepods/burstable/pod{UID}/{ID}\n")
    source, context = open_source(node)
    assert [entity.attribute("pod") for entity in look(source, 0).entities] == ["", ""]
    labels = (("namespace", "shop"), ("pod", "web-0"), ("container", "nginx"))
    path = f"kubepods/burstable/pod{UID}/{ID}"
    cgroup = CgroupName(ID, "", UID)
    context.live_containers.replace((LiveContainer(Entity("container", (ID,), labels), cgroup, path, ""),))
    shown = [look(source, tick) for tick in range(1, 6)][-1]
    assert [entity.attribute("pod") for entity in shown.entities] == ["web-0", "web-0"]
    source.close()


def test_processes_that_have_settled_are_looked_at_again_together(node: Node) -> None:
    """Those who came at different ticks are due at the same ones: most ticks look at nobody."""
    source, _ = open_source(node, top=40)
    for tick in range(20):
        write_process(node, 100 + tick, "sh")
        look(source, tick)
    for tick in range(20, 400):
        look(source, tick)
    for tick in range(20):
        write_process(node, 100 + tick, "server")
    changed = [tick for tick in range(400, 480) if "server" in names(look(source, tick))]
    renamed = {tick: names(look(source, tick)).count("server") for tick in range(480, 490)}
    assert changed[0] % RENAME_TICKS == 0
    assert set(renamed.values()) == {20}
    source.close()


def test_a_line_separator_in_a_cgroup_name_forges_no_owner(node: Node) -> None:
    """The kernel forbids a line feed in a cgroup's name, but no other line break of Unicode."""
    write_process(node, 7)
    node.write("proc/7/cgroup", f"0::/mine\u20281:x:{ID}\n")
    source, _ = open_source(node)
    assert look(source, 0).entities[0].attribute("container_id") is None
    source.close()


def test_without_proc_the_source_is_absent(node: Node) -> None:
    with pytest.raises(SourceAbsent, match="not Linux"):
        ProcessSource(node.context())


@pytest.mark.parametrize("pace", [1, 5])
def test_who_is_not_shown_is_read_in_turns_and_loses_nothing(node: Node, pace: int) -> None:
    """
    An idle old process that wakes up is shown within five readings, with all its time since its start.

    Also where the budget lets only every fifth tick read.
    """
    for pid in range(1, 41):
        write_process(node, pid, cpu=1000 if pid <= 2 else 1, rss=900 if pid <= 2 else 1)
    source, _ = open_source(node)
    for tick in range(YOUNG_TICKS + 1):
        assert pids(look(source, tick)) == {"1", "2"}
    ((segment, _),) = source.segments()
    assert isinstance(segment, Everyone)
    list(source.refresh(at(YOUNG_TICKS + 1)))
    assert len(segment.due()) < 15
    write_process(node, 33, cpu=500, rss=1)
    shown = [look(source, YOUNG_TICKS + 5 + pace * number) for number in range(TURN_READINGS)]
    assert "33" in pids(shown[-1])
    row = [entity.ids[0] for entity in shown[-1].entities].index("33")
    assert shown[-1].values[row, 5] == 500


def test_the_shown_and_the_young_are_read_every_tick(node: Node) -> None:
    for pid in range(1, 41):
        write_process(node, pid, cpu=1000 if pid <= 2 else 1, rss=900 if pid <= 2 else 1)
    source, _ = open_source(node)
    for tick in range(YOUNG_TICKS + 1):
        look(source, tick)
    write_process(node, 99)
    for tick in range(YOUNG_TICKS + 1, YOUNG_TICKS + 5):
        write_process(node, 1, cpu=1000 + tick, rss=900)
        write_process(node, 99, cpu=300 * tick)
        block = look(source, tick)
        by_pid = {entity.ids[0]: values for entity, values in zip(block.entities, block.values)}
        assert by_pid["1"][5] == 1000 + tick
        assert by_pid["99"][5] == 300 * tick


def test_the_shown_keep_their_files_open_where_descriptors_are_short(node: Node) -> None:
    """Those that are read every fifth tick are opened for it; no file is opened tick after tick."""
    for pid in range(1, 11):
        write_process(node, pid, rss=pid)
    source, context = open_source(node, top=2, descriptors=3)
    ticks = range(YOUNG_TICKS + 2)
    assert [pids(look(source, tick)) for tick in ticks][-1] == {"9", "10"}
    opened: list[str] = []
    with mock.patch.object(context.root, "open", side_effect=context.root.open) as opening:
        for tick in range(len(ticks), len(ticks) + TURN_READINGS):
            look(source, tick)
        opened = [call.args[0] for call in opening.call_args_list]
    assert "proc/10/stat" not in opened
    assert "proc/9/stat" not in opened
    assert max(opened.count(path) for path in opened) == 1
    assert context.descriptors.pinned == 3
    source.close()
    assert context.descriptors.pinned == 0


def test_nobody_enters_with_an_old_reading(node: Node) -> None:
    """
    Who takes the place of one that ended shows what its file says now.

    An old value with this tick's time would be a pause, and a burst after it.
    """
    write_process(node, 1, cpu=1000, rss=90_000)
    for pid in range(2, 12):
        write_process(node, pid, cpu=10, rss=50_000)
    source, _ = open_source(node, top=1)
    look(source, 0)
    node.remove("proc/1")
    for tick in range(YOUNG_TICKS + 1, YOUNG_TICKS + 1 + 2 * TURN_READINGS):
        for pid in range(2, 12):
            write_process(node, pid, cpu=10, rss=50_000 - 1000 * tick + pid)
        block = look(source, tick)
        sizes = {int(entity.ids[0]): row[4] for entity, row in zip(block.entities, block.values)}
        assert sizes == {pid: 50_000 - 1000 * tick + pid for pid in sizes}
    assert sizes
    source.close()
