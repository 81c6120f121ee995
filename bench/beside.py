"""
What this tree's agent costs beside that of an earlier commit: all run at once, on the same containers.

    python -m bench beside --against b8e8fba --containers 100 --seconds 180

One after the other would compare two hours of the machine rather than two agents. Two of each run, so that the
difference between equal ones is seen beside the difference that is looked for; each is scraped every 10 s and
keeps an archive. CPU is user + system, from the fifteenth second on. Ours also runs with `cgroup_levels`,
the one family that is off by default, with and without the watcher, which an earlier commit may not have.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from tests.integration.peers.servers import Server, agent_command, free_port, program_running

from bench.node import PROCESSES, containers
from bench.result import Goal, Options, Row

ROOT = Path(__file__).parents[1]
WARM_UP_SECONDS = 15.0
SCRAPE_SECONDS = 10.0
# What all families of node_exporter and cAdvisor together may add.
GOAL_RATIO = 1.05


@dataclass(frozen=True)
class Contender:
    name: str
    sources: Path
    environment: tuple[tuple[str, str], ...] = ()
    words: tuple[str, ...] = ()


LEVELS = (("NODESCOPE_CGROUP_LEVELS", "true"),)
UNWATCHED = ("--no-watch",)


def run(options: Options) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        earlier = unpack(options.against, Path(folder))
        ours = ROOT / "src"
        contenders = (
            Contender("earlier", earlier),
            Contender("ours", ours),
            Contender("earlier, again", earlier),
            Contender("ours, again", ours),
            Contender("ours, cgroup_levels", ours, LEVELS),
            Contender("ours, no watcher", ours, (), UNWATCHED),
            Contender("ours, cgroup_levels, no watcher", ours, LEVELS, UNWATCHED),
        )
        return [row for count in options.containers for row in compare(count, contenders, options)]


def unpack(commit: str, folder: Path) -> Path:
    """The sources of a commit, with its own native reader."""
    git = ["git", "-C", str(ROOT)]
    wanted = ("src", "native", "hatch_build.py")
    packed = subprocess.run([*git, "archive", commit, *wanted], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    if subprocess.run([*git, "diff", "--quiet", commit, "--", "native"], check=False).returncode:
        # Its own list of sources and flags.
        build = "import pathlib, sys, hatch_build; sys.exit(hatch_build.build_native(pathlib.Path()) or 0)"
        environment = {**os.environ, "PYTHONPATH": str(folder)}
        subprocess.run([sys.executable, "-c", build], cwd=folder, env=environment, check=True)
    else:
        for library in (ROOT / "src" / "nodescope").glob("_native*.so"):
            shutil.copy(library, folder / "src" / "nodescope")
    return folder / "src"


def compare(count: int, contenders: Sequence[Contender], options: Options) -> list[Row]:
    with containers(count), contextlib.ExitStack() as stack:
        servers = [stack.enter_context(running(one)) for one in contenders]
        time.sleep(WARM_UP_SECONDS)
        cores = measure(servers, options.seconds)
    found = dict(zip((one.name for one in contenders), cores))
    earlier = (found["earlier"] + found["earlier, again"]) / 2
    ours = (found["ours"] + found["ours, again"]) / 2
    what, against = f"{count} containers x {PROCESSES} processes", options.against
    remark = f"equal ones differ by {spread(found):.1%}"
    return [
        Row(f"{what}: CPU", ours, "core", earlier, against, Goal(GOAL_RATIO, "ratio"), remark),
        *(
            Row(f"{what}: CPU of {name}", found[name], "core", earlier, against)
            for name in (one.name for one in contenders)
            if "," in name and not name.endswith("again")
        ),
    ]


def spread(found: dict[str, float]) -> float:
    return max(abs(found[name] / found[f"{name}, again"] - 1) for name in ("earlier", "ours"))


@contextlib.contextmanager
def running(contender: Contender) -> Iterator[Server]:
    port = free_port()
    environment = {**os.environ, "PYTHONPATH": str(contender.sources), **dict(contender.environment)}
    with (
        tempfile.TemporaryDirectory() as data,
        program_running(
            "nodescope", [*agent_command(port, Path(data)), *contender.words], port, environment
        ) as server,
    ):
        yield server


def measure(servers: Sequence[Server], seconds: float) -> list[float]:
    """Cores of each; scraped in turns, each first as often as the others."""
    before, start, turn = [server.cpu_seconds() for server in servers], time.monotonic(), 0
    while time.monotonic() < start + seconds:
        for place in range(len(servers)):
            servers[(place + turn) % len(servers)].fetch("gzip")
        turn += 1
        time.sleep(max(0.0, start + turn * SCRAPE_SECONDS - time.monotonic()))
    elapsed = time.monotonic() - start
    return [(server.cpu_seconds() - known) / elapsed for server, known in zip(servers, before)]
