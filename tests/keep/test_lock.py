"""A lock handed on to the next program of a process."""

import fcntl
import os
from pathlib import Path

import pytest

from nodescope.keep.lock import FolderLock, is_free


def open_like_before(path: Path) -> int:
    """As an earlier program of this process left it: locked, and inherited by the next."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CREAT)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    os.set_inheritable(descriptor, True)
    return descriptor


def test_a_lock_that_was_handed_on_is_held(tmp_path: Path) -> None:
    descriptor = open_like_before(tmp_path / "lock")
    with FolderLock(tmp_path / "lock") as lock:
        assert lock.adopt(descriptor)
        assert lock.is_held_here()
        assert lock.descriptor == descriptor
        assert not is_free(tmp_path / "lock")
        # Children of ours are not to hold it.
        assert not os.get_inheritable(descriptor)
    assert is_free(tmp_path / "lock")


def test_the_lock_of_a_folder_that_was_replaced_is_given_up(tmp_path: Path) -> None:
    descriptor = open_like_before(tmp_path / "lock")
    (tmp_path / "lock").rename(tmp_path / "before")
    (tmp_path / "lock").touch()
    assert not FolderLock(tmp_path / "lock").adopt(descriptor)
    assert is_free(tmp_path / "before")


@pytest.mark.parametrize("descriptor", [None, "7", 10**6])
def test_what_is_no_descriptor_holds_nothing(tmp_path: Path, descriptor: object) -> None:
    lock = FolderLock(tmp_path / "lock")
    assert not lock.adopt(descriptor)
    assert lock.descriptor is None
