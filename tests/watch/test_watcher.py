"""What is planted on a generated node is told, once, with its cause; what is healthy is left alone."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event as Stop
from typing import Any

import pytest
from tests.nodes.pods import WEB
from tests.stories.generate.cluster import GIB, MIB, Workload
from tests.stories.generate.machine import pulses, ramp, sawtooth
from tests.support import FixtureNode
from tests.watch.nodes import PLANTS, make_node
from tests.watch.replay import FrameClock, Replay

from nodescope.base.findings import NodeFinding
from nodescope.base.findings.event_form import read_event
from nodescope.base.frame import OK, Outcome
from nodescope.collect.run.guard import run_guarded
from nodescope.hold.ring import Ring
from nodescope.watch.detect.gpu_loss import LostGpus
from nodescope.watch.finding_store import FindingStore
from nodescope.watch.ladder import BUCKETS, Ladder
from nodescope.watch.learned import DAY_SECONDS, HourProfile, read_profile
from nodescope.watch.look import NodeLook
from nodescope.watch.rise import find_rise
from nodescope.watch.sighting import FindingSubject, Sighting
from nodescope.watch.watcher import BUDGET_RATIO, LONGEST_SECONDS, LOOK_SECONDS, Watcher

SEED = 4


def told_of(told: Sequence[NodeFinding], kind: str) -> list[NodeFinding]:
    return [one for one in told if one.kind == kind and one.confirmed is not None]


@pytest.mark.parametrize("plant", PLANTS)
def test_what_is_planted_is_told_in_time_and_nothing_else(plant: str) -> None:
    """By kind and name, before it ends; every page is about it."""
    trial = PLANTS[plant](SEED, 1.5, 6)
    told = trial.replay.run()
    start = trial.replay.node.at(0)
    for planted in trial.planted:
        mine = [one for one in told_of(told, planted.kind) if planted.workload in (one.workload, one.device)]
        assert mine, planted
        assert mine[0].updated - start <= planted.ends
        assert len({one.id for one in mine}) == 1
    names = {planted.workload for planted in trial.planted}
    assert {one.workload or one.device for one in told if one.is_page_worthy} <= names


def test_a_leak_names_its_limit_and_the_time_that_is_left() -> None:
    """The first that is told is within a third of the truth, and before half of the way."""
    trial = PLANTS["leak"](SEED, 1.5, 4)
    first = told_of(trial.replay.run(), "memory_leak")[0]
    planted, start = trial.planted[0], trial.replay.node.at(0)
    at = first.updated - start
    assert at < planted.begins + (planted.ends - planted.begins) / 2
    assert first.time_to_limit_seconds == pytest.approx(planted.ends - at, rel=1 / 3)
    assert first.onset - start == pytest.approx(planted.begins, abs=300)
    assert "its limit of" in first.sentence


def test_a_neighbour_is_the_cause_and_those_who_wait_are_its_victims() -> None:
    trial = PLANTS["neighbour"](SEED, 1.5, 6)
    first = told_of(trial.replay.run(), "noisy_neighbour")[0]
    assert first.cause == "batch/etl"
    assert "shop/checkout" in first.victims
    assert "batch/etl" not in first.victims


def test_page_cache_and_a_collected_heap_are_no_leak() -> None:
    """Cache grows to its limit, a heap fills and is collected for hours: nobody is told."""
    node = make_node(SEED, 2.0, "calm")
    cache = Workload("filesrv", memory_limit=500 * MIB)
    node.run(cache, anon=60 * MIB, file=ramp(0, node.seconds, 50 * MIB, 1 * GIB))
    node.run(Workload("heap", memory_limit=1 * GIB), anon=sawtooth(900, 250 * MIB, 700 * MIB))
    told = Replay(node).run()
    assert [one for one in told if one.is_confirmed] == []


def test_a_quota_that_runs_out_now_and_then_hurts_nobody() -> None:
    node = make_node(SEED, 1.0, "pulses")
    node.run(Workload("api", cpu_limit=1.0), cpu=pulses(600, 30, 0.3, 1.3))
    assert [one for one in Replay(node).run() if one.is_confirmed] == []


def test_every_change_is_an_event_of_the_archive() -> None:
    """The same findings, in the same order, and nothing else."""
    trial = PLANTS["kill"](SEED, 1.0, 2)
    told = trial.replay.run()
    assert told
    assert [read_event(one.kind, one.facts) for one in trial.replay.events] == told


def look_at(at: float, **more: Any) -> NodeLook:
    return NodeLook(at, 10.0, (), {}, 8, 1e9, 1e9, **more)


def test_a_gpu_whose_driver_fails_is_lost_and_comes_back() -> None:
    """One failed reading is no loss; a device that was never believed is none either."""
    lost = LostGpus()
    there = {"nvidia": frozenset({"GPU-0"})}
    for at in range(0, 50, 10):
        assert lost.look(look_at(at, gpus=there, outcomes={"nvidia": OK})) == []
    failed = {"nvidia": Outcome("failed", "the driver does not answer")}
    (seen,) = lost.look(look_at(50, outcomes=failed))
    assert not seen.is_sure
    (sure,) = lost.look(look_at(110, outcomes=failed))
    assert sure.is_sure
    assert "the driver does not answer" in sure.sentence
    assert lost.look(look_at(120, gpus=there, outcomes={"nvidia": OK})) == []


def test_a_job_that_does_the_same_every_night_is_learned() -> None:
    """Three nights are told, the fourth is curious; at another hour it is news again. It survives a restart."""
    profile = HourProfile()
    for night in range(3):
        assert not profile.knows("k", night * DAY_SECONDS + 3 * 3600)
        profile.note("k", night * DAY_SECONDS + 3 * 3600)
    again = read_profile({**profile.to_json(), "damaged": [1, [2], ["a", 3]], "worse": 4})
    assert again.seen == profile.seen
    assert again.knows("k", 3 * DAY_SECONDS + 3.9 * 3600)
    assert not again.knows("k", 3 * DAY_SECONDS + 12 * 3600)
    assert not again.knows("k", 30 * DAY_SECONDS + 3 * 3600)


NIGHTLY = Sighting(
    "cpu_throttling", "hurt", FindingSubject("batch", "etl"), 0.0, "etl is held back.", is_sure=True
)


class Saying:
    """A detector that sees what it is told to."""

    quiet_seconds = 60.0

    def __init__(self) -> None:
        self.seen: list[Sighting] = []

    def look(self, look: NodeLook) -> list[Sighting]:
        del look
        return self.seen


def watch_with(detector: Any, kind: str = "cpu_throttling") -> Watcher:
    ring = Ring(60.0, 2**20, 1.0)
    store = FindingStore("node-a")
    return Watcher(ring, store, FrameClock(), run_guarded, lambda event: None, {kind: detector})


def test_what_is_learned_is_curious_and_what_is_not_is_told() -> None:
    detector = Saying()
    watcher = watch_with(detector)
    severities = []
    for night in range(5):
        at = night * DAY_SECONDS + 3 * 3600.0
        detector.seen = [replace(NIGHTLY, onset=at)]
        watcher.take(look_at(at))
        severities.append(watcher.store.current()[0].severity)
        detector.seen = []
        watcher.take(look_at(at + 30))
        watcher.take(look_at(at + 3600))
    assert severities == ["hurt", "hurt", "hurt", "curious", "curious"]


def test_a_finding_ends_when_nothing_sure_is_seen_any_more() -> None:
    """A suspicion alone neither keeps it nor brings it back; a finding of an earlier run ends as well."""
    detector = Saying()
    watcher = watch_with(detector)
    detector.seen = [NIGHTLY]
    watcher.take(look_at(1000.0))
    detector.seen = [replace(NIGHTLY, is_sure=False)]
    for at in (1030.0, 1070.0, 1080.0):
        watcher.take(look_at(at))
    assert [one.state for one in watcher.store.recent()] == ["resolved"]
    again = watch_with(Saying())
    again.store.see(NIGHTLY, 900.0)
    again.take(look_at(1000.0))
    again.take(look_at(1100.0))
    assert again.store.current() == []


def test_looks_become_rarer_when_they_cost_too_much_or_the_node_is_busy() -> None:
    """Within the budget, and never more than a minute apart."""
    watcher = watch_with(Saying())
    watcher._pace(0.001)
    assert watcher.status.look_seconds == LOOK_SECONDS
    watcher.take(NodeLook(1.0, 10.0, (), {"cpu": 0.9}, 8, 1e9, 1e9))
    watcher._pace(0.001)
    assert watcher.status.look_seconds == 2 * LOOK_SECONDS
    for _ in range(50):
        watcher._pace(0.1)
    assert watcher.status.look_seconds == pytest.approx(0.1 / BUDGET_RATIO, rel=0.01)
    for _ in range(50):
        watcher._pace(10.0)
    assert watcher.status.look_seconds == LONGEST_SECONDS


def test_a_detector_that_breaks_does_not_end_the_watcher() -> None:
    """Its failure is said in the status; the thread goes on."""

    class Broken:
        quiet_seconds = 0.0
        looks = 0

        def look(self, look: NodeLook) -> list[Sighting]:
            del look
            self.looks += 1
            raise ZeroDivisionError("no such number")

    class Turns(FrameClock):
        def wait_until(self, deadline_mono_ns: int, stop: Stop) -> bool:
            trial.ring.accept(next(frames))
            return broken.looks >= 3

    broken = Broken()
    trial = PLANTS["kill"](SEED, 0.1, 2).replay
    frames = trial.frames()
    watcher = Watcher(
        trial.ring, FindingStore("n"), Turns(), run_guarded, lambda event: None, {"waste": broken}
    )
    watcher._run()
    assert broken.looks == 3
    assert watcher.status.last_failure == "ZeroDivisionError: no such number"


def test_a_ladder_is_bounded_and_remembers_lows_and_highs() -> None:
    """Two days at every ten seconds; the highest of each level is the truth's."""
    ladder = Ladder()
    for number in range(17_280):
        ladder.add(10.0 * number, float(number % 61))
    assert [len(level) for level in ladder.levels] == [BUCKETS] * 4
    assert {one.high for one in ladder.levels[2]} == {60.0}
    assert {one.low for one in ladder.levels[3]} == {0.0}
    assert ladder.look_back(0.0) == (float("-inf"), 0.0)
    assert ladder.look_back(float("inf")) == (60.0, 60.0)


def rise_of(values: Sequence[float]) -> Any:
    ladder = Ladder()
    for number, value in enumerate(values):
        ladder.add(10.0 * number, value)
    return find_rise(ladder.levels[0], 20.0, 5.0)


def test_a_rise_is_found_with_its_beginning_and_its_end() -> None:
    level, line = [100.0] * 20, [100.0 + number for number in range(40)]
    rise = rise_of([*level, *line])
    assert rise.since == pytest.approx(200.0, abs=40)
    assert rise.seconds_to(200.0) == pytest.approx(600.0, abs=60)
    assert rise_of([*line, *level, *level]) is None
    assert rise_of([100.0 + (number % 7) for number in range(60)]) is None


def test_what_slows_down_ends_below_its_limit() -> None:
    """Half of the way is left at every step: it never reaches twice its height."""
    rise = rise_of([100.0 - 100 * 0.97**number for number in range(50)])
    assert rise is None or rise.ends_at < 120.0


@pytest.mark.parametrize("seconds", [1, 3, 10, 49, 98, 103])
def test_a_kill_in_a_container_that_lives_on_is_counted_however_long_ago_the_last_look_was(
    seconds: int, tmp_path: Path
) -> None:
    """One kill is one, also where 1 / seconds * seconds is a little less."""
    node = FixtureNode("cgroup2-systemd", tmp_path)
    node.run()
    watcher = node.parts.watcher
    assert watcher is not None
    watcher.step()
    (path,) = node.root.glob(f"sys/fs/cgroup/**/*{WEB.container('app')}*/memory.events")
    path.write_text(path.read_text().replace("oom_kill 0", "oom_kill 1"))
    node.clock.advance(seconds * 1_000_000_000)
    node.tick()
    watcher.step()
    (finding,) = watcher.store.current()
    assert (finding.kind, finding.pod, finding.pod_uid) == ("oom_kill", WEB.name, WEB.uid)
