"""Damaged files: repaired, salvaged or set aside by name, and all others go on."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import zstandard
from tests.keep.frames import (
    CURRENT,
    archived_times,
    container,
    frame_at,
    frames,
    write_log,
    write_plain_log,
)
from tests.torture import bit_flips

from nodescope.base.codec import FRAME, SET, iterate_records
from nodescope.base.errors import ArchiveDamaged
from nodescope.keep.check.quarantine import read_damage
from nodescope.keep.check.seal import unseal
from nodescope.keep.check.sums import DamagedPiece, FileSum, check_file, describe_damage
from nodescope.keep.check.verify import judge_file
from nodescope.keep.consolidator import Consolidator, Report
from nodescope.keep.convert import convert_all
from nodescope.keep.disk import Disk
from nodescope.keep.folder import ArchiveFile, DataFolder
from nodescope.keep.retention import RetentionLimits, apply_retention
from nodescope.keep.segment import parse_segment_data
from nodescope.keep.sidecar import read_sidecar, render_sidecar
from nodescope.read.files.catalog import read_catalog
from nodescope.read.query.engine import Engine

LATER_MS = 1_772_366_340_000 + 90 * 86_400_000


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    """Four fresh files of five ticks each."""
    made = DataFolder(tmp_path / "data")
    for number in range(4):
        write_log(made, frames(5, number * 5), segment=number + 1)
    convert_all(Disk(), made)
    return made


def run_pass(folder: DataFolder) -> Report:
    return Consolidator(Disk(), folder, 2).run_pass(LATER_MS)


def spoil(path: Path, start: int, size: int = 64) -> None:
    """A part of a sector, overwritten."""
    with path.open("r+b") as file:
        file.seek(start)
        file.write(b"\xa5" * size)


def first_file(folder: DataFolder) -> ArchiveFile:
    return next(iter(folder.files()))


def make_wide(folder: DataFolder) -> ArchiveFile:
    """One file of several row groups."""
    many = tuple(container(f"{number:x}".rjust(2, "0") * 32, f"pod-{number}"[:8]) for number in range(250))
    many = tuple(replace(one, ids=(one.ids[0][:64], "77")) for one in many)
    write_log(folder, [frame_at(number, many) for number in range(800)])
    convert_all(Disk(), folder)
    return first_file(folder)


def test_a_pass_over_flipped_bits_loses_nothing_silently() -> None:
    """The short form of the torture: forty flips."""
    rows = bit_flips.run(0.004)
    assert [row.render() for row in rows if not row.met] == []


def test_the_sum_of_a_file_has_a_piece_for_each_row_group(tmp_path: Path) -> None:
    """And one for what follows them: a damaged piece is a row group that is lost."""
    file = make_wide(DataFolder(tmp_path))
    expected = read_sidecar(file.sidecar).head.sum
    metadata = pq.ParquetFile(file.path).metadata
    assert expected is not None
    assert metadata.num_row_groups >= 3
    assert len(expected.pieces) == metadata.num_row_groups + 1
    assert expected.size == file.path.stat().st_size
    for number, (end, _) in enumerate(expected.pieces[:-1]):
        columns = [metadata.row_group(number).column(place) for place in range(metadata.num_columns)]
        last = max(column.data_page_offset + column.total_compressed_size for column in columns)
        assert end <= last + 4096


def test_of_a_spoiled_row_group_the_others_are_saved(tmp_path: Path) -> None:
    """Rows are lost by number, named with file and time, and the damaged file is kept aside."""
    folder = DataFolder(tmp_path)
    file = make_wide(folder)
    head = read_sidecar(file.sidecar).head
    metadata = pq.ParquetFile(file.path).metadata
    assert head.sum is not None
    spoil(file.path, head.sum.pieces[0][0] + 1000)
    verdict = judge_file(folder, file)
    assert (verdict.state, verdict.rows_lost) == ("lost", metadata.row_group(1).num_rows)
    report = run_pass(folder)
    (saved,) = folder.files()
    assert saved.path.name != file.path.name
    assert read_sidecar(saved.sidecar).head.rows == metadata.num_rows - metadata.row_group(1).num_rows
    assert file.path.name in report.refused
    (note,) = read_damage(folder).notes
    assert (note.rows_lost, note.to_ms >= note.from_ms > 0) == (metadata.row_group(1).num_rows, True)
    aside = folder.damaged / file.path.relative_to(folder.path)
    assert aside.exists()
    assert aside.with_suffix(".containers").exists()


def test_a_spoiled_footer_costs_its_file_and_no_other(folder: DataFolder) -> None:
    file = first_file(folder)
    spoil(file.path, file.path.stat().st_size - 100)
    assert run_pass(folder).merged_files == 3
    assert archived_times(folder) == list(range(5, 20))
    (note,) = read_damage(folder).notes
    assert note.file == str(file.path.relative_to(folder.path))
    assert note.rows_lost > 0
    assert (folder.damaged / note.file).exists()


def test_a_spoiled_sidecar_is_set_aside_and_its_samples_stay(folder: DataFolder) -> None:
    file = first_file(folder)
    spoil(file.sidecar, 30)
    assert run_pass(folder).merged_files == 3
    assert archived_times(folder) == list(range(20))
    assert (folder.damaged / file.sidecar.relative_to(folder.path)).exists()


def test_a_merge_keeps_what_it_could_not_read(folder: DataFolder) -> None:
    """A file without a checksum, damaged: found by its pages while merging; no source is removed."""
    for file in folder.files():
        sidecar = read_sidecar(file.sidecar).whole()
        sidecar.head = replace(sidecar.head, sum=None)
        file.sidecar.write_bytes(render_sidecar(sidecar))
    paths = [file.path for file in folder.files()]
    column = pq.ParquetFile(paths[1]).metadata.row_group(0).column(2)
    spoil(paths[1], column.data_page_offset + 60, 8)
    report = run_pass(folder)
    assert report.refused
    assert all(path.exists() for path in paths)


def test_strays_do_not_hold_up_a_pass(folder: DataFolder) -> None:
    """A folder and dangling links that are called like files of ours, at every level."""
    partition = folder.partitions()[0]
    (partition / "metrics-20260301T110000Z.parquet").mkdir()
    (partition / "metrics-20260301T110500Z.parquet").symlink_to("nowhere")
    (partition / "metrics-20260301T115900Z.parquet.tmp").mkdir()
    (partition / "orphan.containers").mkdir()
    (folder.path / "dt=2026-03-02").mkdir()
    (folder.path / "dt=2026-03-02" / "identifier=n1").write_text("a file")
    (folder.path / "dt=2026-03-03").symlink_to("nowhere")
    (folder.wal / "run9-000001.log").mkdir()
    (folder.wal / "run9-000002.log").symlink_to("nowhere")
    write_log(folder, frames(5, 20), segment=5)
    report = run_pass(folder)
    assert report.merged_files == 5
    assert archived_times(folder) == list(range(25))
    freed = apply_retention(Disk(), folder, RetentionLimits(1.0, 0, 0, 1.0), LATER_MS)
    assert freed.files >= 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_does_not_hold_up_a_pass(folder: DataFolder) -> None:
    first_file(folder).path.chmod(0)
    assert run_pass(folder).merged_files == 3


def test_readers_name_a_damaged_file_and_serve_the_others(folder: DataFolder) -> None:
    file = first_file(folder)
    spoil(file.path, 200)
    answer = Engine().query(read_catalog([folder.path]), CURRENT.name, max_points=2**40)
    assert [file.path.name in text for text in answer.refused] == [True]
    assert all(len(line.points.time_ms) == 15 for line in answer.lines)


def test_a_file_is_checked_anew_when_it_changes(folder: DataFolder) -> None:
    file = first_file(folder)
    expected = read_sidecar(file.sidecar).head.sum
    assert expected is not None
    check_file(file.path, expected)
    spoil(file.path, 200)
    with pytest.raises(ArchiveDamaged, match=file.path.name):
        check_file(file.path, expected)


def test_files_older_than_checksums_are_read_as_before(folder: DataFolder) -> None:
    file = first_file(folder)
    file.sidecar.write_bytes(render_old(file.sidecar.read_bytes()))
    assert judge_file(folder, file).state == "unchecked"
    assert archived_times(folder) == list(range(20))
    assert run_pass(folder).merged_files == 4


def render_old(sealed: bytes) -> bytes:
    """As it was written before there were checksums."""
    data = unseal(sealed).data
    unpacker = zstandard.ZstdDecompressor().decompressobj()
    head = json.loads(unpacker.decompress(data))
    old = {name: value for name, value in head.items() if name not in ("sum", "sealed")}
    return zstandard.compress(json.dumps(old).encode() + b"\n") + unpacker.unused_data


# -- logs ---------------------------------------------------------------------------


def split_log(data: bytes) -> list[tuple[int, int, int]]:
    """(kind, start, end) of every record."""
    found, offset = [], 0
    for kind, payload in iterate_records(data):
        found.append((kind, offset, offset + 9 + len(payload)))
        offset += 9 + len(payload)
    return found


def test_any_damaged_record_costs_itself_alone(tmp_path: Path) -> None:
    """Forall frames of version 2: spoiled anywhere, all others are there; where only its length is, so is it."""
    data = write_plain_log(DataFolder(tmp_path), frames(8)).read_bytes()
    for kind, start, end in split_log(data):
        if kind != FRAME:
            continue
        # Of the last one nobody can tell whether its length or its end is missing.
        is_last = end == len(data)
        for place, left in ((0, 8), (5, 7), (8, 7), (40, 7)):
            damaged = bytearray(data)
            damaged[start + place : start + place + 3] = b"\x5a\xa5\x5a"
            segment = parse_segment_data(bytes(damaged), tmp_path)
            if is_last and place == 0:
                assert (len(segment.frames), segment.damage != "") == (7, True)
            else:
                assert (len(segment.frames), len(segment.lost)) == (left, 8 - left), place


def test_without_a_definition_the_rest_of_a_frame_is_kept(tmp_path: Path) -> None:
    """A spoiled set: rows of the entities that it named are lost, other tables are not."""
    data = bytearray(write_plain_log(DataFolder(tmp_path), frames(8)).read_bytes())
    _, start, end = next(record for record in split_log(bytes(data)) if record[0] == SET)
    data[start + 40 : start + 60] = b"\0" * 20
    segment = parse_segment_data(bytes(data), tmp_path)
    assert end > start
    assert len(segment.frames) == 8
    assert len(segment.lost) == 1
    assert {block.table.name for frame in segment.frames for block in frame.blocks} == {"cpu"}


def test_any_flipped_bit_of_a_definition_is_turned_back(tmp_path: Path) -> None:
    data = write_plain_log(DataFolder(tmp_path), frames(3)).read_bytes()
    for kind, start, end in split_log(data):
        for place in range(start, end) if kind != FRAME else ():
            damaged = bytearray(data)
            damaged[place] ^= 1 << place % 8
            segment = parse_segment_data(bytes(damaged), tmp_path)
            assert [len(frame.blocks) for frame in segment.frames] == [2, 2, 2], (kind, place - start)


@pytest.mark.parametrize(
    ("damaged", "said"),
    [
        ((0,), "damaged: row group 0 (bytes 0 to 10) has another checksum than when it was written"),
        ((0, 1), "damaged: row group 0 (bytes 0 to 10) and 1 more piece have another checksum than"),
        ((0, 1, 2), "damaged: row group 0 (bytes 0 to 10) and 2 more pieces have another checksum than"),
        ((2,), "damaged: its end (indexes and footer) (bytes 20 to 30) has another checksum than"),
    ],
)
def test_damage_is_told_in_one_sentence(damaged: tuple[int, ...], said: str) -> None:
    whole = FileSum(((10, 1), (20, 2), (30, 3)), "")
    pieces = [DamagedPiece(number, 10 * number, 10 * number + 10, 1) for number in damaged]
    assert describe_damage(pieces, whole).startswith(said)
