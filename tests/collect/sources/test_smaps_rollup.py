"""Proportional memory where some processes may not be looked at: real processes, read by a user without rights."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from nodescope.base.entity import Entity
from nodescope.base.errors import SourceFailed
from nodescope.base.settings import Settings
from nodescope.collect.containers.cgroup_path import NOTHING
from nodescope.collect.containers.live_containers import LiveContainer, LiveContainers
from nodescope.collect.containers.names import ContainerNames
from nodescope.collect.files.roots import Descriptors, open_root
from nodescope.collect.run.source import Context
from nodescope.collect.sources.smaps_rollup import SmapsRollupSource

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(
        os.geteuid() != 0 or not Path("/proc/self/smaps_rollup").exists(),
        reason="needs root and smaps_rollup",
    ),
]
NOBODY = 65534


def run_as_nobody(work: Callable[[], object]) -> object:
    """In a child that gave up its rights: this process is another user's to it."""
    receiver, sender = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            os.write(sender, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(sender)
    with os.fdopen(receiver) as answered:
        said = answered.read()
    os.waitpid(child, 0)
    return json.loads(said)


def read_sums(*members: tuple[int, ...]) -> list[bool] | str:
    """Of one container for each set of processes: whether it has a sum; or why there is none at all."""
    root = open_root(Path("/"), None)
    live = LiveContainers(
        tuple(
            LiveContainer(Entity("container", (str(number),)), NOTHING, "", "", pids)
            for number, pids in enumerate(members)
        )
    )
    source = SmapsRollupSource(Context(root, Descriptors(100), Settings(), ContainerNames(root), live))
    try:
        answers = source.read()
    except SourceFailed as error:
        return str(error)
    return [bool(answers[member.entity]) for member in live.members]


def test_a_container_with_a_process_that_may_not_be_read_has_no_sum() -> None:
    """The sum of its other processes would look like all of it; other containers have theirs."""
    other = os.getpid()
    found = run_as_nobody(lambda: read_sums((os.getpid(),), (os.getpid(), other), (os.getpid(), 2**22)))
    assert found == [True, False, True], "its own; with one denied; with one that is gone"


def test_where_all_is_denied_the_capability_is_named() -> None:
    other = os.getpid()
    found = run_as_nobody(lambda: read_sums((other,)))
    assert found == "smaps_rollup of 1 processes denied: it needs CAP_SYS_PTRACE"
