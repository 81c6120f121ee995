"""
Random flips of single bits over all kinds of files: python -m tests.torture.bit_flips [SCALE].

Scale 1 is ten thousand flips. A round flips one bit in each of about half of
the files of an archive. Readers are asked before and after a pass of the
consolidator: every value they give must be the one that was written, what is
missing must be named with its file, and in the end all files must be merged,
copied and removed by retention as ever.
"""

import math
import random
import shutil
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.keep.frames import CURRENT, LOAD, USAGE, frames, read_log_tail, write_log
from tests.support import TurnableClock
from tests.torture.result import TortureRow

from nodescope.base.log import set_up_logging
from nodescope.keep.check.quarantine import read_damage
from nodescope.keep.consolidator import Consolidator
from nodescope.keep.convert import convert_all
from nodescope.keep.copy.copier import Copier
from nodescope.keep.copy.object_store import open_store
from nodescope.keep.disk import Disk
from nodescope.keep.folder import SIDECAR, SUM, DataFolder
from nodescope.keep.retention import RetentionLimits, apply_retention
from nodescope.keep.rollup import MEAN_DIGITS
from nodescope.keep.sidecar import read_sidecar
from nodescope.read.files.catalog import read_catalog
from nodescope.read.query.engine import Engine

FLIPS = 10_000
FRAMES = 40
# Long after every sample of these tests.
LATER_MS = 1_772_366_340_000 + 90 * 86_400_000
# Copying and retention in each so many rounds: they are the same code every time.
COPY_EVERY = 10
FLIP_SHARE = 0.5
# As they are; buckets of two minutes, from rollups where there are some.
SAMPLES, MINUTES = 2**40, 2
ENGINE = Engine()
Values = dict[tuple[object, ...], float]


@dataclass
class Tally:
    """What all rounds found."""

    flips: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    unnamed: list[str] = field(default_factory=list)
    held_up: list[str] = field(default_factory=list)
    frames_lost: int = 0
    more_lost: int = 0
    repaired: int = 0


def build(folder: DataFolder) -> None:
    """A merged file with its rollup, four fresh files, and a closed log."""
    for segment in (1, 2):
        write_log(folder, frames(FRAMES, (segment - 1) * FRAMES), segment=segment)
    convert_all(Disk(), folder)
    Consolidator(Disk(), folder, 2).run_pass(LATER_MS)
    for segment in range(3, 7):
        write_log(folder, frames(FRAMES, (segment - 1) * FRAMES), segment=segment)
    convert_all(Disk(), folder)
    write_log(folder, frames(FRAMES, 6 * FRAMES), segment=7)


def list_kinds(folder: DataFolder) -> dict[Path, str]:
    samples = [file.path for file in folder.files()]
    rollups = [file.path for file in folder.rollup.files()]
    return {
        **dict.fromkeys(samples, "parquet"),
        **{path.with_suffix(SIDECAR): "sidecar" for path in samples},
        **dict.fromkeys(rollups, "rollup"),
        **{path.with_suffix(SUM): "rollup" for path in rollups},
        **dict.fromkeys(folder.closed_segments(), "log"),
    }


def flip(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


def read_all(folder: DataFolder) -> tuple[Values, list[str]]:
    """Every sample and minute that readers give, with its names; and what they say they could not read."""
    catalog = read_catalog([folder.path])
    tail = read_log_tail(folder.path, catalog)
    values: Values = {}
    refused = [one.reason for one in catalog.refusals]
    for metric in (CURRENT, USAGE, LOAD):
        for points in (SAMPLES, MINUTES):
            if metric.name not in {**catalog.metrics, **tail.metrics}:
                continue
            answer = ENGINE.query(catalog, metric.name, None, max_points=points, rate="off", tail=tail)
            refused += answer.refused
            for line in answer.lines:
                key = (metric.name, points, answer.asked.unit, *line.subject.labels)
                pairs = zip(line.points.time_ms.tolist(), line.points.mean.tolist())
                values |= {(*key, time): value for time, value in pairs}
    return values, refused


def differ(key: tuple[object, ...], one: float, other: float) -> bool:
    """Samples to the last bit; a mean is rounded to a part of its minute's span (decision 0109), once for each file."""
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) != math.isnan(other)
    return one != other if key[1] == SAMPLES else not math.isclose(one, other, rel_tol=2 * 2.0**-MEAN_DIGITS)


def run_round(base: Path, place: Path, truth: Values, number: int, tally: Tally) -> None:
    chance = random.Random(number)
    shutil.copytree(base, place)
    folder = DataFolder(place)
    owners = Owners(folder)
    for path, kind in list_kinds(folder).items():
        if chance.random() < FLIP_SHARE:
            flip(path, chance)
            tally.flips[kind] += 1
    judge(f"round {number}, before", *read_all(folder), truth, owners, tally)
    report = Consolidator(Disk(), folder, 2).run_pass(LATER_MS)
    damage = read_damage(folder)
    tally.repaired += damage.repaired
    found, refused = read_all(folder)
    named = [*refused, *report.refused, *(note.file for note in damage.notes)]
    lost = judge(f"round {number}, after", found, named, truth, owners, tally)
    tally.frames_lost += min(lost, 1)
    tally.more_lost += max(0, lost - 1)
    if [file.kind for file in folder.files()] != ["consolidated"]:
        tally.held_up.append(f"round {number}: not merged: {[file.path.name for file in folder.files()]}")
    if number % COPY_EVERY == 0:
        copy_and_remove(folder, place.with_name(f"{place.name}-store"), number, tally)


class Owners:
    """Which file holds a moment."""

    def __init__(self, folder: DataFolder) -> None:
        heads = [read_sidecar(file.sidecar).head for file in folder.files()]
        self._spans = {file.path.stem: head for file, head in zip(folder.files(), heads)}

    def of(self, time_ms: int) -> str:
        """Its name without a suffix; `wal` for what is in the log only."""
        inside = (stem for stem, head in self._spans.items() if head.from_ms <= time_ms <= head.to_ms)
        return next(inside, "wal")


def judge(when: str, found: Values, named: list[str], truth: Values, owners: Owners, tally: Tally) -> int:
    """Notes what is wrong, and what is missing without being named; how many moments are missing."""
    missing = {int(str(key[-1])) for key in truth if key not in found and key[1] == SAMPLES}
    for key, value in found.items():
        # The mean over a minute of which samples are missing, and named, is another one.
        if missing and key[1] == MINUTES:
            continue
        if key not in truth or differ(key, truth[key], value):
            tally.wrong.append(f"{when}: {key} is {value}, was {truth.get(key)}")
    for stem in {owners.of(time_ms) for time_ms in missing}:
        # Readers log a lost record of the log; it is in the list after its conversion.
        if not any(stem in text for text in named) and not (stem == "wal" and "before" in when):
            tally.unnamed.append(f"{when}: samples of {stem} are missing; named: {named}")
    return len(missing)


def copy_and_remove(folder: DataFolder, store: Path, number: int, tally: Tally) -> None:
    open_store(store.as_uri()).set_up()
    clock = TurnableClock(LATER_MS * 1_000_000, 0)
    copied = Copier(Disk(), folder, open_store(store.as_uri()), clock).run_pass(everything=True)
    if copied.failures or copied.waiting:
        tally.held_up.append(f"round {number}: not copied: {copied.failures}")
    apply_retention(Disk(), folder, RetentionLimits(1.0, 0, 0, 1.0), LATER_MS)
    if len(list(folder.files())) != 1 or list(folder.rollup.files()):
        tally.held_up.append(f"round {number}: not removed")


def run(scale: float = 1.0) -> list[TortureRow]:
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="nodescope-flips-") as text:
        place = Path(text)
        build(DataFolder(place / "base"))
        truth, refused = read_all(DataFolder(place / "base"))
        assert truth
        assert not refused
        number = 0
        while tally.flips.total() < FLIPS * scale:
            run_round(place / "base", place / str(number), truth, number, tally)
            shutil.rmtree(place / str(number))
            shutil.rmtree(place / f"{number}-store", ignore_errors=True)
            number += 1
    return render(tally)


def render(tally: Tally) -> list[TortureRow]:
    what = ", ".join(f"{number} {kind}" for kind, number in tally.flips.items())
    return [
        row("values silently wrong", tally.wrong, f"{tally.flips.total()} flips: {what}"),
        row("values missing and not named", tally.unnamed),
        row("files not merged, copied or removed by retention", tally.held_up),
        TortureRow(
            "bit flips",
            "frames lost beyond one for a flip",
            str(tally.more_lost),
            "0",
            tally.more_lost == 0,
            f"{tally.frames_lost} frames lost, of {tally.flips['log']} flips in logs; {tally.repaired} files repaired",
        ),
    ]


def row(figure: str, found: list[str], remark: str = "") -> TortureRow:
    return TortureRow(
        "bit flips", figure, str(len(found)), "0", not found, "; ".join(filter(None, [*found[:3], remark]))
    )


if __name__ == "__main__":
    set_up_logging("error")
    for one in run(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0):
        print(one.render())
