"""The binary form of frames: what goes in comes out, and damage is never read as data."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import examples, frame_sequences

from nodescope.base.block import Block, Info, Table
from nodescope.base.codec import HELLO, SET, Decoder, Encoder, iterate_records, pack_record
from nodescope.base.codec import TABLE as TABLE_RECORD
from nodescope.base.entity import Entity
from nodescope.base.errors import ArchiveRefused, ArchiveTruncated
from nodescope.base.frame import Frame, Outcome
from nodescope.base.metric import Metric


def encode_all(frames: list[Frame]) -> list[bytes]:
    encoder = Encoder()
    return [encoder.hello(node="n"), *(encoder.encode(frame) for frame in frames)]


def assert_same(found: Frame, given_frame: Frame) -> None:
    assert (found.sequence, found.at_ns, found.mono_ns) == (
        given_frame.sequence,
        given_frame.at_ns,
        given_frame.mono_ns,
    )
    assert found.events == given_frame.events
    assert dict(found.outcomes) == dict(given_frame.outcomes)
    assert len(found.blocks) == len(given_frame.blocks)
    for one, other in zip(found.blocks, given_frame.blocks):
        assert one.table == other.table
        assert one.entities == other.entities
        assert one.mono_ns == other.mono_ns
        # Bit for bit: NaN is "not measured" and must stay so.
        assert one.values.tobytes() == other.values.tobytes()


@given(frame_sequences())
@examples(150)
def test_frames_to_bytes_to_frames_is_the_identity(frames: list[Frame]) -> None:
    """forall frames: decode(encode(frames)) == frames"""
    found = list(Decoder().decode(b"".join(encode_all(frames))))
    assert len(found) == len(frames)
    for one, other in zip(found, frames):
        assert_same(one, other)


def check_prefix(parts: list[bytes], damaged: bytes, frames: list[Frame], intact_bytes: int) -> None:
    """Only whole frames that ended before the damage come out, then ArchiveTruncated."""
    ends = np.cumsum([len(part) for part in parts])
    whole = int((ends[1:] <= intact_bytes).sum())
    found: list[Frame] = []
    try:
        found.extend(Decoder().decode(damaged))
    except ArchiveTruncated:
        pass
    else:
        # A cut between two records is a shorter stream, not a damaged one.
        assert len(damaged) in _record_ends(parts)
    assert len(found) == whole
    for one, other in zip(found, frames):
        assert_same(one, other)


def _record_ends(parts: list[bytes]) -> set[int]:
    data = b"".join(parts)
    ends = {0}
    offset = 0
    for _, payload in iterate_records(data):
        offset += 9 + len(payload)
        ends.add(offset)
    return ends


@given(frame_sequences(), st.data())
@examples(150)
def test_a_stream_cut_at_any_byte_gives_the_whole_frames_before_it(
    frames: list[Frame], data: st.DataObject
) -> None:
    parts = encode_all(frames)
    stream = b"".join(parts)
    place = data.draw(st.integers(0, len(stream)))
    check_prefix(parts, stream[:place], frames, place)


@given(frame_sequences(), st.data())
@examples(150)
def test_a_flipped_bit_is_never_read_as_data(frames: list[Frame], data: st.DataObject) -> None:
    parts = encode_all(frames)
    stream = bytearray(b"".join(parts))
    place = data.draw(st.integers(0, len(stream) - 1))
    stream[place] ^= 1 << data.draw(st.integers(0, 7))
    # What was whole before the damaged record stays; nothing behind it is trusted.
    check_prefix(parts, bytes(stream), frames, place)


def make_frame(entities: tuple[Entity, ...], table: Table, sequence: int = 0) -> Frame:
    block = Block(table, entities, np.ones((len(entities), 1)), 0)
    return Frame(sequence, 0, 0, (block,), {"cpu": Outcome("ok")})


TABLE = Table("t", "t", ("container",), (Metric("m", "gauge", "A number."),))


def test_a_definition_is_sent_again_only_when_the_set_changed() -> None:
    entities = (Entity("container", ("a",)),)
    encoder = Encoder()
    records = [
        [kind for kind, _ in iterate_records(encoder.encode(make_frame(some, TABLE)))]
        for some in (entities, entities, (*entities, Entity("container", ("b",))))
    ]
    assert [SET in kinds for kinds in records] == [True, False, True]
    assert [TABLE_RECORD in kinds for kinds in records] == [True, False, False]


def test_an_entity_is_spelled_out_once_and_stays_the_same_object() -> None:
    """A set that changed names the new one only; who stayed is told apart with `is`."""
    a, b = Entity("process", ("1", "7")), Entity("process", ("2", "8"))
    encoder = Encoder()
    parts = [encoder.encode(make_frame(some, TABLE)) for some in ((a,), (a, b), (b,))]
    assert [part.count(b'"process"') for part in parts] == [1, 1, 0]
    first, second, third = Decoder().decode(b"".join(parts))
    assert first.blocks[0].entities[0] is second.blocks[0].entities[0]
    assert second.blocks[0].entities[1] is third.blocks[0].entities[0]
    assert third.blocks[0].entities == (b,)


@pytest.mark.parametrize("version", [1, 3])
def test_a_stream_of_another_version_is_refused(version: int) -> None:
    hello = pack_record(HELLO, json.dumps({"format": "nodescope-frames", "version": version}).encode())
    with pytest.raises(ArchiveRefused, match=f"version {version}; this build reads 2"):
        list(Decoder().decode(hello))


def test_a_cut_record_says_where_it_begins() -> None:
    hello = Encoder().hello()
    for cut in (hello[:-1], hello[:5]):
        with pytest.raises(ArchiveTruncated) as caught:
            list(Decoder().decode(hello + cut))
        assert caught.value.offset == len(hello)


def test_the_info_of_a_table_survives() -> None:
    table = Table("t", "t", ("container",), TABLE.metrics, Info("container_info", "Always 1.", ("image",)))
    frame = make_frame((Entity("container", ("a",)),), table)
    (found,) = Decoder().decode(Encoder().encode(frame))
    assert found.blocks[0].table == table


def test_a_stream_of_somebody_else_is_refused() -> None:
    with pytest.raises(ArchiveRefused, match="not a stream of nodescope frames"):
        list(Decoder().decode(pack_record(HELLO, b'{"format": "other", "version": 1}')))


def test_a_newer_version_is_refused_by_number() -> None:
    newer = json.dumps({"format": "nodescope-frames", "version": 99}).encode()
    with pytest.raises(ArchiveRefused, match="version 99"):
        list(Decoder().decode(pack_record(HELLO, newer)))


def test_a_kind_of_record_that_we_do_not_know_is_passed_over() -> None:
    frame = make_frame((Entity("container", ("a",)),), TABLE)
    assert len(list(Decoder().decode(pack_record(77, b"later") + Encoder().encode(frame)))) == 1


def test_outcomes_that_stand_as_before_are_the_same_bytes_and_changes_are_not_missed() -> None:
    """They are written anew when one changed, and with every event."""
    encoder, decoder = Encoder(), Decoder()
    outcomes = [
        {"cpu": Outcome("ok")},
        {"cpu": Outcome("ok", cost_seconds=1.0)},
        {"cpu": Outcome("failed", "why")},
        {},
    ]
    frames = [Frame(number, number, number, (), one) for number, one in enumerate(outcomes)]
    data = encoder.hello() + b"".join(encoder.encode(frame) for frame in frames)
    read = [
        {name: (one.state, one.reason) for name, one in frame.outcomes.items()}
        for frame in decoder.decode(data)
    ]
    assert read == [{"cpu": ("ok", "")}, {"cpu": ("ok", "")}, {"cpu": ("failed", "why")}, {}]
