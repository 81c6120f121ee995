"""The one listing of archive files: what a merge replaced is not served, by any reader."""

import shutil
from pathlib import Path

import pytest
from tests.keep.frames import frames, write_log

from nodescope.keep.consolidator import Consolidator
from nodescope.keep.convert import convert_all
from nodescope.keep.disk import Disk
from nodescope.keep.folder import DataFolder
from nodescope.read.files.catalog import read_catalog
from nodescope.read.files.file_survey import survey_roots
from nodescope.read.files.listing import list_files

LATER_MS = 1_772_366_340_000 + 90 * 86_400_000


@pytest.fixture
def merging(tmp_path: Path) -> DataFolder:
    """Between a merge's last two steps: its output is in place, the four sources are still there."""
    folder = DataFolder(tmp_path / "data")
    for number in range(4):
        write_log(folder, frames(5, number * 5), segment=number + 1)
    convert_all(Disk(), folder)
    (partition,) = folder.partitions()
    shutil.copytree(partition, tmp_path / "sources")
    Consolidator(Disk(), folder).run_pass(LATER_MS)
    shutil.copytree(tmp_path / "sources", partition, dirs_exist_ok=True)
    return folder


def test_a_file_that_a_merge_replaced_is_listed_and_not_served(merging: DataFolder) -> None:
    listing = list_files([merging.path], {})
    assert len(listing.opened) == 5
    (merged,) = listing.served()
    assert merged.path.name.startswith("consolidated-")
    assert [entry.path for entry in read_catalog([merging.path]).entries] == [merged.path]
    assert [file.key for file in survey_roots([str(merging.path)]).files] == [str(merged.path)]


def test_an_entry_that_is_known_is_taken_over_and_a_file_that_has_gone_is_dropped(
    merging: DataFolder,
) -> None:
    first = list_files([merging.path], {})
    gone, *rest = first.opened
    gone.unlink()
    second = list_files([merging.path], first.opened)
    assert list(second.opened) == rest
    assert all(second.opened[path] is first.opened[path] for path in rest)
    assert not second.refusals


def test_a_file_that_cannot_be_read_is_named_and_the_others_are_listed(merging: DataFolder) -> None:
    broken = next(file.path for file in merging.files())
    broken.write_bytes(b"PAR1")
    listing = list_files([merging.path], {})
    assert [(one.path, one.reason) for one in listing.refusals] == [
        (broken, f"{broken.name}: too short to be Parquet")
    ]
    assert len(listing.opened) == 4


def test_a_catalog_is_the_same_until_a_file_changes(merging: DataFolder) -> None:
    before = read_catalog([merging.path])
    assert read_catalog([merging.path], before) is before
    next(file.path for file in merging.files() if file.kind == "metrics").unlink()
    assert read_catalog([merging.path], before) is not before
