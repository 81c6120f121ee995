"""The agent beside node_exporter and cAdvisor on one machine with real load."""

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.cgroups import Cgroups, Group, why_not
from tests.integration.peers import gaps
from tests.integration.peers.binaries import Peer, PeerMissing, peer_binary
from tests.integration.peers.comparison import (
    Disagreement,
    Series,
    Snapshot,
    find_disagreements,
    parse_exposition,
    shared_series,
)
from tests.integration.peers.load import start_load
from tests.integration.peers.mapping import (
    EXEMPT,
    MAPPINGS,
    REQUIRED_OF_CONTAINERS,
    REQUIRED_OF_NODE,
    SLOW,
    UNSTEADY,
)
from tests.integration.peers.servers import Server, agent_running, peer_running

pytestmark = pytest.mark.real

COMPARED: tuple[Peer, ...] = ("node_exporter", "cadvisor")
# Another engine's build may move a gauge by gigabytes in a second; what is
# wrong is wrong in every round.
ROUNDS = 3
# cAdvisor's figures are up to two housekeepings old, ours up to one tick.
BEFORE_SECONDS = 3
AFTER_SECONDS = 1.6
SETTLE_SECONDS = 20.0
# The pace of the slowest sources, and a tick.
SLOWEST_SECONDS = 32.0
# In the UID of every pod that this process makes.
MAKER = f"{os.getpid():012x}"


@dataclass(frozen=True)
class Round:
    ours: list[Snapshot]
    theirs: dict[Peer, Snapshot]


@dataclass(frozen=True)
class Watched:
    """Everything that was seen."""

    containers: Mapping[str, Group]
    rounds: list[Round] = field(default_factory=list)
    late: list[Snapshot] = field(default_factory=list)

    def pair(self, peer: Peer, number: int) -> tuple[list[Snapshot], Snapshot]:
        """Both sides under the labels they have in common."""
        ours, theirs = MAPPINGS[peer]
        watched = self.rounds[number]
        return [snapshot.mapped(ours) for snapshot in watched.ours], watched.theirs[peer].mapped(theirs)

    def late_pair(self, peer: Peer, number: int) -> tuple[list[Snapshot], Snapshot]:
        """The same with a reading of ours from which every slow source had answered again."""
        mapped, theirs = self.pair(peer, number)
        return [*mapped, *(snapshot.mapped(MAPPINGS[peer][0]) for snapshot in self.late)], theirs


def refuse(reason: str) -> None:
    """Skips here, fails where a missing part is a broken set-up."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    if (reason := why_not()) is not None:
        refuse(reason)
    try:
        for peer in COMPARED:
            peer_binary(peer)
    except PeerMissing as missing:
        refuse(str(missing))
    with (
        Cgroups() as cgroups,
        agent_running() as agent,
        peer_running("node_exporter") as node_exporter,
        peer_running("cadvisor") as cadvisor,
    ):
        seen = Watched(start_load(cgroups, tmp_path_factory.mktemp("load")))
        for server in (agent, cadvisor):
            wait_for_containers(server, seen.containers)
        for _ in range(ROUNDS):
            seen.rounds.append(watch(agent, {"node_exporter": node_exporter, "cadvisor": cadvisor}))
        time.sleep(SLOWEST_SECONDS)
        seen.late.append(parse_exposition(keep_own(agent.scrape())))
        yield seen


def wait_for_containers(server: Server, containers: Mapping[str, Group]) -> None:
    deadline = time.monotonic() + SETTLE_SECONDS
    while missing := [
        name for name, group in containers.items() if f'id="/{group.path}"' not in server.scrape()
    ]:
        assert time.monotonic() < deadline, f"{server.name} does not see {missing}"
        time.sleep(0.5)


def watch(agent: Server, peers: Mapping[Peer, Server]) -> Round:
    ours = []
    for _ in range(BEFORE_SECONDS):
        ours.append(agent.scrape())
        time.sleep(1)
    theirs = {name: server.scrape() for name, server in peers.items()}
    time.sleep(AFTER_SECONDS)
    ours.append(agent.scrape())
    parsed = {name: parse_exposition(keep_own(text)) for name, text in theirs.items()}
    return Round([parse_exposition(keep_own(text)) for text in ours], parsed)


def keep_own(text: str) -> str:
    """Without the containers of others: a machine may run thousands beside ours."""
    lines = text.splitlines(keepends=True)
    return "".join(
        line for line in lines if not line.startswith("container_") or MAKER in line or 'id="/"' in line
    )


def disagreements(watched: Watched, peer: Peer) -> list[Disagreement]:
    """Those of the last round that were there in every round."""
    found: dict[Series, Disagreement] = {}
    for number in range(ROUNDS):
        now = {item.series: item for item in find_now(watched, peer, number)}
        found = now if number == 0 else {series: now[series] for series in found.keys() & now.keys()}
    return sorted(found.values(), key=str)


def find_now(watched: Watched, peer: Peer, number: int) -> list[Disagreement]:
    found = []
    for is_slow, (ours, theirs) in (
        (False, watched.pair(peer, number)),
        (True, watched.late_pair(peer, number)),
    ):
        shared = shared_series(ours, theirs)
        among = {
            one for one in shared if bool(SLOW.fullmatch(one[0])) is is_slow and not is_exempt(peer, one)
        }
        found += find_disagreements(ours, theirs, among)
    return found


def is_exempt(peer: Peer, series: Series) -> bool:
    return series[0] in EXEMPT[peer] or UNSTEADY.fullmatch(series[0]) is not None


@pytest.mark.parametrize("peer", COMPARED)
def test_every_series_that_both_have_agrees(watched: Watched, peer: Peer) -> None:
    wrong = disagreements(watched, peer)
    assert not wrong, f"{len(wrong)} series differ from {peer}:\n" + "\n".join(map(str, wrong[:40]))


def test_node_series_are_compared_at_all(watched: Watched) -> None:
    """A comparison of nothing would pass, so the names that must be shared are listed."""
    ours, theirs = watched.pair("node_exporter", -1)
    shared = {name for name, _ in shared_series(ours, theirs)}
    assert shared >= REQUIRED_OF_NODE, f"not compared: {sorted(REQUIRED_OF_NODE - shared)}"


def test_every_container_is_compared(watched: Watched) -> None:
    ours, theirs = watched.pair("cadvisor", -1)
    shared = shared_series(ours, theirs)
    for what, group in watched.containers.items():
        names = {name for name, labels in shared if ("id", f"/{group.path}") in labels}
        assert names >= REQUIRED_OF_CONTAINERS, (
            f"{what}: not compared: {sorted(REQUIRED_OF_CONTAINERS - names)}"
        )


@pytest.mark.parametrize("peer", COMPARED)
def test_what_they_have_and_we_do_not_has_a_reason(watched: Watched, peer: Peer) -> None:
    last = watched.rounds[-1]
    # What is read every half minute has come with the late scrape only.
    ours = last.ours[-1].names | watched.late[-1].names
    missing = last.theirs[peer].names - ours
    unexplained, outdated = gaps.unexplained(peer, missing), gaps.outdated(peer, ours)
    assert not unexplained, f"give a reason in gaps.py, then renew docs/peers.md: {' '.join(unexplained)}"
    assert not outdated, f"we publish what gaps.py calls missing: {' '.join(outdated)}"


def test_the_page_about_peers_is_current() -> None:
    """
    NODESCOPE_RENEW_GOLDEN=1 writes it.
    """
    page = gaps.render_page()
    path: Path = gaps.PAGE
    if os.environ.get("NODESCOPE_RENEW_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(page)
    assert path.read_text() == page
