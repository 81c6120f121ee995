"""File systems: mounts as the kernel writes them, and mounts that hang."""

import errno
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.collect.nodes import Node

from nodescope.base.errors import SourceAbsent
from nodescope.collect.sources.filesystem import FilesystemSource, parse_mounts

SPACE = [100.0, 50.0, 40.0, 10.0, 5.0, 0.0]


def test_blanks_in_paths_are_octal_escapes() -> None:
    mounts = parse_mounts(r"/dev/sd\040a /mnt/my\040disk\011x\134y ext4 rw 0 0")
    assert mounts == [("/dev/sd a", "/mnt/my disk\tx\\y", "ext4")]


def escape(path: str) -> str:
    return "".join(f"\\{ord(letter):03o}" if letter in " \t\n\\#" else letter for letter in path)


@given(
    st.lists(
        st.text(st.characters(exclude_characters="/\x00", codec="utf-8"), min_size=1), max_size=5, unique=True
    )
)
def test_any_mount_point_comes_back_as_it_is(names: list[str]) -> None:
    """forall names that a folder can have: parse(escape(name)) == name"""
    text = "".join(f"/dev/sda {escape(f'/mnt/{name}')} ext4 rw 0 0\n" for name in names)
    assert [point for _, point, _ in parse_mounts(text)] == [f"/mnt/{name}" for name in names]


@pytest.mark.parametrize(
    "line",
    [
        "proc /proc proc rw 0 0",
        "overlay / overlay rw 0 0",
        "tmpfs /dev/shm tmpfs rw 0 0",
        "sysfs /sys sysfs rw 0 0",
        "/dev/sda /var/lib/docker/overlay2/x ext4 rw 0 0",
        "nonsense",
        "",
    ],
)
def test_what_has_no_storage_of_its_own_is_left_out(line: str) -> None:
    assert parse_mounts(line) == []


def test_a_folder_that_merely_starts_like_dev_stays() -> None:
    assert [point for _, point, _ in parse_mounts("/dev/sda /development ext4 rw 0 0")] == ["/development"]


def test_the_last_mount_on_a_point_is_what_one_sees() -> None:
    text = "/dev/sda /mnt ext4 rw 0 0\n/dev/sdb /mnt xfs rw 0 0\n"
    assert parse_mounts(text) == [("/dev/sdb", "/mnt", "xfs")]
    assert parse_mounts(text + "proc /mnt proc rw 0 0\n") == []


def make_node(tmp_path: Path, *points: str) -> Node:
    node = Node(tmp_path, is_fixture=False)
    node.write("proc/mounts", "".join(f"/dev/{p.strip('/')} {p} ext4 rw 0 0\n" for p in points))
    return node


def shown(source: FilesystemSource) -> dict[str, list[float]]:
    (block,) = source.parse(source.read(), 0)
    return {
        entity.attribute("mountpoint") or "": row
        for entity, row in zip(block.entities, block.values.tolist())
    }


def test_a_mount_that_hangs_is_shown_as_an_error_and_holds_up_nobody(tmp_path: Path) -> None:
    """It is asked once, not again while it hangs; when it answers, its numbers come back."""
    answered = threading.Event()
    asked: list[str] = []

    def ask(path: str) -> list[float]:
        asked.append(path)
        if path.endswith("/hung"):
            answered.wait()
        return SPACE

    source = FilesystemSource(make_node(tmp_path, "/good", "/hung").context(), ask, answer_seconds=0.02)
    for _ in range(2):
        rows = shown(source)
        assert rows["/good"] == [*SPACE, 0.0]
        assert np.isnan(rows["/hung"][:6]).all()
        assert rows["/hung"][6] == 1.0
    assert sum(path.endswith("/hung") for path in asked) == 1
    answered.set()
    # The waiting thread hands over what it has; the next question is a new one.
    for thread in [one for one in threading.enumerate() if one.name == "statvfs"]:
        thread.join()
    assert shown(source)["/hung"] == [*SPACE, 0.0]
    assert shown(source)["/hung"] == [*SPACE, 0.0]
    source.close()


@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES, errno.ETIMEDOUT, errno.ESTALE])
def test_a_mount_that_failed_is_asked_again(tmp_path: Path, number: int) -> None:
    """ETIMEDOUT is a soft mount's answer, not a hang."""
    broken = [True]

    def ask(path: str) -> list[float]:
        if broken[0]:
            raise OSError(number, "broken", path)
        return SPACE

    source = FilesystemSource(make_node(tmp_path, "/mnt").context(), ask)
    assert shown(source)["/mnt"][6] == 1.0
    broken[0] = False
    assert shown(source)["/mnt"] == [*SPACE, 0.0]
    source.close()


def test_the_real_question_is_answered_for_a_real_folder(tmp_path: Path) -> None:
    node = make_node(tmp_path, "/mnt")
    (node.path / "mnt").mkdir()
    source = FilesystemSource(node.context())
    size, free, available, *_ = shown(source)["/mnt"]
    assert size >= free >= available >= 0
    assert size > 0
    source.close()


def test_without_mounts_the_source_is_absent(tmp_path: Path) -> None:
    with pytest.raises(SourceAbsent):
        FilesystemSource(Node(tmp_path).context())
