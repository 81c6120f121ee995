"""The packed log: every bit comes back, a flipped one is turned back, and what is lost is bounded and named."""

import errno
import json
import mmap
import os
import zlib
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.base.test_codec import assert_same
from tests.keep.frames import (
    SAME,
    A,
    B,
    archived_times,
    container,
    frame_at,
    frames,
    write_log,
    write_plain_log,
)
from tests.strategies import examples, frame_sequences

from nodescope.base.codec import (
    DEFINITIONS,
    FIRST_FRAME,
    HELLO,
    NEXT_FRAME,
    Decoder,
    iterate_records,
    pack_record,
)
from nodescope.base.errors import ArchiveRefused, ArchiveTruncated
from nodescope.base.frame import Frame
from nodescope.keep import segment as segment_module
from nodescope.keep.convert import convert_all
from nodescope.keep.disk import Disk
from nodescope.keep.folder import DataFolder
from nodescope.keep.packed import spool
from nodescope.keep.packed.cells import pack_cells, unpack_cells
from nodescope.keep.packed.log_encoder import CHAPTER_FRAMES, LogEncoder
from nodescope.keep.packed.log_unpacker import LogUnpacker
from nodescope.keep.segment import LogSegment, parse_segment_data, read_segment
from nodescope.read.live.follow import Followed, follow

ANY_BITS = st.integers(0, 2**64 - 1)
SOME = st.sampled_from([0.0, -0.0, 1.0, 4096.0, -5.0, 2.0**52, 2.0**53, 0.5, np.inf, -np.inf, np.nan])


def encode_log(many: list[Frame]) -> list[bytes]:
    encoder = LogEncoder()
    return [encoder.hello(run="r", segment=1, node="n"), *map(encoder.encode, many)]


def decode_log(data: bytes) -> list[Frame]:
    return list(Decoder().decode(data, LogUnpacker().iterate))


def parse(data: bytes) -> LogSegment:
    return parse_segment_data(data, Path())


@given(frame_sequences(most=8))
@examples(150)
def test_frames_to_a_log_to_frames_is_the_identity(many: list[Frame]) -> None:
    """forall frames: unpack(pack(frames)) == frames, bit for bit"""
    found = decode_log(b"".join(encode_log(many)))
    assert len(found) == len(many)
    for one, other in zip(found, many):
        assert_same(one, other)


@given(st.lists(st.tuples(SOME | ANY_BITS, SOME | ANY_BITS), max_size=40))
@examples(200)
def test_any_two_numbers_give_the_second_from_the_first(pairs: list[tuple[float, float]]) -> None:
    """Also where they are NaN of any kind, minus zero or without limit."""
    before, values = (
        np.array([to_bits(pair[place]) for pair in pairs], "<u8").view("<f8") for place in (0, 1)
    )
    packed = pack_cells(values, before)
    found, end = unpack_cells(packed, 0, before)
    assert found.tobytes() == values.tobytes()
    assert end == len(packed)


def to_bits(value: float) -> int:
    return value if isinstance(value, int) else int(np.float64(value).view(np.uint64))


def test_what_stands_still_takes_no_room() -> None:
    parts = encode_log([frame_at(1, SAME) for _ in range(6)])
    assert max(map(len, parts[2:])) * 5 < len(parts[1])


@given(frame_sequences(), st.data())
@examples(100)
def test_a_log_cut_at_any_byte_gives_the_whole_frames_before_it(
    many: list[Frame], data: st.DataObject
) -> None:
    parts = encode_log(many)
    place = data.draw(st.integers(0, sum(map(len, parts))))
    ends = np.cumsum([len(part) for part in parts])
    segment = parse(b"".join(parts)[:place]) if place else None
    found = segment.frames if segment else ()
    assert len(found) == int((ends[1:] <= place).sum())
    for one, other in zip(found, many):
        assert_same(one, other)


def test_any_flipped_bit_is_turned_back() -> None:
    """forall bits of a log: all frames are there, with their values; nothing is lost."""
    many = [*frames(3), frame_at(3, (A, B, container("c", "pod-c"))), frame_at(4, (A, B))]
    data = b"".join(encode_log(many))
    for place in range(len(data)):
        damaged = bytearray(data)
        damaged[place] ^= 1 << place % 8
        segment = parse(bytes(damaged))
        # Of the last record nobody can tell whether its length or its end is missing.
        assert len(segment.frames) >= len(many) - 1, place
        assert not segment.lost, place
        for one, other in zip(segment.frames, many):
            assert_same(one, other)


def test_a_spoiled_frame_costs_those_up_to_the_next_first_one() -> None:
    many = frames(3 * CHAPTER_FRAMES)
    parts = encode_log(many)
    for spoiled in (0, 1, CHAPTER_FRAMES - 1, CHAPTER_FRAMES, CHAPTER_FRAMES + 7):
        damaged = [bytearray(part) for part in parts]
        # The last record of the tick: its frame, behind the definitions.
        damaged[1 + spoiled][-12:-8] = b"\x5a\xa5\x5a\xa5"
        segment = parse(b"".join(damaged))
        lost = range(spoiled, -(-(spoiled + 1) // CHAPTER_FRAMES) * CHAPTER_FRAMES)
        assert [frame.sequence for frame in segment.frames] == [
            number for number in range(len(many)) if number not in lost
        ]
        assert len(segment.lost) == len(lost)
        assert all(line.startswith("frame of ") for line in segment.lost)


def test_a_set_without_its_names_costs_no_more_than_its_rows_and_a_chapter() -> None:
    """Where a container starts, and the record with its name is spoiled, the others are back at the next first frame."""
    more = (A, B, container("c", "pod-c"))
    many = [*frames(5), *(frame_at(number, more) for number in range(5, 2 * CHAPTER_FRAMES))]
    parts = [bytearray(part) for part in encode_log(many)]
    assert [kind for kind, _ in iterate_records(bytes(parts[6]))] == [DEFINITIONS, NEXT_FRAME]
    parts[6][20:26] = bytes(6)
    segment = parse(b"".join(parts))
    found = {frame.sequence: frame for frame in segment.frames}
    assert sorted(found) == [*range(5), *range(CHAPTER_FRAMES, 2 * CHAPTER_FRAMES)]
    last = found[2 * CHAPTER_FRAMES - 1]
    assert [block.table.name for block in last.blocks] == ["cpu"]
    assert last.blocks[0].values[0, 0] == pytest.approx((2 * CHAPTER_FRAMES - 1) / 10)


def test_logs_of_before_are_read(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    write_plain_log(folder, frames(5))
    convert_all(Disk(), folder)
    assert archived_times(folder) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("version", [1, 4])
def test_a_log_of_another_version_is_refused(version: int) -> None:
    hello = pack_record(HELLO, json.dumps({"format": "nodescope-frames", "version": version}).encode())
    with pytest.raises(ArchiveRefused, match=f"version {version}; this build reads 2 and 3"):
        decode_log(hello)


def test_a_stream_that_is_not_unpacked_is_refused() -> None:
    """Who asks /live knows version 2 only, and must not take a log for an empty stream."""
    with pytest.raises(ArchiveRefused, match="version 3"):
        list(Decoder().decode(b"".join(encode_log(frames(2)))))


def test_a_record_that_unpacks_without_end_is_refused() -> None:
    """Sizes that only a prepared log has."""
    stream = zlib.compressobj(1, 8, -15)
    head = b"\0" * 24 + (1).to_bytes(4, "little") + b"\0" * 16 + b"\xff" * 8
    packed = stream.compress(head + bytes(64)) + stream.flush()
    hello = encode_log([])[0]
    check = zlib.adler32(packed).to_bytes(4, "little") + bytes(2)
    with pytest.raises(ArchiveRefused, match="more than a record may have"):
        parse(hello + pack_record(FIRST_FRAME, check + packed))


def test_a_log_is_followed_while_it_grows(tmp_path: Path) -> None:
    """Polled at any moment of a write, each frame comes once, when it is whole."""
    parts = encode_log(frames(CHAPTER_FRAMES + 3))
    data, path, followed = b"".join(parts), tmp_path / "r-000001.open", Followed()
    ends = np.cumsum([len(part) for part in parts])
    for size in range(1, len(data), 17):
        path.write_bytes(data[:size])
        follow(path, followed)
        assert len(followed.frames) == int((ends[1:] <= size).sum())
    path.write_bytes(data)
    follow(path, followed)
    assert [frame.sequence for frame in followed.frames] == list(range(CHAPTER_FRAMES + 3))


def test_many_frames_are_unpacked_to_a_file_without_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_log(DataFolder(tmp_path), frames(50))
    expected = read_segment(path).frames
    monkeypatch.setattr(segment_module, "Spool", lambda folder: spool.Spool(folder, 300, 4096))
    segment = read_segment(path)
    assert isinstance(segment.frames[-1].blocks[0].values.base, mmap.mmap)
    for one, other in zip(segment.frames, expected, strict=True):
        assert_same(one, other)
    assert os.listdir(path.parent) == [path.name]


def test_a_full_disk_is_an_error_not_a_signal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writing through the map would end the process."""

    def pwrite(descriptor: int, data: bytes, offset: int) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", pwrite)
    with closing(spool.Spool(tmp_path, 0)) as full, pytest.raises(OSError, match="No space"):
        full.keep(b"a frame")


def test_a_torn_end_is_told_apart_from_damage() -> None:
    data = b"".join(encode_log(frames(5)))
    segment = parse(data[:-3])
    assert (len(segment.frames), segment.lost) == (4, ())
    assert "cut short" in segment.damage
    with pytest.raises(ArchiveTruncated):
        decode_log(data[:-3])
