"""An agent with eight fake GPUs, as a process; gpustat reads the same library by other code."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.fakes.nvml.library import Scenario, build_library, many_gpus

pytestmark = pytest.mark.real
PORT = 19473
ADDRESS = f"http://127.0.0.1:{PORT}"
Series = dict[tuple[str, str], float]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_library(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    return Scenario(tmp_path / "scenario")


@pytest.fixture
def environment(library: Path, scenario: Scenario) -> dict[str, str]:
    """The library is found as the dynamic loader finds a driver's."""
    return {**os.environ, "LD_LIBRARY_PATH": str(library.parent), "FAKE_NVML_SCENARIO": str(scenario.path)}


@pytest.fixture
def start_agent(environment: dict[str, str]) -> Iterator[Callable[[], None]]:
    running: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        command = [
            sys.executable,
            "-m",
            "nodescope",
            "agent",
            "--no-archive",
            "--listen",
            f"127.0.0.1:{PORT}",
        ]
        running.append(subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL))

    yield start
    for process in running:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=15)


def fetch(path: str) -> str:
    try:
        return httpx.get(f"{ADDRESS}{path}", timeout=5).raise_for_status().text
    except httpx.HTTPError as error:
        raise ConnectionError(str(error)) from error


def scrape() -> Series:
    """(name, gpu_index) -> value of the GPUs' own series."""
    found = {}
    for family in text_string_to_metric_families(fetch("/metrics?source=gpu")):
        for sample in family.samples:
            found[sample.name, sample.labels.get("gpu_index", "")] = sample.value
    return found


def wait_for(condition: Callable[[], Any], seconds: float = 20.0) -> Any:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            found = condition()
        except OSError:
            found = None
        if found:
            return found
        time.sleep(0.1)
    pytest.fail(f"not seen within {seconds} s")


def test_the_agent_agrees_with_gpustat(
    scenario: Scenario, environment: dict[str, str], start_agent: Callable[[], None]
) -> None:
    """Utilisation, memory, temperature, power, limits, coders, fan and processes of eight GPUs."""
    lines = many_gpus(8) | {"all.fan": 33, "gpu2.compute": f"{os.getpid()}:{3 * 2**30}"}
    scenario.say(lines)
    start_agent()
    ours: Series = wait_for(lambda: (found := scrape()).get(("gpu_up", "7")) and found)
    oracle = subprocess.run(
        [sys.executable, "-m", "gpustat", "--json"],
        env=environment,
        capture_output=True,
        check=True,
        timeout=60,
    )
    theirs = json.loads(oracle.stdout)["gpus"]
    assert len(theirs) == 8
    for gpu in theirs:
        index = str(gpu["index"])
        assert ours["gpu_utilization_percent", index] == gpu["utilization.gpu"]
        assert ours["gpu_memory_used_bytes", index] // 2**20 == gpu["memory.used"]
        assert ours["gpu_memory_total_bytes", index] // 2**20 == gpu["memory.total"]
        assert ours["gpu_temperature_celsius", index] == gpu["temperature.gpu"]
        # gpustat rounds to whole watts.
        assert abs(ours["gpu_power_draw_watts", index] - gpu["power.draw"]) < 1
        assert ours["gpu_power_limit_watts", index] == gpu["enforced.power.limit"]
        assert ours["gpu_encoder_utilization_percent", index] == gpu["utilization.enc"]
        assert ours["gpu_decoder_utilization_percent", index] == gpu["utilization.dec"]
        assert ours["gpu_fan_speed_percent", index] == gpu["fan.speed"]
        assert ours["gpu_processes", index] == len(gpu["processes"])
    (process,) = theirs[2]["processes"]
    assert ours["gpu_process_memory_bytes", "2"] // 2**20 == process["gpu_memory_usage"]


def test_gpus_die_hang_and_report_while_the_agent_goes_on(
    scenario: Scenario, start_agent: Callable[[], None]
) -> None:
    """A lost GPU is gpu_up 0; XIDs are counted; a call of 30 s costs the tick nothing."""
    scenario.say(many_gpus(2))
    start_agent()
    wait_for(lambda: scrape().get(("gpu_up", "1")) == 1)
    window = wait_for(lambda: json.loads(fetch("/metrics?window_seconds=5")))
    assert window["metrics"]["mean_gpu_util"] == pytest.approx(0.12)
    assert window["metrics"]["mean_gpu_power_watts"] == pytest.approx(125.23)

    scenario.say({"gpu1.*": "!15", "event": "1 1 79"})
    lost: Series = wait_for(lambda: (found := scrape()).get(("gpu_xid_errors_total", "1")) and found)
    assert (lost["gpu_up", "0"], lost["gpu_up", "1"]) == (1, 0)
    assert ("gpu_utilization_percent", "1") not in lost
    assert lost["gpu_utilization_percent", "0"] == 7

    scenario.say({"gpu0.power": "~30"})
    wait_for(lambda: 'nodescope_source_up{source="nvidia"} 0' in fetch("/metrics"), 30)
    assert scrape() == {}, "values of a hung driver are not shown as living"
    before = ticks()
    time.sleep(3)
    assert ticks() - before >= 2


def ticks() -> float:
    return next(
        sample.value
        for family in text_string_to_metric_families(fetch("/metrics"))
        for sample in family.samples
        if sample.name == "nodescope_ticks_total"
    )


def test_a_machine_without_a_driver_says_so() -> None:
    """On this very machine, if it has none."""
    answer = subprocess.run(
        [sys.executable, "-m", "nodescope", "sources", "--json"], capture_output=True, check=True, timeout=60
    )
    nvidia = find_source(json.loads(answer.stdout), "nvidia")
    assert nvidia["state"] in ("absent", "ok")
    if nvidia["state"] == "absent":
        assert "NVIDIA" in nvidia["reason"]


def find_source(answer: Any, name: str) -> dict[str, Any]:
    """The source's record, whichever way the command lists them."""
    listed = answer.get("sources", answer) if isinstance(answer, dict) else answer
    if isinstance(listed, dict):
        found: dict[str, Any] = listed[name]
        return found
    return next(record for record in listed if name in (record.get("name"), record.get("source")))
