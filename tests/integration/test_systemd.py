"""Units of systemd, asked over a real D-Bus."""

import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.collect.nodes import Node
from tests.integration.systemd_manager import systemd_running

from nodescope.base.block import Block
from nodescope.base.errors import SourceFailed
from nodescope.base.settings import Settings
from nodescope.collect.sources.systemd.manager import ask_systemd
from nodescope.collect.sources.systemd.source import SystemdSource

pytestmark = pytest.mark.real

UNITS = {
    "calm.service": "[Service]\nType=exec\nExecStart=/bin/sleep 600\nTasksMax=77\n",
    "broken.service": "[Service]\nExecStart=/bin/false\n",
    "crash.service": "[Unit]\nStartLimitIntervalSec=0\n[Service]\nExecStart=/bin/false\nRestart=always\nRestartSec=100ms\n",
    "later.timer": "[Timer]\nOnActiveSec=1h\nUnit=calm.service\n",
    "door.socket": "[Socket]\nListenStream=%t/door\nService=calm.service\n",
}
DEADLINE_SECONDS = 60.0


@pytest.fixture(scope="module")
def bus() -> Iterator[Path]:
    with systemd_running(UNITS) as folder:
        yield folder / "bus"


def wait_for(bus: Path, condition: Callable[[dict[str, dict[str, object]]], bool]) -> dict[str, object]:
    """The newest answer, once it is as wanted."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while True:
        answer = ask_systemd(str(bus))
        units = {unit["name"]: unit for unit in answer["units"]}
        if condition(units):
            return answer
        assert time.monotonic() < deadline, units
        time.sleep(0.3)


def has_settled(units: dict[str, dict[str, object]]) -> bool:
    restarts = units.get("crash.service", {}).get("restarts", 0)
    return (
        units.get("broken.service", {}).get("state") == "failed"
        and units.get("calm.service", {}).get("state") == "active"
        and isinstance(restarts, int)
        and restarts > 2
    )


def test_a_unit_that_failed_and_one_that_is_started_again_are_told(bus: Path, tmp_path: Path) -> None:
    wait_for(bus, has_settled)
    node = Node(tmp_path, is_fixture=False)
    node.link("run/dbus/system_bus_socket", str(bus))
    source = SystemdSource(node.context(Settings(systemd="dbus")))
    blocks = {block.table.name: block for block in source.parse(source.read(), 1)}
    states = read_column(blocks["systemd"], "node_systemd_unit_state", "failed")
    assert states["broken.service"] == 1
    assert states["calm.service"] == 0
    assert read_column(blocks["systemd"], "node_systemd_unit_state", "active")["calm.service"] == 1
    restarts = read_column(blocks["systemd.unit"], "node_systemd_service_restart_total")
    assert restarts["crash.service"] > 2
    assert restarts["calm.service"] == 0
    assert math.isnan(restarts["later.timer"])
    assert read_column(blocks["systemd.unit"], "node_systemd_unit_tasks_max")["calm.service"] == 77
    assert read_column(blocks["systemd.unit"], "node_systemd_timer_last_trigger_seconds")["later.timer"] == 0
    assert (
        read_column(blocks["systemd.unit"], "node_systemd_socket_accepted_connections_total")["door.socket"]
        == 0
    )
    started = read_column(blocks["systemd.unit"], "node_systemd_unit_start_time_seconds")["calm.service"]
    assert time.time() - 3600 < started <= time.time()
    (manager,) = blocks["systemd.manager"].values.tolist()
    assert manager[3] >= 1
    assert manager[-1] == 0, "a unit has failed: the system is degraded"
    (version,) = blocks["systemd.version"].entities
    assert version.labels[0][1].startswith(str(int(blocks["systemd.version"].values[0, 0])))


def read_column(block: Block, published: str, state: str = "") -> dict[str, float]:
    column = next(
        number
        for number, metric in enumerate(block.table.metrics)
        if metric.published == published and (not state or ("state", state) in metric.labels)
    )
    named = (dict(entity.labels)["name"] for entity in block.entities)
    return dict(zip(named, block.values[:, column].tolist()))


def test_the_kinds_of_services_are_told_and_units_that_nobody_asks_for_are_left_out(bus: Path) -> None:
    answer = wait_for(bus, has_settled)
    units = answer["units"]
    assert isinstance(units, list)
    assert next(unit["type"] for unit in units if unit["name"] == "calm.service") == "exec"
    assert not [unit["name"] for unit in units if unit["name"].endswith((".mount", ".slice", ".scope"))]


def test_no_bus_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(SourceFailed, match=r"missing: No such file or directory"):
        ask_systemd(str(tmp_path / "missing"))
