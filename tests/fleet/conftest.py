"""Shared by the tests of a fleet: a demo fleet, a real S3 server, a real Dask cluster."""

import json
import os
import subprocess
import sys
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.s3.server import S3, ServerMissing, serve

from nodescope.keep.consolidator import Consolidator
from nodescope.keep.copy.copier import Copied, Copier
from nodescope.keep.copy.object_store import open_store
from nodescope.keep.demo.archive import render_truth, write_node
from nodescope.keep.demo.fleet import plan_fleet
from nodescope.keep.demo.story import DemoRequest
from nodescope.keep.disk import Disk
from nodescope.keep.folder import MS_PER_DAY, DataFolder

END_MS = 1_772_366_400_000
NODES, HOURS, CONTAINERS, SEED = 10, 1.0, 10, 5


class Clock:
    """A day later: everything is finished."""

    def wall_ns(self) -> int:
        return (END_MS + MS_PER_DAY) * 1_000_000

    def mono_ns(self) -> int:
        return 0

    def wait_until(self, deadline_mono_ns: int, stop: object) -> bool:
        return False


def copy_all(data: Path, url: str) -> Copied:
    """What `consolidate --once --copy-to` does after its merging."""
    return Copier(Disk(), DataFolder(data), open_store(url), Clock()).run_pass(everything=True)


def request_for(path: Path, node: str) -> DemoRequest:
    return DemoRequest(
        path, HOURS, CONTAINERS, SEED, END_MS, node, int(node.removeprefix("demo-")) - 1, NODES
    )


def write_fleet(path: Path) -> list[dict[str, Any]]:
    planted: list[dict[str, Any]] = []
    for number in range(NODES):
        node = f"demo-{number + 1}"
        request = request_for(path / node, node)
        made = write_node(request, "0", lambda _: None, planters=plan_fleet(request))
        planted += [{"node": node, **one} for one in made.truth]
    (path / "truth.json").write_bytes(render_truth(request, planted))
    return planted


def write_node_again(path: Path, node: str) -> None:
    """One node as its collector left it: hours, and fresh files that nobody merged."""
    request = request_for(path, node)
    write_node(request, "0", lambda _: None, planters=plan_fleet(request))


@dataclass
class Fleet:
    """Ten nodes, merged into one file each."""

    path: Path
    planted: list[dict[str, Any]]

    def truth(self, kind: str) -> list[dict[str, Any]]:
        return [one for one in self.planted if one["kind"] == kind]


@pytest.fixture(scope="session")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    path = tmp_path_factory.mktemp("fleet") / "nodes"
    planted = write_fleet(path)
    for node in sorted(path.glob("demo-*")):
        Consolidator(Disk(), DataFolder(node), 2).run_pass(END_MS + MS_PER_DAY)
    return Fleet(path, planted)


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    with pytest.MonkeyPatch.context() as patch:
        try:
            with serve(tmp_path_factory.mktemp("s3") / "server") as server:
                for name, value in server.environment.items():
                    patch.setenv(name, value)
                yield server
        except ServerMissing as missing:
            if os.environ.get("CI") == "true":
                raise
            pytest.skip(str(missing))


@pytest.fixture(scope="session")
def copied(fleet: Fleet, s3: S3) -> str:
    """The fleet in a bucket; its address."""
    url = f"{s3.make_bucket('fleet')}/archive"
    for node in sorted(fleet.path.glob("demo-*")):
        done = copy_all(node, url)
        assert done.files == 1
        assert not done.failures
    return url


@dataclass
class Dask:
    """A scheduler and its workers, each a process of its own."""

    address: str
    workers: "list[subprocess.Popen[str]]" = field(default_factory=list)


def start_dask(place: Path, workers: int) -> Generator[Dask, None, None]:
    """By their command line, as an administrator would."""
    file = place / "scheduler.json"
    words = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
    words += ["--no-dashboard", "--scheduler-file", str(file)]
    processes = [subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True)]
    worker = [
        sys.executable,
        "-m",
        "distributed.cli.dask_worker",
        "--scheduler-file",
        str(file),
        "--no-nanny",
    ]
    worker += ["--host", "127.0.0.1", "--nthreads", "1", "--no-dashboard", "--memory-limit", "1GiB"]
    worker += ["--local-directory", str(place)]
    try:
        processes += [
            subprocess.Popen(worker, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True)
            for _ in range(workers)
        ]
        from distributed import Client

        with Client(scheduler_file=str(file), timeout=60) as client:
            client.wait_for_workers(workers, timeout=60)
        yield Dask(json.loads(file.read_text())["address"], processes[1:])
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()


@pytest.fixture(scope="session")
def dask(s3: S3, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dask]:
    """Two workers that know the S3 server from their environment."""
    yield from start_dask(tmp_path_factory.mktemp("dask"), 2)
