"""What the real tests need of the machine, and what they say where it is not there."""

import os
import shutil
from collections.abc import Iterator

import pytest
from tests.cgroups import Cgroups, why_not
from tests.cluster.control_plane import ControlPlane, free_port, run_control_plane


def need_tool(name: str) -> str:
    """The program's path; a skip with the remedy where it is not installed, a failure in CI."""
    path = shutil.which(name)
    if path:
        return path
    message = f"{name} is not installed; remedy: tools/test-parts, as root"
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture
def promtool() -> str:
    return need_tool("promtool")


@pytest.fixture
def openssl() -> str:
    return need_tool("openssl")


@pytest.fixture
def cgroups() -> Iterator[Cgroups]:
    """Real cgroups; all of them, and what runs inside, are gone afterwards."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    with Cgroups() as made:
        yield made


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """
    One control plane for all tests: etcd, API server, controllers, scheduler.

    The scheduler has the shipped configuration and asks an extender at
    plane.extender_port, where a test may run one; it is ignorable, so the
    others need not.
    """
    for made in run_control_plane(
        tmp_path_factory.mktemp("plane"), "kube-scheduler", "kube-controller-manager", "kubectl"
    ):
        made.allow_agent()
        made.extender_port = free_port()
        made.start_controllers()
        made.start_scheduler(made.write_scheduler_config())
        yield made
