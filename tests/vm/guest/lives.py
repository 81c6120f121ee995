"""
Containers that come and go: what is known of them when they are no more.

An obituary is published as `nodescope_container_exit_*` for a minute, and
counted in `nodescope_container_exits_total`.
"""

import os
import signal
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from tests.vm.guest import agent, pods
from tests.vm.guest.kernel import read_truth
from tests.vm.guest.report import Report, wait_until

OOM = "container_oom_events_total"
USAGE = "container_cpu_usage_seconds_total"
EXIT = "nodescope_container_exit_"
PATIENCE_SECONDS = 30
BRIEF_SECONDS = 1.5
BRIEF_ATTEMPTS = 3


def read_own(name: str) -> float:
    """A series without labels."""
    return next((one.value for one in agent.scrape() if one.name == name), 0.0)


def published(name: str, container: pods.Container) -> float | None:
    return agent.total(agent.scrape(), name, container)


def is_published(name: str, container: pods.Container) -> bool:
    return published(name, container) is not None


def check_discovery(report: Report, container: pods.Container) -> None:
    started = time.monotonic()
    found = wait_until(lambda: is_published(USAGE, container), PATIENCE_SECONDS)
    report.check(f"a new container is found: {container.name} ({container.driver} driver)", found)
    report.note(f"{container.name} was published {time.monotonic() - started:.1f} s after its start")


def check_obituary(report: Report, container: pods.Container, fact: str, low: float, high: float) -> None:
    name = EXIT + fact
    wait_until(lambda: is_published(name, container), PATIENCE_SECONDS)
    value = published(name, container)
    report.check(
        f"the obituary of {container.name} has its {fact}",
        value is not None and low <= value <= high,
        f"published {value}, true {low} to {high}",
    )


def check_oom_kills(report: Report, pid: int) -> None:
    """
    Two containers killed for memory, removed with and without a pause.

    The hasty one is gone before anybody can look: the agent is held still
    meanwhile, as a node that is short of CPU holds it. Its pod's
    memory.events, which outlive it, must tell.
    """
    victims = {container: pods.start(container) for container in (pods.VICTIM, pods.HASTY)}
    for container in victims:
        check_discovery(report, container)
    exits = read_own("nodescope_container_exits_total")
    os.kill(pid, signal.SIGSTOP)
    Path("/run/doom").touch()
    victims[pods.HASTY].wait()
    pods.remove(pods.HASTY)
    os.kill(pid, signal.SIGCONT)
    victims[pods.VICTIM].wait()
    kills = read_truth(pods.VICTIM.path, OOM)
    report.check("kernel: the victim was killed for memory", kills >= 1, kills)
    wait_until(lambda: (published(OOM, pods.VICTIM) or 0) >= kills, PATIENCE_SECONDS)
    seen = published(OOM, pods.VICTIM)
    report.check(f"{OOM} of the victim is the kernel's while its cgroup is there", seen == kills, seen)
    pods.remove(pods.VICTIM)
    check_obituary(report, pods.VICTIM, "oom_kills", kills, kills)
    # Of a pod with one container the pod's events are the container's.
    kills = read_truth(pods.HASTY.pod_path, OOM)
    check_obituary(report, pods.HASTY, "oom_kills", kills, kills)
    for container in victims:
        report.check(f"{container.name} is no longer published as living", not is_published(USAGE, container))
    counted = wait_until(lambda: read_own("nodescope_container_exits_total") == exits + 2, PATIENCE_SECONDS)
    report.check("both exits are counted", counted, read_own("nodescope_container_exits_total") - exits)


def live_briefly(container: pods.Container) -> float:
    """CPU seconds that it had used at its end."""
    process = pods.start(container)
    time.sleep(BRIEF_SECONDS)
    pods.end(container, process)
    used = read_truth(container.path, USAGE)
    pods.remove(container)
    return used


def check_a_brief_life(report: Report) -> None:
    """Alive for 1.5 s: seen, and its end is told. A tick that the guest missed excuses one attempt."""
    for attempt in range(1, BRIEF_ATTEMPTS + 1):
        container = replace(pods.BRIEF, name=f"brief-{attempt}")
        missed = read_own("nodescope_ticks_missed_total")
        used = live_briefly(container)
        seen = wait_until(lambda c=container: is_published(f"{EXIT}cpu_seconds", c), 10)  # type: ignore[misc]
        if seen or read_own("nodescope_ticks_missed_total") == missed:
            break
        report.note(f"attempt {attempt}: the guest missed a tick")
    # Its last tick may have come early; what it says must be some of what was used, and not more.
    check_obituary(report, container, "cpu_seconds", 0.01 * used, used + 1e-6)
    # Seen from tick to tick, and ticks are late in an emulated machine on a busy host.
    check_obituary(report, container, "lifetime_seconds", 0, BRIEF_SECONDS + 6)


def check_a_late_companion(report: Report) -> None:
    """A second container in a pod whose only container's name was certain until then."""
    pods.start(pods.SIDECAR)
    check_discovery(report, pods.SIDECAR)
    infos = [one.labels for one in agent.scrape() if one.name == "container_info"]
    (labels,) = (one for one in infos if one.get("id") == pods.SIDECAR.cgroup)
    report.check(
        "the second container of a pod does not take the first one's name",
        labels["container"] in ("", pods.SIDECAR.name) and labels["pod"] == pods.SIDECAR.pod,
        labels,
    )


def find_stale_files(pid: int, containers: Iterable[pods.Container]) -> list[str]:
    """Files of removed containers that the agent still holds open."""
    targets = [os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()]
    return [target for target in targets if any(one.id in target for one in containers)]


def check_nothing_is_left(report: Report, pid: int) -> None:
    gone = (pods.VICTIM, pods.HASTY)
    wait_until(lambda: not find_stale_files(pid, gone), PATIENCE_SECONDS)
    stale = find_stale_files(pid, gone)
    report.check("the agent holds no file of a removed container open", not stale, stale)


def check_lives(report: Report, pid: int) -> None:
    check_oom_kills(report, pid)
    check_nothing_is_left(report, pid)
    check_a_brief_life(report)
    check_a_late_companion(report)
