"""Other PCMs in the process table."""

import os
from pathlib import Path

import pytest
from tests.collect.hardware import write_files

from nodescope.collect.files.roots import NodeRoot
from nodescope.collect.sources.pcm.conflict import describe_others, find_others


def write_process(folder: Path, pid: int, comm: str, command: str, state: str = "S", parent: int = 1) -> None:
    fields = " ".join([str(parent), *["1"] * 17])
    write_files(
        folder,
        {
            f"proc/{pid}/comm": comm,
            f"proc/{pid}/stat": f"{pid} ({comm}) {state} {fields} 8931 0 0",
            f"proc/{pid}/status": f"Name:\t{comm}\nNSpid:\t{pid}",
            f"proc/{pid}/cmdline": command.replace(" ", "\0"),
        },
    )


@pytest.mark.parametrize(
    ("comm", "command"),
    [
        ("pcm", "/usr/sbin/pcm 1 -csv"),
        ("pcm.x", "./pcm.x 1"),
        ("pcm-memory", "pcm-memory 1"),
        ("pcm-sensor-serv", "pcm-sensor-server -p 9738"),
        ("python3", "python3 /usr/local/bin/pcm 1 -csv"),
        ("sudo", "sudo pcm 1 -csv"),
    ],
)
def test_a_pcm_is_found_by_name_or_command(tmp_path: Path, comm: str, command: str) -> None:
    """The kernel cuts names at 15 characters; scripts and sudo hide them."""
    write_process(tmp_path, 42, comm, command)
    assert [pid for pid, _ in find_others(NodeRoot(tmp_path), None)] == [42]


@pytest.mark.parametrize(
    ("comm", "command"),
    [
        ("vim", "vim pcm"),
        ("pcmanfm", "pcmanfm"),
        ("pcm-msr", "pcm-msr 0x10"),
        ("python3", "python3 -m http.server"),
    ],
)
def test_others_are_not(tmp_path: Path, comm: str, command: str) -> None:
    """Tools that only read a register disturb nobody."""
    write_process(tmp_path, 42, comm, command)
    assert find_others(NodeRoot(tmp_path), None) == []


def test_a_dead_pcm_that_nobody_fetched_is_no_rival(tmp_path: Path) -> None:
    write_process(tmp_path, 42, "pcm", "", state="Z")
    assert find_others(NodeRoot(tmp_path), None) == []


def test_what_our_own_child_started_is_ours(tmp_path: Path) -> None:
    """`sudo pcm`: the pcm that counts is the child of our child."""
    start = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    own = os.getpid()
    write_process(tmp_path, own, "sudo", "sudo pcm 1 -csv")
    stat = tmp_path / f"proc/{own}/stat"
    stat.write_text(stat.read_text().replace("8931", start))
    write_process(tmp_path, 43, "pcm", "pcm 1 -csv", parent=own)
    write_process(tmp_path, 44, "pcm", "pcm 1 -csv")
    assert find_others(NodeRoot(tmp_path), own) == [(44, "pcm")]


def test_the_sentence_names_it_and_the_remedy() -> None:
    sentence = describe_others([(42, "pcm-memory")])
    assert "pcm-memory (pid 42)" in sentence
    assert "--pcm-url" in sentence
