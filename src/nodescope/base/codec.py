"""
The one binary form of frames: what the live tail sends, and what the write-ahead log packs (keep/packed).

A stream is a sequence of records, all integers little-endian:

    u32 length of the payload   u32 CRC-32 of kind and payload   u8 kind   payload

    kind 1  hello        JSON: {"format": "nodescope-frames", "version": 2, ...}
    kind 3  frame        u64 sequence, i64 wall ns, i64 monotonic ns, u32 number of blocks,
                         then per block: u32 set, i64 monotonic ns, u32 rows,
                         u32 columns, rows * columns float64;
                         then JSON: {"outcomes": ..., "events": ...} up to the end
    kind 4  table        u32 table, then JSON: its name, source, scopes, metrics
    kind 5  set          u32 set, u32 table, u32 first new entity, u32 rows, rows * u32 entity,
                         then JSON: the new entities, numbered from the first on
    kinds 6 to 8         in a log only: the same, packed (keep/packed/log_encoder.py)

A set is sent before the first frame that uses it, and again only when a set
of entities changed; then only entities that the stream has not named yet are
written out, because the processes of a node change every second and are
mostly the same. A record cut short is no record: a reader stops there and
says so. One that is damaged in the middle of a log is left out, with the rows
that cannot be named without it (keep/check/log_records.py).
"""

import json
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from itertools import count
from typing import Any, cast

import numpy as np

from nodescope.base.block import Block, Floats, Info, Table
from nodescope.base.entity import Entity
from nodescope.base.errors import ArchiveRefused, ArchiveTruncated
from nodescope.base.frame import Event, Frame, Outcome
from nodescope.base.metric import Metric

FORMAT = "nodescope-frames"
VERSION = 2
HELLO, FRAME, TABLE, SET = 1, 3, 4, 5
DEFINITIONS, FIRST_FRAME, NEXT_FRAME = 6, 7, 8
RECORD = struct.Struct("<IIB")
_FRAME = struct.Struct("<QqqI")
BLOCK = struct.Struct("<IqII")
_NUMBER = struct.Struct("<I")
_SET = struct.Struct("<IIII")
_FLOAT = np.dtype("<f8")
_NOBODY = b"[]"
# A frame of 5,000 containers is some MB; a length beyond this is not ours.
RECORD_BYTES = 256 * 2**20
Payload = bytes | memoryview
Records = Iterator[tuple[int, Payload]]


def pack_record(kind: int, payload: bytes) -> bytes:
    return b"".join(_pack_parts(kind, [payload]))


def _pack_parts(kind: int, parts: Sequence[Payload]) -> list[Payload]:
    """The pieces of a record, its head first: joined once, whatever they weigh."""
    check, size = zlib.crc32(bytes([kind])), 0
    for part in parts:
        check = zlib.crc32(part, check)
        size += len(part) if isinstance(part, bytes) else part.nbytes
    return [RECORD.pack(size, check, kind), *parts]


def _entity_to_json(entity: Entity) -> list[Any]:
    return [entity.scope, list(entity.ids), list(map(list, entity.labels)), list(map(list, entity.details))]


def _pairs(value: list[list[str]]) -> tuple[tuple[str, str], ...]:
    return tuple((key, text) for key, text in value)


def _entity_from_json(value: list[Any]) -> Entity:
    scope, ids, labels, details = value
    return Entity(scope, tuple(ids), _pairs(labels), _pairs(details))


def metric_from_json(row: Mapping[str, Any]) -> Metric:
    """Fields that this build does not know are left out."""
    known = {key: row[key] for key in row if key in Metric.__dataclass_fields__}
    known["labels"] = _pairs(known.get("labels", []))
    known["also"] = tuple(known.get("also", ()))
    return Metric(**{"help": "", **known})


@lru_cache(maxsize=128)
def _table_to_json(table: Table) -> bytes:
    """Each segment of a log begins with the same ones."""
    return json.dumps(asdict(table)).encode()


def _table_from_json(value: dict[str, Any]) -> Table:
    metrics = tuple(map(metric_from_json, value["metrics"]))
    info = value.get("info")
    if info:
        info = Info(info["published"], info["help"], tuple(info["labels"]))
    return Table(value["name"], value["source"], tuple(value["scopes"]), metrics, info or None)


@dataclass(slots=True)
class Encoder:
    """Frames to bytes; remembers what the stream has named."""

    version: int = VERSION
    _sets: dict[str, tuple[int, Table, tuple[Entity, ...], list[int]]] = field(default_factory=dict)
    _tables: dict[str, tuple[int, Table]] = field(default_factory=dict)
    _entities: dict[Entity, int] = field(default_factory=dict)
    _numbers: dict[int, int] = field(default_factory=dict)
    """By id(): to hash what an entity is of costs more than all else that a changed set does."""
    _seen: list[Entity] = field(default_factory=list)
    """Held, so that no other object gets one of these ids."""
    _set_numbers: Iterator[int] = field(default_factory=count)
    _table_numbers: Iterator[int] = field(default_factory=count)
    _story: tuple[list[tuple[str, ...]] | None, bytes] = (None, b"")
    """The outcomes of the newest frame without events, and what they are as bytes: most ticks have the same."""

    def hello(self, **facts: Any) -> bytes:
        return pack_record(HELLO, json.dumps({"format": FORMAT, "version": self.version, **facts}).encode())

    def encode(self, frame: Frame) -> bytes:
        """The frame's record, behind the tables and sets it needs."""
        records: list[Payload] = []
        body: list[Payload] = [_FRAME.pack(frame.sequence, frame.at_ns, frame.mono_ns, len(frame.blocks))]
        for block in frame.blocks:
            number, definition = self.define(block)
            records.append(definition)
            rows, columns = block.values.shape
            body += [
                BLOCK.pack(number, block.mono_ns, rows, columns),
                np.ascontiguousarray(block.values, _FLOAT).data,
            ]
        body.append(self.tell(frame))
        return b"".join([*records, *_pack_parts(FRAME, body)])

    def tell(self, frame: Frame) -> bytes:
        if frame.events:
            return _story_to_json(frame)
        told: list[tuple[str, ...]] = [
            (name, outcome.state, outcome.reason) for name, outcome in frame.outcomes.items()
        ]
        if told != self._story[0]:
            self._story = told, _story_to_json(frame)
        return self._story[1]

    def define(self, block: Block) -> tuple[int, bytes]:
        known = self._sets.get(block.table.name)
        if known and known[1] is block.table and known[2] is block.entities:
            return known[0], b""
        table, record = self._define_table(block.table)
        number = next(self._set_numbers)
        first = len(self._entities)
        # By map, without a loop of ours: the processes of a node are another set at nearly every tick.
        found = list(map(self._numbers.get, map(id, block.entities)))
        fresh: list[list[Any]] = []
        if None in found:
            for row, entity in enumerate(block.entities):
                if found[row] is None:
                    place = found[row] = self._name(entity)
                    if place == first + len(fresh):
                        fresh.append(_entity_to_json(entity))
        places = cast("list[int]", found)
        self._sets[block.table.name] = (number, block.table, block.entities, places)
        head = _SET.pack(number, table, first, len(places)) + np.array(places, "<u4").tobytes()
        return number, record + pack_record(SET, head + json.dumps(fresh).encode())

    def _name(self, entity: Entity) -> int:
        """The number of an entity, which another object may have been as well."""
        place = self._entities.setdefault(entity, len(self._entities))
        self._numbers[id(entity)] = place
        self._seen.append(entity)
        return place

    def places(self, table: str) -> list[int]:
        """The entities of a table's newest set, by number."""
        return self._sets[table][3]

    def _define_table(self, table: Table) -> tuple[int, bytes]:
        known = self._tables.get(table.name)
        if known and (known[1] is table or known[1] == table):
            return known[0], b""
        number = next(self._table_numbers)
        self._tables[table.name] = (number, table)
        return number, pack_record(TABLE, _NUMBER.pack(number) + _table_to_json(table))


def events_to_rows(events: Iterable[Event]) -> list[list[Any]]:
    """For JSON."""
    return [
        [
            event.kind,
            event.at_ns,
            event.scope,
            list(event.ids),
            list(map(list, event.labels)),
            dict(event.facts),
        ]
        for event in events
    ]


def events_from_rows(rows: Iterable[Sequence[Any]]) -> tuple[Event, ...]:
    return tuple(
        Event(kind, at_ns, scope, tuple(ids), _pairs(labels), facts)
        for kind, at_ns, scope, ids, labels, facts in rows
    )


def _story_to_json(frame: Frame) -> bytes:
    outcomes = {name: [outcome.state, outcome.reason] for name, outcome in frame.outcomes.items()}
    return json.dumps({"outcomes": outcomes, "events": events_to_rows(frame.events)}).encode()


def _story_from_json(data: Payload) -> tuple[dict[str, Outcome], tuple[Event, ...]]:
    story = json.loads(bytes(data))
    outcomes = {name: Outcome(state, reason) for name, (state, reason) in story["outcomes"].items()}
    return outcomes, events_from_rows(story["events"])


@dataclass(frozen=True, slots=True)
class EntitySet:
    """What the rows of a block are of."""

    table: Table
    entities: tuple[Entity, ...]
    rows: Sequence[int] | None = None
    """The rows that are still named; None: all."""

    def pick(self, values: Floats) -> Floats:
        return values if self.rows is None else values[list(self.rows)]


@dataclass(slots=True)
class Decoder:
    hello: dict[str, Any] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    """Records that were left out; without any, a stream that does not fit together is an error."""
    _sets: dict[int, "EntitySet"] = field(default_factory=dict)
    _tables: dict[int, Table] = field(default_factory=dict)
    _entities: dict[int, Entity] = field(default_factory=dict)
    _story: tuple[bytes, tuple[dict[str, Outcome], tuple[Event, ...]]] = (b"", ({}, ()))

    def decode(
        self, data: Payload, iterate: "Callable[[Payload, list[str]], Records] | None" = None
    ) -> Iterator[Frame]:
        """
        Every whole frame; ArchiveTruncated at a record that was cut or damaged.

        Another way to iterate may leave damaged records out, and say so in `lost`.

        The blocks look into the data they came from: a mapped file stays on
        disk until a value is used. Entities that stay are the same
        objects in every set: they may be compared with `is`.
        """
        for kind, payload in iterate(data, self.lost) if iterate else iterate_records(data):
            if kind == FRAME:
                yield self._frame(payload)
            elif kind == HELLO:
                self._greet(payload)
            elif kind == TABLE:
                (number,) = _NUMBER.unpack_from(payload)
                self._tables[number] = _table_from_json(json.loads(bytes(payload[_NUMBER.size :])))
            elif kind == SET:
                self._learn_set(payload)

    def _greet(self, payload: Payload) -> None:
        self.hello = json.loads(bytes(payload))
        if self.hello.get("format") != FORMAT:
            raise ArchiveRefused("this is not a stream of nodescope frames")
        if self.hello["version"] != VERSION:
            raise ArchiveRefused(f"frames of version {self.hello['version']}; this build reads {VERSION}")

    def _learn_set(self, payload: Payload) -> None:
        number, table, first, places = parse_set(payload)
        text = bytes(payload[_SET.size + len(places) * 4 :])
        fresh = json.loads(text) if text != _NOBODY else []
        if first != len(self._entities) and not self.lost:
            raise ValueError(f"a set begins at entity {first}; {len(self._entities)} are known")
        self._entities.update(enumerate(map(_entity_from_json, fresh), first))
        if self.lost:
            self._learn_rest(number, table, places)
            return
        entities = tuple([self._entities[place] for place in places])
        self._sets[number] = EntitySet(self._tables[table], entities)

    def _learn_rest(self, number: int, table: int, places: Sequence[int]) -> None:
        """Of a set in a damaged stream, what is still named."""
        rows = [row for row, place in enumerate(places) if place in self._entities]
        if table in self._tables:
            entities = tuple([self._entities[places[row]] for row in rows])
            self._sets[number] = EntitySet(
                self._tables[table], entities, rows if len(rows) < len(places) else None
            )

    def _frame(self, payload: Payload) -> Frame:
        sequence, at_ns, mono_ns, number_of_blocks = _FRAME.unpack_from(payload)
        offset = _FRAME.size
        blocks = []
        for _ in range(number_of_blocks):
            number, block_mono_ns, rows, columns = BLOCK.unpack_from(payload, offset)
            offset += BLOCK.size
            values = np.ndarray((rows, columns), _FLOAT, payload, offset)
            offset += rows * columns * 8
            if self.lost and number not in self._sets:
                continue
            known = self._sets[number]
            blocks.append(Block(known.table, known.entities, known.pick(values), block_mono_ns))
        outcomes, events = self._parse_story(bytes(payload[offset:]))
        return Frame(sequence, at_ns, mono_ns, tuple(blocks), outcomes, events)

    def _parse_story(self, data: bytes) -> tuple[dict[str, Outcome], tuple[Event, ...]]:
        """Most ticks go like the one before: their story is the same text."""
        if data != self._story[0]:
            self._story = (data, _story_from_json(data))
        return self._story[1]


def parse_set(payload: Payload) -> tuple[int, int, int, list[int]]:
    """(set, table, first new entity, entities)."""
    number, table, first, rows = _SET.unpack_from(payload)
    return number, table, first, np.frombuffer(payload, "<u4", rows, _SET.size).tolist()


def read_record(data: Payload, offset: int) -> tuple[int, Payload]:
    """The record that begins here; ArchiveTruncated where it is cut or damaged."""
    if offset + RECORD.size > len(data):
        raise ArchiveTruncated(f"record header cut short at byte {offset}", offset)
    length, check, kind = RECORD.unpack_from(data, offset)
    start = offset + RECORD.size
    payload = data[start : start + length]
    if length > RECORD_BYTES or len(payload) < length:
        raise ArchiveTruncated(f"record cut short at byte {offset}", offset)
    if check_record(kind, payload) != check:
        raise ArchiveTruncated(f"record damaged at byte {offset}", offset)
    return kind, payload


def check_record(kind: int, payload: Payload) -> int:
    return zlib.crc32(payload, zlib.crc32(bytes([kind])))


def iterate_records(data: Payload) -> Records:
    offset = 0
    while offset < len(data):
        kind, payload = read_record(data, offset)
        yield kind, payload
        offset += RECORD.size + len(payload)
