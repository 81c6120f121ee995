"""New pids, found by the newest pid alone; whatever is unclear asks for a listing."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.collect.nodes import Node

from nodescope.collect.files.roots import NodeRoot
from nodescope.collect.sources.process.new_pids import MOST, NewPids, tells_of_ours

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")


def open_new_pids(node: Node) -> NewPids:
    """A /proc of this machine's pid namespace whose newest pid a test writes."""
    node.write("proc/self/status", f"Name:\tpython3\nNSpid:\t{os.getpid()}\nNSpgid:\t1\n")
    return NewPids(node.root())


def say(node: Node, newest: int) -> None:
    node.write("proc/loadavg", f"0.20 0.18 0.12 1/80 {newest}\n")


@pytest.fixture
def node(tmp_path: Path) -> Node:
    node = Node(tmp_path, is_fixture=False)
    say(node, 1000)
    return node


def test_the_first_look_needs_a_listing_and_an_unchanged_node_none(node: Node) -> None:
    new_pids = open_new_pids(node)
    assert new_pids.read() is None
    assert new_pids.read() == []
    new_pids.close()
    assert new_pids.read() is None


def test_a_process_among_the_new_pids_is_told_and_a_thread_is_not(node: Node) -> None:
    """Our own pid is a process; a thread of ours has a pid and is none."""
    new_pids = open_new_pids(node)
    release = threading.Event()
    thread = threading.Thread(target=release.wait)
    thread.start()
    try:
        for pid, expected in ((os.getpid(), [os.getpid()]), (thread.native_id, [])):
            assert pid is not None
            say(node, pid - 1)
            new_pids.read()
            say(node, pid)
            assert new_pids.read() == expected
    finally:
        release.set()
        thread.join()


def test_one_that_could_not_be_seen_yet_is_asked_for_once_more(node: Node) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True
    )
    new_pids = open_new_pids(node)
    say(node, int(ended.stdout) - 1)
    new_pids.read()
    say(node, int(ended.stdout))
    assert new_pids.read() == []
    assert new_pids._unseen == [int(ended.stdout)]
    assert new_pids.read() == []
    assert new_pids._unseen == []


@pytest.mark.parametrize("newest", [1000 + MOST + 1, 999, 300])
def test_too_many_or_pids_that_started_again_need_a_listing(node: Node, newest: int) -> None:
    new_pids = open_new_pids(node)
    new_pids.read()
    say(node, newest)
    assert new_pids.read() is None
    assert new_pids.read() == []


def test_a_file_that_says_nothing_needs_a_listing(node: Node) -> None:
    new_pids = open_new_pids(node)
    new_pids.read()
    node.write("proc/loadavg", "")
    assert new_pids.read() is None
    say(node, 1000)
    assert new_pids.read() is None
    assert new_pids.read() == []


@pytest.mark.parametrize("status", ["NSpid:\t4711\t{}\n", "NSpid:\t1\n", "Name:\tpython3\n", ""])
def test_another_namespace_is_listed(node: Node, status: str) -> None:
    """A host's /proc, seen from a container, gives us two numbers."""
    node.write("proc/self/status", status.format(os.getpid()))
    assert not tells_of_ours(node.root())
    assert NewPids(node.root()).read() is None


def test_a_fixture_and_a_node_without_proc_are_listed(node: Node, tmp_path: Path) -> None:
    assert not tells_of_ours(NodeRoot(tmp_path / "nowhere"))
    open_new_pids(node)
    assert tells_of_ours(node.root())
    (tmp_path / "node.toml").write_text("")
    assert not tells_of_ours(node.root())


def test_this_machine_tells_of_its_own_births() -> None:
    """The kernel's own file: a child is told within a look, by its number."""
    new_pids = NewPids(NodeRoot(Path("/")))
    try:
        new_pids.read()
        with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
            told = new_pids.read()
            child.kill()
        assert told is None or child.pid in told
    finally:
        new_pids.close()
