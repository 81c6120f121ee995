"""
SIGKILL at random instants: python -m tests.torture.kills [SCALE].

Scale 1 is a thousand agents, one after the other in each of a few folders, and
with a third of them a consolidator; converters are killed as well, whatever
they are doing. Every tick that /live said is on disk must be in the archive
once, and in the end everything must be merged.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
from tests.integration.archive_agent import ArchiveAgent, sample_times
from tests.torture.result import TortureRow

from nodescope.keep.folder import DataFolder
from nodescope.read.files.catalog import read_catalog

KILLS = 1000
# At the same time, each in a folder of its own: an agent takes longer to start than it lives.
LANES = 2 * (os.cpu_count() or 1)
LONGEST_SECONDS = 1.5
METRIC = "cgroup.v2.memory.current"
PATIENCE_SECONDS = 120.0


def start_consolidator(data: Path) -> subprocess.Popen[bytes]:
    words = ["consolidate", "--data", str(data), "--once", "--no-retention"]
    return subprocess.Popen(
        [sys.executable, "-m", "nodescope", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def live_until_killed(data: Path, dice: random.Random, longest: float = LONGEST_SECONDS) -> set[int]:
    """One life of an agent; the times it said were on disk before it was killed."""
    agent = ArchiveAgent(data)
    seen: set[int] = set()
    cursor = "all--1"
    consolidator, children = None, []
    try:
        agent.wait_ready()
        consolidator = start_consolidator(data) if dice.random() < 0.3 else None
        end = time.monotonic() + dice.uniform(0.1, longest)
        while time.monotonic() < end:
            frames, cursor = agent.written_frames(cursor)
            seen |= sample_times(frames)
            time.sleep(0.02)
        children = agent.children()
    finally:
        agent.kill()
    if consolidator:
        consolidator.kill()
        consolidator.wait()
    for child in children:
        if dice.random() < 0.5:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
    return seen


def read_archived(data: Path) -> Counter[int]:
    """How often each time is served for one container of the node."""
    found: Counter[int] = Counter()
    # A connection of its own: the lanes ask at the same time.
    connection = duckdb.connect()
    for entry in read_catalog([data]).entries:
        rows = connection.execute(
            f"SELECT epoch_ms(time), count(*) FROM read_parquet('{entry.path}') WHERE metric_name = '{METRIC}' "
            f"AND l_container_id = (SELECT min(l_container_id) FROM read_parquet('{entry.path}') "
            f"WHERE metric_name = '{METRIC}') GROUP BY 1"
        ).fetchall()
        for time_ms, count in rows:
            found[time_ms] += count
    return found


def finish(data: Path) -> None:
    """
    What an agent's next start would do.

    A converter whose agent was killed goes on, and on a busy machine outlives
    the last agent's stop: until it has gone, a log may wait.
    """
    last = ArchiveAgent(data)
    last.wait_ready()
    last.stop()
    words = [sys.executable, "-m", "nodescope.keep.convert", str(data)]
    deadline = time.monotonic() + PATIENCE_SECONDS
    while list(DataFolder(data).wal.glob("*.log")):
        assert time.monotonic() < deadline, "a log was never converted"
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


@dataclass
class KillTally:
    """What one folder, or all of them, came to."""

    kills: int = 0
    ticks: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)


def run_lane(data: Path, kills: int, seed: int) -> KillTally:
    dice = random.Random(seed)
    tally = KillTally(kills)
    seen: set[int] = set()
    try:
        for _ in range(kills):
            seen |= live_until_killed(data, dice)
        finish(data)
        start_consolidator(data).wait(PATIENCE_SECONDS)
    except (AssertionError, subprocess.SubprocessError, OSError) as error:
        tally.stuck.append(f"seed {seed}: {error}")
    found = read_archived(data)
    tally.ticks = len(seen)
    missing = sorted(seen - set(found))
    twice = [time_ms for time_ms, count in found.items() if count > 1]
    tally.lost += [f"seed {seed}: {len(missing)} ticks, the first at {missing[0]}"] if missing else []
    tally.doubled += [f"seed {seed}: {len(twice)} ticks, the first at {min(twice)}"] if twice else []
    return tally


def run(scale: float = 1.0) -> list[TortureRow]:
    each = max(1, round(KILLS * scale / LANES))
    with tempfile.TemporaryDirectory(prefix="nodescope-kills-") as text, ThreadPoolExecutor(LANES) as pool:
        lanes = list(pool.map(lambda lane: run_lane(Path(text) / str(lane), each, lane), range(LANES)))
    kills, ticks = sum(one.kills for one in lanes), sum(one.ticks for one in lanes)
    what = f"{ticks} ticks that the agent said were written"
    return [
        judge(kills, "ticks lost", [line for one in lanes for line in one.lost], what),
        judge(kills, "ticks twice", [line for one in lanes for line in one.doubled]),
        judge(kills, "folders stuck", [line for one in lanes for line in one.stuck]),
    ]


def judge(kills: int, figure: str, found: list[str], remark: str = "") -> TortureRow:
    remarks = "; ".join(filter(None, [*found[:3], remark]))
    return TortureRow(f"{kills} kills of real agents", figure, str(len(found)), "0", not found, remarks)


if __name__ == "__main__":
    for one in run(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0):
        print(one.render())
