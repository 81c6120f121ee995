"""Folders as people name them: what is no folder is refused in one line, with the way that there is."""

from pathlib import Path

import pytest

from nodescope.base.errors import SettingsRejected
from nodescope.commands.shared.places import find_folder, is_store


def test_a_path_and_the_address_of_a_folder_are_the_same() -> None:
    assert find_folder("some/folder") == Path("some/folder")
    assert (
        find_folder("/mnt/the archive")
        == find_folder("file:///mnt/the%20archive")
        == Path("/mnt/the archive")
    )


def test_a_store_is_no_folder() -> None:
    assert all(
        map(is_store, ("s3://bucket/archive", "gs://bucket", "abfs://box@account.dfs.core.windows.net/path"))
    )
    assert not any(map(is_store, ("some/folder", "file:///mnt/archive", "http://10.0.0.5:8050", "s3")))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("http://10.0.0.5:8050/word", "--viewer NODE=URL"),
        ("file://word/archive", "file:///FOLDER"),
        ("ftp://word/archive", "file:///FOLDER"),
    ],
)
def test_what_is_no_folder_is_refused_without_being_repeated(text: str, said: str) -> None:
    with pytest.raises(SettingsRejected, match=said) as refused:
        find_folder(text)
    assert "word" not in str(refused.value)
    assert "\n" not in str(refused.value)
