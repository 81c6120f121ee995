"""
The one binary form of frames: the live tail and the write-ahead log share it.

A stream is a sequence of records, all integers little-endian:

    u32 length of the payload   u32 CRC-32 of kind and payload   u8 kind   payload

    kind 1  hello        JSON: {"format": "nodescope-frames", "version": 1, ...}
    kind 2  definition   u32 id, then JSON: table, metrics and entities of a block's set
    kind 3  frame        u64 sequence, i64 wall ns, i64 monotonic ns, u32 number of blocks,
                         then per block: u32 definition id, i64 monotonic ns, u32 rows,
                         u32 columns, rows * columns float64;
                         then JSON: {"outcomes": ..., "events": ...} up to the end

A definition is sent before the first frame that uses it, and again only when
a set of entities changed. A record cut short is no record: a reader stops
there and says so.
"""

import json
import struct
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from nodescope.base.block import Block, Info, Table
from nodescope.base.entity import Entity
from nodescope.base.errors import ArchiveRefused, ArchiveTruncated
from nodescope.base.frame import Event, Frame, Outcome
from nodescope.base.metric import Metric

FORMAT = "nodescope-frames"
VERSION = 1
HELLO, DEFINITION, FRAME = 1, 2, 3
_RECORD = struct.Struct("<IIB")
_FRAME = struct.Struct("<QqqI")
_BLOCK = struct.Struct("<IqII")
# A frame of 5,000 containers is some MB; a length beyond this is not ours.
RECORD_BYTES = 256 * 2**20
Payload = bytes | memoryview


def pack_record(kind: int, payload: bytes) -> bytes:
    check = zlib.crc32(payload, zlib.crc32(bytes([kind])))
    return _RECORD.pack(len(payload), check, kind) + payload


def _entity_to_json(entity: Entity) -> list[Any]:
    return [entity.scope, list(entity.ids), list(map(list, entity.labels)), list(map(list, entity.details))]


def _pairs(value: list[list[str]]) -> tuple[tuple[str, str], ...]:
    return tuple((key, text) for key, text in value)


def _entity_from_json(value: list[Any]) -> Entity:
    scope, ids, labels, details = value
    return Entity(scope, tuple(ids), _pairs(labels), _pairs(details))


def _table_to_json(table: Table) -> dict[str, Any]:
    return {
        "name": table.name,
        "source": table.source,
        "scopes": table.scopes,
        "metrics": [asdict(m) for m in table.metrics],
        "info": asdict(table.info) if table.info else None,
    }


def _table_from_json(value: dict[str, Any]) -> Table:
    metrics = []
    for row in value["metrics"]:
        known = {key: row[key] for key in row if key in Metric.__dataclass_fields__}
        known["labels"] = _pairs(known.get("labels", []))
        known["also"] = tuple(known.get("also", ()))
        metrics.append(Metric(**known))
    info = value.get("info")
    if info:
        info = Info(info["published"], info["help"], tuple(info["labels"]))
    return Table(value["name"], value["source"], tuple(value["scopes"]), tuple(metrics), info or None)


@dataclass(slots=True)
class Encoder:
    """Frames to bytes; remembers which definitions the stream has."""

    _ids: dict[str, tuple[int, Table, tuple[Entity, ...]]] = field(default_factory=dict)
    _tables: dict[str, tuple[Table, dict[str, Any]]] = field(default_factory=dict)
    _count: int = 0

    def hello(self, **facts: Any) -> bytes:
        return pack_record(HELLO, json.dumps({"format": FORMAT, "version": VERSION, **facts}).encode())

    def encode(self, frame: Frame) -> bytes:
        """The frame's record, behind the definitions it needs."""
        records = []
        body = [_FRAME.pack(frame.sequence, frame.at_ns, frame.mono_ns, len(frame.blocks))]
        for block in frame.blocks:
            number, definition = self._define(block)
            records.append(definition)
            rows, columns = block.values.shape
            body += [
                _BLOCK.pack(number, block.mono_ns, rows, columns),
                np.ascontiguousarray(block.values, "<f8").tobytes(),
            ]
        body.append(_story_to_json(frame))
        return b"".join([*records, pack_record(FRAME, b"".join(body))])

    def _define(self, block: Block) -> tuple[int, bytes]:
        known = self._ids.get(block.table.name)
        if known and known[1] is block.table and known[2] is block.entities:
            return known[0], b""
        number = self._count
        self._count += 1
        self._ids[block.table.name] = (number, block.table, block.entities)
        content = {
            "table": self._describe(block.table),
            "entities": [_entity_to_json(e) for e in block.entities],
        }
        return number, pack_record(DEFINITION, struct.pack("<I", number) + json.dumps(content).encode())

    def _describe(self, table: Table) -> dict[str, Any]:
        """Sets of entities change often, tables hardly ever."""
        known, content = self._tables.get(table.name, (None, {}))
        if known is not table:
            content = _table_to_json(table)
            self._tables[table.name] = (table, content)
        return content


def _story_to_json(frame: Frame) -> bytes:
    outcomes = {name: [outcome.state, outcome.reason] for name, outcome in frame.outcomes.items()}
    events = [
        [
            event.kind,
            event.at_ns,
            event.scope,
            list(event.ids),
            list(map(list, event.labels)),
            dict(event.facts),
        ]
        for event in frame.events
    ]
    return json.dumps({"outcomes": outcomes, "events": events}).encode()


def _story_from_json(data: Payload) -> tuple[dict[str, Outcome], tuple[Event, ...]]:
    story = json.loads(bytes(data))
    outcomes = {name: Outcome(state, reason) for name, (state, reason) in story["outcomes"].items()}
    events = tuple(
        Event(kind, at_ns, scope, tuple(ids), _pairs(labels), facts)
        for kind, at_ns, scope, ids, labels, facts in story["events"]
    )
    return outcomes, events


@dataclass(slots=True)
class Decoder:
    """Bytes to frames."""

    hello: dict[str, Any] = field(default_factory=dict)
    _definitions: dict[int, tuple[Table, tuple[Entity, ...]]] = field(default_factory=dict)

    def decode(self, data: Payload) -> Iterator[Frame]:
        """
        Every whole frame; ArchiveTruncated at a record that was cut or damaged.

        The blocks look into the data they came from: a mapped file stays on
        disk until somebody touches a value.
        """
        for kind, payload in iterate_records(data):
            if kind == HELLO:
                self._greet(payload)
            elif kind == DEFINITION:
                self._learn(payload)
            elif kind == FRAME:
                yield self._frame(payload)

    def _greet(self, payload: Payload) -> None:
        self.hello = json.loads(bytes(payload))
        if self.hello.get("format") != FORMAT:
            raise ArchiveRefused("this is not a stream of nodescope frames")
        if self.hello["version"] > VERSION:
            raise ArchiveRefused(
                f"frames of version {self.hello['version']}; this build reads up to {VERSION}"
            )

    def _learn(self, payload: Payload) -> None:
        (number,) = struct.unpack_from("<I", payload)
        content = json.loads(bytes(payload[4:]))
        entities = tuple(_entity_from_json(entity) for entity in content["entities"])
        self._definitions[number] = (_table_from_json(content["table"]), entities)

    def _frame(self, payload: Payload) -> Frame:
        sequence, at_ns, mono_ns, count = _FRAME.unpack_from(payload)
        offset = _FRAME.size
        blocks = []
        for _ in range(count):
            number, block_mono_ns, rows, columns = _BLOCK.unpack_from(payload, offset)
            offset += _BLOCK.size
            size = rows * columns * 8
            values = np.frombuffer(payload, "<f8", rows * columns, offset).reshape(rows, columns)
            offset += size
            table, entities = self._definitions[number]
            blocks.append(Block(table, entities, values, block_mono_ns))
        outcomes, events = _story_from_json(payload[offset:])
        return Frame(sequence, at_ns, mono_ns, tuple(blocks), outcomes, events)


def iterate_records(data: Payload) -> Iterator[tuple[int, Payload]]:
    offset = 0
    while offset < len(data):
        if offset + _RECORD.size > len(data):
            raise ArchiveTruncated(f"record header cut short at byte {offset}")
        length, check, kind = _RECORD.unpack_from(data, offset)
        start = offset + _RECORD.size
        payload = data[start : start + length]
        if length > RECORD_BYTES or len(payload) < length:
            raise ArchiveTruncated(f"record cut short at byte {offset}")
        if zlib.crc32(payload, zlib.crc32(bytes([kind]))) != check:
            raise ArchiveTruncated(f"record damaged at byte {offset}")
        yield kind, payload
        offset = start + length
