"""
The archiver: takes frames from the tick, and never makes it wait.

`accept` puts a frame into a bounded queue and returns. A thread of its own
appends it to the log, syncs, rotates, and has closed segments turned into
Parquet by a child process or by the consolidator beside it.

When the disk is full, read-only or gone the archiver pauses: the rest of the
agent goes on, and every few seconds it tries again. Frames of the pause are
held as long as the ring holds them, whose blocks they are, and written when it
ends; only what is older is lost.
It creates the data folder only once: a folder that vanished may be a mount
that comes back, and nothing must be written to its mount point.
"""

import errno
import json
import queue
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from nodescope.base.clock import Clock
from nodescope.base.errors import ArchiveBusy
from nodescope.base.frame import Frame
from nodescope.base.log import Log
from nodescope.base.status import ArchiveStatus, CopyStatus
from nodescope.keep.archive_clock import ClockReading, read_clock
from nodescope.keep.check.quarantine import read_damage
from nodescope.keep.copy.copied_files import read_status
from nodescope.keep.disk import Disk, read_json
from nodescope.keep.folder import CLOSED, OPEN, DataFolder
from nodescope.keep.lock import FolderLock, is_free
from nodescope.keep.log_writer import LogWriter
from nodescope.keep.retention import RetentionLimits, read_free_bytes
from nodescope.keep.session import Session, write_session

log = Log("archive")

# A minute of ticks: longer than any fsync seen on a busy disk, and some MB.
QUEUE_FRAMES = 60
RETRY_NS = 5_000_000_000
# How often the converter is checked while no frame comes.
CHECK_SECONDS = 2.0
# A child that hangs on a dead disk is not waited for at the end.
STOP_SECONDS = 30.0
# Start-up, import and a large segment on a busy machine; a guess.
CHILD_NS = 600_000_000_000

REASONS = {
    errno.ENOSPC: "the disk of the archive is full",
    errno.EDQUOT: "the archive's disk quota is used up",
    errno.EROFS: "the archive's file system is read-only",
    errno.ENOENT: "the data folder is gone",
    errno.EACCES: "the data folder may not be written by this user",
    errno.EPERM: "the data folder may not be written by this user",
    errno.EIO: "the archive's disk fails",
}


@dataclass(frozen=True, slots=True)
class ArchivePlan:
    """The settings of the archiver."""

    rotation_seconds: float
    sync_seconds: float
    limits: RetentionLimits
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    hold_seconds: float = 120.0
    """Of a pause, as much is written later; not more than the ring holds, so that it costs no memory."""
    hold_bytes: int = 64 * 2**20


@dataclass(slots=True)
class Counts:
    """Since the start; under the names of ArchiveStatus."""

    frames: int = 0
    frames_lost: int = 0
    log_bytes: int = 0
    rows: int = 0
    parquet_bytes: int = 0
    archive_bytes: int = 0
    removed_bytes: int = 0
    failures: int = 0
    last_failure: str = ""


@dataclass(slots=True)
class Archiver:
    """A sink."""

    folder: DataFolder
    session: Session
    plan: ArchivePlan
    clock: Clock
    disk: Disk = field(default_factory=Disk)
    counts: Counts = field(default_factory=Counts)
    written_sequence: int = -1
    reason: str = ""
    _queue: queue.Queue[Frame | None] = field(default_factory=lambda: queue.Queue(QUEUE_FRAMES))
    _held: deque[Frame] = field(default_factory=deque)
    _held_bytes: int = 0
    _log_writer: LogWriter | None = None
    _number: int = 0
    _had_folder: bool = False
    _device: int | None = None
    _lock: FolderLock | None = None
    _stopping: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _child: subprocess.Popen[bytes] | None = None
    _child_mono_ns: int = 0
    _synced_mono_ns: int = 0
    _tried_mono_ns: int = 0
    _waiting_since_ns: int | None = None
    _wants_child: bool = True

    # -- the tick's side ----------------------------------------------------

    def accept(self, frame: Frame) -> None:
        try:
            self._queue.put_nowait(frame)
        except queue.Full:
            self.counts.frames_lost += 1

    def start(self) -> None:
        """Refuses at once when another agent has the folder; everything else is retried."""
        try:
            self._prepare()
        except OSError as error:
            self._pause(error)
        self._thread = threading.Thread(target=self._run, name="archive", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Writes what is queued, closes the segment, has it converted."""
        self._stopping.set()
        with suppress(queue.Full):
            # Nothing: only to be woken.
            self._queue.put_nowait(None)
        if self._thread:
            self._thread.join(timeout=STOP_SECONDS)

    def status(self) -> ArchiveStatus:
        oldest_ns = self._waiting_since_ns
        age_seconds = (self.clock.mono_ns() - oldest_ns) / 1e9 if oldest_ns is not None else 0.0
        damage = read_damage(self.folder)
        clock = read_clock(self.folder)
        return ArchiveStatus(
            data=str(self.folder.path),
            state="paused" if self.reason else "writing",
            reason=self.reason,
            written_sequence=self.written_sequence,
            frames_waiting=len(self._held),
            log_seconds=age_seconds,
            segments_waiting=self._count_waiting(),
            damaged_files=damage.set_aside,
            repaired_files=damage.repaired,
            last_damage=f"{damage.notes[-1].file}: {damage.notes[-1].reason}" if damage.notes else "",
            clock_step_seconds=clock.step_ms / 1000 if clock else 0.0,
            copy=self._copy_condition(),
            **asdict(self.counts),
        )

    def _copy_condition(self) -> CopyStatus | None:
        """From the file that the consolidator leaves after each pass."""
        status = read_status(self.folder)
        if status is None:
            return None
        oldest_ms = status.oldest_waiting_ms
        lag_ms = 0 if oldest_ms is None else self.clock.wall_ns() // 1_000_000 - oldest_ms
        figures = {
            name: value for name, value in asdict(status).items() if name in CopyStatus.__dataclass_fields__
        }
        return CopyStatus(max(0, lag_ms) / 1000, **figures)

    def _count_waiting(self) -> int:
        try:
            return sum(1 for _ in self.folder.wal.glob(f"*{CLOSED}"))
        except OSError:
            return 0

    # -- the thread ---------------------------------------------------------

    def _run(self) -> None:
        while not (self._stopping.is_set() and self._queue.empty()):
            try:
                frame = self._queue.get(timeout=CHECK_SECONDS)
            except queue.Empty:
                frame = None
            if frame:
                self._keep(frame)
            self._check()
        self._finish()

    def _keep(self, frame: Frame) -> None:
        self._hold(frame)
        if self.reason and frame.mono_ns - self._tried_mono_ns < RETRY_NS:
            return
        self._tried_mono_ns = frame.mono_ns
        self._write_held()

    def _write_held(self) -> None:
        """Oldest first; what cannot be written now stays."""
        try:
            while self._held:
                self._write(self._held[0])
                self._forget_oldest()
        except OSError as error:
            self._pause(error)
        except ArchiveBusy as error:
            self.reason = str(error)

    def _hold(self, frame: Frame) -> None:
        self._held.append(frame)
        self._held_bytes += size_of_frame(frame)
        longest_ns = round(self.plan.hold_seconds * 1e9)
        while len(self._held) > 1 and (
            frame.mono_ns - self._held[0].mono_ns > longest_ns or self._held_bytes > self.plan.hold_bytes
        ):
            self._forget_oldest()
            self.counts.frames_lost += 1

    def _forget_oldest(self) -> None:
        self._held_bytes -= size_of_frame(self._held.popleft())

    def _write(self, frame: Frame) -> None:
        if self.reason or self._lock is None:
            self._prepare()
        if self._log_writer and not self._log_writer.output.is_at_its_path():
            self._log_writer.output.close()
            self._log_writer = None
            raise FileNotFoundError(errno.ENOENT, "the open log was removed")
        if self._log_writer and self._log_writer.is_due(frame, round(self.plan.rotation_seconds * 1e9)):
            self._rotate()
        if self._log_writer is None:
            self._number += 1
            self._log_writer = LogWriter.begin(self.disk, self.folder, self._number, self._facts(), frame)
            self._waiting_since_ns = self._waiting_since_ns or frame.mono_ns
        self.counts.log_bytes += self._log_writer.append(frame)
        self.counts.frames += 1
        self.written_sequence = frame.sequence
        if self.reason:
            log.info("archive resumed", data=str(self.folder.path), frames_lost=self.counts.frames_lost)
            self.reason = ""

    def _facts(self) -> Mapping[str, Any]:
        return {
            "run": self.session.run_id,
            "node": self.session.node_name,
            "identifier": self.session.identifier,
            "include": self.plan.include,
            "exclude": self.plan.exclude,
        }

    def _prepare(self) -> None:
        """Folder, lock, session, what a crash left; at the start and after every pause."""
        if not self._had_folder:
            self.disk.make_folder(self.folder.path)
            self._had_folder = True
        if not self.folder.path.is_dir():
            raise FileNotFoundError(errno.ENOENT, "the data folder is gone")
        self._check_place()
        self._guard_space()
        self._take_lock()
        if not self.folder.wal.is_dir():
            self.disk.make_folder(self.folder.wal)
        if self._log_writer is None:
            for left in self.folder.wal.glob(f"*{OPEN}"):
                self.disk.rename(left, left.with_suffix(CLOSED))
        write_session(self.disk, self.folder, self.session)
        self._wants_child = True

    def _check_place(self) -> None:
        """A mount point whose mount is away is a folder, too: of another file system, and without our session."""
        device = self.folder.path.stat().st_dev
        if self._device not in (None, device) and not self.folder.session.exists():
            raise FileNotFoundError(errno.ENOENT, "its mount is away")
        self._device = device

    def _take_lock(self) -> None:
        if self._lock and self._lock.is_held_here():
            return
        if self._lock:
            self._lock.release()
        self._lock = None
        lock = FolderLock(self.folder.lock)
        if not lock.take(
            {"node": self.session.node_name, "run": self.session.run_id, "since": self.session.start_time}
        ):
            holder = read_json(self.folder.lock)
            raise ArchiveBusy(
                f"{self.folder.path} is written by the agent of node {holder.get('node', 'unnamed')} "
                f"(run {holder.get('run', 'unnamed')}, since {holder.get('since', 'a moment ago')}); "
                "stop that one, give --data another folder, or --no-archive"
            )
        self._lock = lock

    def _guard_space(self) -> None:
        """Writing stops at half of the free space that retention keeps: between the two it makes room."""
        least_bytes = self.plan.limits.free_bytes // 2
        if least_bytes and read_free_bytes(self.folder.path) < least_bytes:
            self._wants_child = True
            raise OSError(errno.ENOSPC, f"less than {least_bytes} bytes are free (retention_free_bytes)")

    def _pause(self, error: OSError) -> None:
        what = REASONS.get(error.errno or 0, "the archive cannot be written")
        if not self.reason:
            log.error("archive paused", data=str(self.folder.path), reason=what, error=str(error))
        self.reason = f"{what}: {error.strerror or error}; tried again every {RETRY_NS // 10**9} s"
        # What was written so far is whole; it is closed so that it becomes Parquet.
        with suppress(OSError):
            self._rotate()

    def _rotate(self) -> None:
        self._wants_child = True
        writer, self._log_writer = self._log_writer, None
        if writer:
            writer.close()

    def _check(self) -> None:
        now_ns = self.clock.mono_ns()
        if self._log_writer and now_ns - self._synced_mono_ns >= self.plan.sync_seconds * 1e9:
            self._synced_mono_ns = now_ns
            try:
                self._log_writer.sync()
                self._guard_space()
            except OSError as error:
                self._pause(error)
        self._check_child(now_ns)

    # -- the child ------------------------------------------------------------

    def _check_child(self, now_ns: int) -> None:
        if self._child is None:
            if self._wants_child:
                self._spawn(now_ns)
            return
        if self._child.poll() is None:
            if now_ns - self._child_mono_ns > CHILD_NS:
                self._child.kill()
            return
        self._note_child(self._child)
        self._child = None

    def _spawn(self, now_ns: int) -> None:
        """A converter, unless one works here already: a consolidator holds the lock for its life."""
        self._wants_child = False
        try:
            is_there = self.folder.wal.is_dir()
        except OSError:
            # Paused, and said so: the folder may not even be looked at.
            is_there = False
        if not is_there or not is_free(self.folder.converter_lock):
            self._waiting_since_ns = self._log_writer.first.mono_ns if self._log_writer else None
            return
        now_ms = self.clock.wall_ns() // 1_000_000
        clock = ClockReading(now_ms, self.clock.mono_ns(), self.session.boot_id)
        given = {"clock": asdict(clock), "limits": asdict(self.plan.limits)}
        command = [sys.executable, "-m", "nodescope.keep.convert", str(self.folder.path), json.dumps(given)]
        try:
            # A group of its own: Ctrl-C is for the agent, and the last
            # segment is worth finishing.
            self._child = subprocess.Popen(  # noqa: S603 - our own module
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, process_group=0
            )
            self._child_mono_ns = now_ns
        except OSError as error:
            self._fail(str(error))

    def _note_child(self, child: subprocess.Popen[bytes]) -> None:
        output = child.stdout.read() if child.stdout else b""
        if child.stdout:
            child.stdout.close()
        try:
            result = json.loads(output.splitlines()[-1])
        except (IndexError, ValueError):
            self._fail(f"the converter ended with code {child.returncode}")
            return
        counts = self.counts
        counts.rows += result["rows"]
        counts.parquet_bytes += result["bytes"]
        counts.removed_bytes += result["removed_bytes"]
        counts.archive_bytes = result["archive_bytes"]
        if result["failures"]:
            self._fail(result["failures"][0])
        else:
            self._waiting_since_ns = self._log_writer.first.mono_ns if self._log_writer else None

    def _fail(self, what: str) -> None:
        """Tried again at the next rotation; the log keeps what it has."""
        self.counts.failures += 1
        self.counts.last_failure = what
        log.warning("conversion failed", error=what)

    def _finish(self) -> None:
        self._write_held()
        self.counts.frames_lost += len(self._held)
        self._held.clear()
        try:
            self._rotate()
        except OSError as error:
            self._pause(error)
        self._wait_child()
        if not self.reason:
            self._spawn(self.clock.mono_ns())
            self._wait_child()
        if self._lock:
            self._lock.release()

    def _wait_child(self) -> None:
        if self._child is None:
            return
        try:
            self._child.wait(timeout=STOP_SECONDS / 2)
        except subprocess.TimeoutExpired:
            return
        self._note_child(self._child)
        self._child = None


def size_of_frame(frame: Frame) -> int:
    """Its numbers; names are shared with the frames around it."""
    return sum(block.values.nbytes for block in frame.blocks)
