"""Other PCMs in the process table."""

from pathlib import Path

import pytest
from tests.collect.hardware import write_files

from nodescope.collect.pcm_rival import describe_rivals, find_rivals
from nodescope.collect.roots import NodeRoot


def write_process(folder: Path, pid: int, comm: str, command: str, state: str = "S") -> None:
    fields = " ".join(["1"] * 18)
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
    assert [pid for pid, _ in find_rivals(NodeRoot(tmp_path), None)] == [42]


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
    assert find_rivals(NodeRoot(tmp_path), None) == []


def test_a_dead_pcm_that_nobody_fetched_is_no_rival(tmp_path: Path) -> None:
    write_process(tmp_path, 42, "pcm", "", state="Z")
    assert find_rivals(NodeRoot(tmp_path), None) == []


def test_the_sentence_names_it_and_the_remedy() -> None:
    sentence = describe_rivals([(42, "pcm-memory")])
    assert "pcm-memory (pid 42)" in sentence
    assert "--pcm-url" in sentence
