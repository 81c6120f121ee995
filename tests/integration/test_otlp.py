"""A real OpenTelemetry collector takes what we push, and loses nothing while it is away for a while."""

import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.cgroups import Cgroups
from tests.integration.agents import (
    NODESCOPE,
    clean_environment,
    free_port,
    run_nodescope,
    running_agent,
    wait_for,
)
from tests.otlp.collector import RealCollector, find_collector
from tests.s3.server import ServerMissing

pytestmark = pytest.mark.real


@pytest.fixture
def collector(tmp_path: Path) -> RealCollector:
    try:
        return find_collector(tmp_path, free_port())
    except ServerMissing as error:
        pytest.skip(str(error))


@contextmanager
def pushing(
    collector: RealCollector, agent: str, output: Path, *flags: str
) -> Iterator["subprocess.Popen[bytes]"]:
    words = [*NODESCOPE, "push", "--to", f"http://{collector.address}", "--agent", f"http://{agent}", *flags]
    with output.open("wb") as sink:
        process = subprocess.Popen(words, stdout=sink, stderr=sink, env=clean_environment())
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def times_of(collector: RealCollector, name: str) -> list[int]:
    return sorted(int(point["timeUnixNano"]) for _, one, _, point in collector.points() if one == name)


def test_a_collector_that_is_killed_and_comes_back_has_every_point(
    collector: RealCollector, cgroups: Cgroups, tmp_path: Path
) -> None:
    output = tmp_path / "push.log"
    with (
        running_agent("--no-archive", "--no-kubernetes", ready_seconds=120) as agent,
        pushing(collector, agent.address, output, "--every", "1s") as pusher,
    ):
        with collector.running():
            wait_for(lambda: len(times_of(collector, "node_load1")) >= 2, "two pushes")
        killed_ns = time.time_ns()
        wait_for(lambda: "it is kept" in output.read_text(), "a push that was not taken")
        time.sleep(4)
        returned_ns = time.time_ns()
        with collector.running():
            wait_for(lambda: max(times_of(collector, "node_load1")) > returned_ns, "a push after the return")
            pusher.terminate()
            assert pusher.wait(60) == 0
    said = output.read_text().splitlines()[-1]
    match = re.fullmatch(r"([\d,]+) points sent in [\d,]+ requests", said)
    assert match, said
    points = {
        (resource, name, attributes, point["timeUnixNano"])
        for resource, name, attributes, point in collector.points()
    }
    # A request that was taken as the collector died is sent again: the same points once more, and never fewer.
    assert len(points) >= int(match[1].replace(",", "")) > 0
    meanwhile = [at for at in times_of(collector, "node_load1") if killed_ns < at < returned_ns]
    assert len(meanwhile) >= 2


def test_what_the_collector_has_is_what_metrics_says(collector: RealCollector) -> None:
    with running_agent("--no-archive", "--no-kubernetes", ready_seconds=120) as agent, collector.running():
        done = run_nodescope(
            "push",
            "--once",
            "--to",
            f"http://{collector.address}",
            "--agent",
            f"http://{agent.address}",
            "--cluster",
            "c1",
        )
        assert done.returncode == 0, done.stderr
        scraped = agent.scrape()
    points = {name: (resource, point["asDouble"]) for resource, name, _, point in collector.points()}
    resource, limit = points["system.memory.limit"]
    assert f"node_memory_MemTotal_bytes {limit:.0f}\n" in scraped
    assert '"c1"' in resource
    assert {"system.cpu.time", "system.disk.io", "system.network.io", "system.filesystem.usage"} <= set(
        points
    )


def test_without_a_collector_once_fails_with_one_line(collector: RealCollector) -> None:
    with running_agent("--no-archive", "--no-kubernetes", ready_seconds=120) as agent:
        done = run_nodescope(
            "push", "--once", "--to", f"http://{collector.address}", "--agent", f"http://{agent.address}"
        )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("nodescope push: ")
