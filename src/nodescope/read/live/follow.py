"""
Frames as they come: followed in the log of a data folder, or fetched from an agent.

A feed remembers how far it has read, so that a second later only a second is
read. What two feeds both have, and what the archive has already, is taken once.
"""

import mmap
import ssl
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from nodescope.base.block import Block
from nodescope.base.codec import Decoder
from nodescope.base.entity import Entity
from nodescope.base.errors import ArchiveRefused, ArchiveTruncated, HttpFailed
from nodescope.base.frame import Frame
from nodescope.base.log import Log
from nodescope.keep.folder import DataFolder
from nodescope.keep.label_columns import Identity, identify_entity
from nodescope.keep.packed.log_unpacker import LogUnpacker
from nodescope.read.files.catalog import Catalog
from nodescope.read.live.tail import LiveTail, build_tail, newest_by_run
from nodescope.serve.http_client import HttpClient, parse_endpoint

log = Log("read")
# A chart waits no longer for an agent that is silent.
SILENCE_SECONDS = 2.0
# For a whole answer; the largest takes some seconds.
ANSWER_SECONDS = 20.0
# An agent's ring holds two minutes; until its log becomes Parquet more may come.
AGENT_SECONDS = 300.0
# A consolidator comes every ten minutes at the latest, and an open segment is 90 s long.
LOG_SECONDS = 720.0
# Kept however old they are: the log of a machine that was suspended has minutes that are hours apart.
FRAMES_LEAST = 300
# Two minutes of 5,000 containers are some 400 MB; nothing of ours is larger.
ANSWER_BYTES = 512 * 2**20
# An agent sends a MiB at once: the whole ring of a large node is some hundred answers.
ANSWERS_MOST = 200
ALL = "all--1"
# A log that did not grow for so long: two ticks and a half.
QUIET_NS = 2_500_000_000
# An agent that did not answer holds up every look; where a log is followed it is asked less often.
AGAIN_NS = 5_000_000_000


@dataclass(slots=True)
class FrameStream:
    """One run of an agent: its frames by number."""

    node: str
    frames: dict[int, Frame] = field(default_factory=dict)
    seconds: float = LOG_SECONDS
    """How far back from the newest; ten frames or one may be in each."""

    def add(self, frames: Iterable[Frame]) -> None:
        self.frames.update({frame.sequence: frame for frame in frames})
        last = {number: self.frames[number] for number in sorted(self.frames)[-FRAMES_LEAST:]}
        self.frames = self._since(self.seconds) | last

    def newest(self, seconds: float) -> "FrameStream":
        return FrameStream(self.node, self._since(seconds), self.seconds)

    def _since(self, seconds: float) -> dict[int, Frame]:
        newest_ns = max((frame.mono_ns for frame in self.frames.values()), default=0)
        oldest_ns = newest_ns - round(seconds * 1e9)
        return {number: frame for number, frame in self.frames.items() if frame.mono_ns > oldest_ns}


Streams = dict[str, FrameStream]


@dataclass(slots=True)
class Followed:
    """A log file and how far it was read."""

    decoder: Decoder = field(default_factory=Decoder)
    unpacker: LogUnpacker = field(default_factory=LogUnpacker)
    offset: int = 0
    size_bytes: int = 0
    """When it was last looked at; more than was read where a record is torn."""
    frames: list[Frame] = field(default_factory=list)


@dataclass(slots=True)
class LogFeed:
    """The log beside an archive on this machine."""

    data: Path
    _files: dict[str, Followed] = field(default_factory=dict)

    def poll(self) -> None:
        """What was appended since; a segment that became Parquet is forgotten."""
        folder = DataFolder(self.data)
        there: dict[str, Followed] = {}
        for path in folder.segments():
            # .open becomes .log when it is closed: the same bytes.
            followed = self._files.get(path.stem) or Followed()
            try:
                follow(path, followed)
            except (OSError, ArchiveRefused, KeyError, ValueError, TypeError, struct.error, RecursionError):
                # Gone meanwhile, or not ours: the agent says so where it is its own.
                continue
            there[path.stem] = followed
        self._files = there

    @property
    def is_followed(self) -> bool:
        """Whether there is a log at all: a copy of an archive has none."""
        return bool(self._files)

    def has_grown(self) -> bool:
        """Whether something was written since; costs a look at the folder, nothing is read."""
        if not self._files:
            return False
        try:
            sizes = {path.stem: path.stat().st_size for path in DataFolder(self.data).segments()}
        except OSError:
            # A segment became Parquet at this moment.
            return True
        return sizes != {stem: followed.size_bytes for stem, followed in self._files.items()}

    def newest_number(self, run: str) -> int:
        """Of the last frame of a run; -1 where the log has none of it."""
        mine = (
            followed.frames[-1].sequence
            for followed in self._files.values()
            if followed.frames and followed.decoder.hello.get("run") == run
        )
        return max(mine, default=-1)

    def streams(self) -> Streams:
        found: Streams = {}
        for followed in self._files.values():
            hello = followed.decoder.hello
            if followed.frames:
                run, node = str(hello.get("run", "")), str(hello.get("node", ""))
                found.setdefault(run, FrameStream(node)).add(followed.frames)
        return found


def follow(path: Path, followed: Followed) -> None:
    """Reads on where it ended; a record that is still being written is left for the next time, a damaged one out."""
    with path.open("rb") as file:
        size = followed.size_bytes = file.seek(0, 2)
        if size <= followed.offset:
            return
        mapped = memoryview(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ))
    rest = mapped[followed.offset :]
    known = len(followed.decoder.lost)
    try:
        followed.frames.extend(followed.decoder.decode(rest, followed.unpacker.iterate))
        followed.offset = size
    except ArchiveTruncated as error:
        followed.offset += error.offset
    for lost in followed.decoder.lost[known:]:
        log.warning("record of the log not read", log=path.name, record=lost)


@dataclass(slots=True)
class AgentFeed:
    """An agent's /live, from a cursor on."""

    address: str
    token: str = ""
    tls: ssl.SSLContext | None = None
    reason: str = ""
    """Why the last answer could not be had; empty when it could."""
    _client: HttpClient | None = None
    _cursor: str = ALL
    _streams: Streams = field(default_factory=dict)
    _entities: dict[str, tuple[Entity, ...]] = field(default_factory=dict)
    _logged: int = -1
    _logged_mono_ns: int = 0
    """The newest frame of its run that a log had, and when that was seen first."""
    _asked_mono_ns: int = 0

    def is_due(self, logs: Sequence[LogFeed], mono_ns: int) -> bool:
        """
        Whether to ask: not where a log beside the archive tells the same as it comes.

        An agent on a busy machine may take seconds to answer; its log is
        written before that. Judged by what is new here, not by clocks: the
        folder may be another machine's.
        """
        newest = max((log.newest_number(run) for log in logs for run in self._streams), default=-1)
        if newest != self._logged:
            self._logged, self._logged_mono_ns = newest, mono_ns
        if newest >= 0 and mono_ns - self._logged_mono_ns < QUIET_NS:
            self._leave_to_log()
            return False
        if self.reason and mono_ns - self._asked_mono_ns < AGAIN_NS and any(log.is_followed for log in logs):
            return False
        self._asked_mono_ns = mono_ns
        return True

    def _leave_to_log(self) -> None:
        """Its frames are those of the log; where the log falls silent, the cursor leads on."""
        self.reason = ""
        self._streams = {
            run: FrameStream(one.node, seconds=AGENT_SECONDS) for run, one in self._streams.items()
        }

    def poll(self) -> None:
        """All that the agent has and we have not."""
        for _ in range(ANSWERS_MOST):
            if not self._poll_once():
                return

    def _poll_once(self) -> bool:
        """Whether there is more already."""
        try:
            body, self._cursor, more = self._fetch()
        except HttpFailed as error:
            self.reason = f"the agent at {self.address} did not answer: {error.reason.lower()}"
            return False
        decoder = Decoder()
        frames: list[Frame] = []
        try:
            frames.extend(decoder.decode(body))
        except ArchiveTruncated:
            # The answer was cut; its whole frames are good.
            pass
        except (ArchiveRefused, KeyError, ValueError, TypeError, struct.error, RecursionError):
            self.reason = f"{self.address} is not an agent of ours, or newer than this viewer"
            return False
        self.reason = ""
        run, node = str(decoder.hello.get("run", "")), str(decoder.hello.get("node", ""))
        if run not in self._streams:
            # Another run: the agent was started again; its log has the rest.
            self._streams = {run: FrameStream(node, seconds=AGENT_SECONDS)}
        self._streams[run].add(self._same_sets(frame) for frame in frames)
        return more and bool(frames)

    def _fetch(self) -> tuple[bytes, str, bool]:
        if self._client is None:
            endpoint = parse_endpoint(self.address, self.tls)
            self._client = HttpClient(
                endpoint, ANSWER_SECONDS, ANSWER_BYTES, SILENCE_SECONDS, silence_seconds=SILENCE_SECONDS
            )
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        answer = self._client.read(f"/live?since={self._cursor}", headers)
        cursor = answer.headers.get("Nodescope-Cursor") or ALL
        return answer.body, cursor, answer.headers.get("Nodescope-More") == "true"

    def _same_sets(self, frame: Frame) -> Frame:
        """Every answer defines its sets anew; equal ones become one object again."""
        return replace(frame, blocks=tuple(self._same_set(block) for block in frame.blocks))

    def _same_set(self, block: Block) -> Block:
        known = self._entities.get(block.table.name)
        if known != block.entities:
            self._entities[block.table.name] = block.entities
            return block
        return replace(block, entities=known)

    def streams(self) -> Streams:
        return self._streams


def join_streams(many: Iterable[Streams]) -> Streams:
    joined: Streams = {}
    for streams in many:
        for run, stream in streams.items():
            joined.setdefault(run, FrameStream(stream.node)).add(stream.frames.values())
    return joined


def make_tail(streams: Mapping[str, FrameStream], catalog: Catalog) -> LiveTail:
    """Frames behind the archive."""
    ordered = [
        (run, stream.node, [frame for _, frame in sorted(stream.frames.items())])
        for run, stream in streams.items()
    ]
    return build_tail(ordered, newest_by_run(catalog))


def last_sights(tail: LiveTail) -> dict[Identity, int]:
    """When each series of the tail was last measured."""
    found: dict[Identity, int] = {}
    for day in tail.days:
        for track in day.tracks.values():
            last: dict[int, tuple[Block, int]] = {}
            for time_ms, block in zip(track.time_ms, track.blocks):
                last[id(block.entities)] = (block, time_ms)
            for block, time_ms in last.values():
                for entity in block.entities:
                    identity = identify_entity(entity, tail.node)
                    found[identity] = max(found.get(identity, 0), time_ms)
    return found
