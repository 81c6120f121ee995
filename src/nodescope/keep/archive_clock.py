"""
The time that retention counts ages against: it never runs faster than time passes.

    DATA/clock.json   the time of the last pass, the monotonic clock then, and of which boot

A wall clock that is ahead of the time that passed since may be wrong, and a
file that was removed does not come back. So ages are counted by whichever
says less: the wall clock, or the time of the last pass and what passed since
by the monotonic clock. Before the first pass it is the newest sample. A step
is believed when the clock has been steady since: for an hour, or for a day
where the step is a day or more. After a step ahead a pass removes only a
share of the files. Both are said before.

Samples that were taken while the clock was behind have names of the past.
Their age is known by the monotonic clock while the machine has not been
started again, and it is that age which counts.
"""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from nodescope.base.errors import ArchiveRefused
from nodescope.base.log import Log
from nodescope.base.time_range import render_moment
from nodescope.keep.disk import Disk, may_be_there, read_json
from nodescope.keep.folder import MS_PER_DAY, MS_PER_HOUR, ArchiveFile, DataFolder

log = Log("retention")
# Below this a clock is disciplined, not stepped.
STEP_MS = 1000
# Of all files, in a pass after a step that was believed.
SHARE_AFTER_STEP = 0.05


@dataclass(frozen=True, slots=True)
class ClockReading:
    """Both clocks at one moment."""

    wall_ms: int
    mono_ns: int
    boot_id: str
    """Empty where the system does not tell: then nothing is known beyond the last pass."""


@dataclass(frozen=True, slots=True)
class ClockState:
    """What clock.json has."""

    now_ms: int
    """Counted on by the monotonic clock."""
    mono_ns: int
    boot_id: str
    step_ms: int = 0
    """How far the wall clock is ahead of it (or behind) and not believed."""
    step_mono_ns: int = 0
    """Since when."""
    is_after_step: bool = False
    """A step was believed, and what is older now has not all been removed yet."""


@dataclass(frozen=True, slots=True)
class ArchiveTime:
    """What a pass of retention goes by."""

    now_ms: int
    share: float = 1.0
    """Of the files, at most in this pass for age."""
    reading: ClockReading | None = None


def clock_path(folder: DataFolder) -> Path:
    return folder.path / "clock.json"


def read_clock(folder: DataFolder) -> ClockState | None:
    content = read_json(clock_path(folder))
    known = {name: value for name, value in content.items() if name in ClockState.__dataclass_fields__}
    try:
        return ClockState(**known)
    except TypeError:
        return None


def take_time(disk: Disk, folder: DataFolder, reading: ClockReading) -> ArchiveTime:
    """The time of this pass; noted for the next one."""
    before = read_clock(folder) or guess_state(folder, reading)
    state = judge_step(before, reading)
    say(before, state)
    try:
        write_clock(disk, folder, state)
    except OSError as error:
        # A full disk: what must leave may leave all the same.
        log.warning("the time of this pass could not be noted", error=str(error))
    share = SHARE_AFTER_STEP if state.is_after_step else 1.0
    return ArchiveTime(min(reading.wall_ms, state.now_ms), share, reading)


def write_clock(disk: Disk, folder: DataFolder, state: ClockState) -> None:
    disk.write_whole(clock_path(folder), (json.dumps(asdict(state)) + "\n").encode())


def guess_state(folder: DataFolder, reading: ClockReading) -> ClockState:
    """
    No pass has been noted: the newest sample is the last that is known.

    Where the note is there and cannot be read, the newest sample may be of a clock that was ahead, and
    the oldest counts: nothing is removed for its age until the clock has been steady.
    """
    ends = [file.to_ms or file.from_ms for file in folder.files()]
    if may_be_there(clock_path(folder)):
        return replace(begin(reading), now_ms=min([reading.wall_ms, *ends]))
    newest_ms = max(ends, default=reading.wall_ms)
    # A fresh file's name has no end, and is converted after a rotation.
    is_near = 0 <= reading.wall_ms - newest_ms <= MS_PER_HOUR
    return replace(begin(reading), now_ms=reading.wall_ms if is_near else min(reading.wall_ms, newest_ms))


def begin(reading: ClockReading) -> ClockState:
    return ClockState(reading.wall_ms, reading.mono_ns, reading.boot_id)


def judge_step(before: ClockState, reading: ClockReading) -> ClockState:
    is_same_boot = bool(reading.boot_id) and before.boot_id == reading.boot_id
    passed_ms = max(0, reading.mono_ns - before.mono_ns) // 1_000_000 if is_same_boot else 0
    expected_ms = before.now_ms + passed_ms
    step_ms = reading.wall_ms - expected_ms
    state = replace(begin(reading), now_ms=expected_ms, is_after_step=before.is_after_step)
    if abs(step_ms) <= STEP_MS:
        return replace(state, now_ms=reading.wall_ms)
    is_steady = is_same_boot and bool(before.step_ms) and abs(step_ms - before.step_ms) <= STEP_MS
    since_ns = before.step_mono_ns if is_steady else reading.mono_ns
    wait_ms = MS_PER_HOUR if abs(step_ms) < MS_PER_DAY else MS_PER_DAY
    if (reading.mono_ns - since_ns) // 1_000_000 >= wait_ms:
        return replace(begin(reading), is_after_step=step_ms > 0)
    return replace(state, step_ms=step_ms, step_mono_ns=since_ns)


def say(before: ClockState, state: ClockState) -> None:
    """A step when it is first seen, and when it is believed: before anything is removed for it."""
    if state.step_ms and abs(state.step_ms - before.step_ms) > STEP_MS:
        log.warning(
            "the clock was stepped; ages are counted without the step until the clock has been steady",
            seconds=state.step_ms // 1000,
            counted_from=render_moment(state.now_ms),
        )
    if before.step_ms and not state.step_ms:
        log.warning(
            "the clock has been steady since its step, or went back; ages are counted by it",
            seconds=before.step_ms // 1000,
            share_of_files=SHARE_AFTER_STEP if state.is_after_step else 1.0,
        )


def end_of_step(disk: Disk, folder: DataFolder) -> None:
    """A pass found no more than its share: the next one need not be limited."""
    state = read_clock(folder)
    if state and state.is_after_step:
        write_clock(disk, folder, replace(state, is_after_step=False))


# -- ages by the monotonic clock -----------------------------------------------------


def true_end_ms(folder: DataFolder, file: ArchiveFile, end_ms: int, time: ArchiveTime) -> int:
    """When its newest sample was taken; by its name where the monotonic clock cannot tell."""
    reading = time.reading
    if reading is None or not reading.boot_id:
        return end_ms
    try:
        ages_ns = [
            reading.mono_ns - mono_ns
            for run, mono_ns in newest_moments(file).items()
            if boot_of(folder, run) == reading.boot_id
        ]
    except (ArchiveRefused, OSError, ValueError):
        return end_ms
    return max(end_ms, time.now_ms - min(ages_ns) // 1_000_000) if ages_ns else end_ms


def newest_moments(file: ArchiveFile) -> dict[str, int]:
    """By run the monotonic time of its last sample; of a rollup 0, which is the start of the machine."""
    if file.kind == "minute":
        from nodescope.keep.rollup import read_rollup_segments  # noqa: PLC0415 - Arrow

        return dict.fromkeys(read_rollup_segments(file.path), 0)
    from nodescope.keep.sidecar import read_sidecar  # noqa: PLC0415 - the agent has no zstd

    ticks = read_sidecar(file.sidecar).ticks
    return {
        run: int(ticks.mono_ns[ticks.run == place].max())
        for place, run in enumerate(ticks.runs)
        if (ticks.run == place).any()
    }


def boot_of(folder: DataFolder, run: str) -> str:
    """Of the machine, when this run of the agent wrote here; empty where it is not known."""
    current = read_json(folder.session)
    session = current if current.get("run_id") == run else read_json(folder.sessions / f"{run}.json")
    return str(session.get("boot_id", ""))
