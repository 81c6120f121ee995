"""Expected cost in ms: magnitude decides, confidence fades, the unknown is neutral, what is on its way counts."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support import WALL_NS
from tests.use.scheduler.world import ENABLED, NOW_MS, World, bind, loaded, used

from nodescope.fpga.node_load import WINDOW_KEY, NodeLoad, render_load
from nodescope.fpga.state import KEY, render_state
from nodescope.fpga.tracker import FpgaEvent, FpgaTracker
from nodescope.use.scheduler.explain import DECISIONS, ROWS, THINNED, Decisions
from nodescope.use.scheduler.freshness import judge_age
from nodescope.use.scheduler.host_cost import derive_queue
from nodescope.use.scheduler.pod_request import PodRequest
from nodescope.use.scheduler.rating import BEST, NodeRating, derive_score
from nodescope.use.scheduler.wire import parse_call


def test_the_node_with_the_bitstream_is_best(world: World) -> None:
    world.node("has", loaded("def"))
    world.node("other", loaded("abc"))
    assert world.scores(bitstream="def") == {"has": BEST, "other": BEST - 329}
    assert world.explain()["other"]["terms_ms"]["reconfiguration"] == 10_000


def test_a_pod_without_a_bitstream_goes_where_the_device_is_idle(world: World) -> None:
    world.node("idle", used(1000))
    world.node("busy", used(200_000))
    found = world.scores()
    assert found["idle"] == BEST > found["busy"]


def test_magnitude_decides_not_rank(world: World) -> None:
    """One ms against ten is no difference; the original's ranks made it the whole one."""
    world.node("a", used(1))
    world.node("b", used(10))
    world.node("c", used(20))
    assert set(world.scores().values()) == {BEST}


def test_a_short_load_is_not_worth_a_long_wait(world: World) -> None:
    """10 ms to load against a device that is busy nine tenths of the time; and the other way round."""
    world.node("warm", loaded("def", 10), *[used(2700)] * 100)
    world.node("cold", loaded("abc", 10), used(2700))
    assert world.scores(bitstream="def")["cold"] == BEST
    slow = World()
    slow.node("warm", loaded("def", 60_000), *[used(900)] * 100)
    slow.node("cold", loaded("abc", 60_000), used(900))
    assert slow.scores(bitstream="def")["warm"] == BEST


def test_a_bitstream_s_own_time_to_load_counts(world: World) -> None:
    """Measured on one node, it is what the others are expected to take."""
    world.node("measured", loaded("slow", 30_000, 50), loaded("fast", 20, 2))
    world.node("empty", used(1000))
    world.scores(bitstream="slow")
    assert world.explain()["empty"]["terms_ms"]["reconfiguration"] == 30_000
    world.scores(bitstream="fast")
    assert world.explain()["empty"]["terms_ms"]["reconfiguration"] == 20


def test_a_bitstream_that_others_followed_may_be_gone(world: World) -> None:
    world.node("newest", loaded("def", 1000, 1))
    world.node("followed", loaded("def", 1000, 5), loaded("abc", 1000, 2))
    world.scores(bitstream="def")
    found = world.explain()
    assert found["newest"]["facts"]["warm_ratio"] == 1
    assert found["followed"]["facts"]["warm_ratio"] == 0.7


def test_a_bitstream_stays_until_another_comes(world: World) -> None:
    """The collector forgets it after a minute; the device does not."""
    world.node("keeps", loaded("def"))
    world.node("other", used(1))
    world.clock.advance(70_000_000_000)
    world.node("keeps", used(1))
    world.node("other", used(1))
    assert world.scores(bitstream="def")["keeps"] == BEST
    assert world.scores(bitstream="def")["other"] < BEST


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("{", "not JSON"),
        ('{"version": 9}', "version"),
        ('{"version": 1, "recentUsage": 0}', "does not say when"),
    ],
)
def test_a_broken_annotation_is_neutral(world: World, text: str, word: str) -> None:
    """Between the best and the worst of those that are known, and it says why."""
    world.node("idle", used(1000))
    world.node("busy", *[used(2600)] * 100)
    world.annotate("broken", {KEY: text})
    found = world.scores()
    assert found["idle"] == BEST > found["broken"] > found["busy"]
    assert word in world.explain()["broken"]["why"]


def test_a_stale_node_is_never_the_best(world: World) -> None:
    """It was the idle one, five minutes ago."""
    world.node("stale", used(1))
    world.clock.advance(301_000_000_000)
    tracker = FpgaTracker(world.clock)
    tracker.accept(FpgaEvent(world.clock.wall_ns() // 10**6, usage_ms=150_000))
    world.annotate("busy", {KEY: render_state(tracker.read())})
    found = world.scores()
    assert found["busy"] == BEST
    assert 0 < found["stale"] < BEST
    assert "stale: written 301 s ago" in world.explain()["stale"]["why"]


def test_where_nothing_is_known_all_are_equal(world: World) -> None:
    for name in ("a", "b"):
        world.annotate(name, {})
    assert len(set(world.scores().values())) == 1


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_confidence_only_falls_with_age(one: float, two: float) -> None:
    """forall ages a <= b that are not ahead: judge_age(a) >= judge_age(b), within 0 and 1"""
    low, high = sorted((one, two))
    for age in (low, high):
        assert 0 <= judge_age(age)[0] <= 1
        assert bool(judge_age(age)[1]) == (judge_age(age)[0] < 1)
    if low >= -60:
        assert judge_age(low)[0] >= judge_age(high)[0]


@given(st.floats(0, 10), st.floats(0, 10))
def test_waiting_only_grows(one: float, two: float) -> None:
    low, high = sorted((one, two))
    assert 0 <= derive_queue(low) <= derive_queue(high)


@given(st.floats(0, 1e12), st.floats(0, 1e12), st.floats(1, 1e6))
def test_a_score_is_whole_and_falls_with_cost(one: float, two: float, scale: float) -> None:
    low, high = sorted((one, two))
    assert BEST >= derive_score(low, scale) >= derive_score(high, scale) >= 0
    assert isinstance(derive_score(high, scale), int)
    if scale / 20 <= low and 2 * low <= high and derive_score(low, scale):
        assert derive_score(low, scale) > derive_score(high, scale)


def test_a_wave_spreads_before_any_annotation_changes(world: World) -> None:
    """Twelve pods in one instant: the warm node first, then the others as well."""
    for name in ("a", "b", "c"):
        world.node(name, loaded("def" if name == "b" else "abc"))
    chosen = []
    for number in range(12):
        found = world.scores(f"p{number}", "def")
        best = max(found, key=lambda name: found[name])
        chosen.append(best)
        bind(world, f"p{number}", best, "def")
    assert chosen[0] == "b"
    assert set(chosen) == {"a", "b", "c"}
    assert max(chosen.count(name) for name in "abc") <= 6


def test_the_watch_corrects_where_a_pod_went(world: World) -> None:
    """We favoured one node, kube-scheduler took another."""
    world.node("a", used(1))
    world.node("b", used(1))
    world.scores("first")
    assert set(world.placed.arriving("fpga")) == {"a"}
    bind(world, "first", "b")
    assert set(world.placed.arriving("fpga")) == {"b"}


def test_a_pod_that_ended_or_went_is_in_nobody_s_way(world: World) -> None:
    item = bind(world, "short", "a")
    bind(world, "short", "a", phase="Succeeded")
    assert world.placed.arriving("fpga") == {}
    world.placed.change(item)
    world.placed.remove(item)
    assert world.placed.arriving("fpga") == {}
    assert len(world.placed) == 0


def test_a_pod_that_is_one_session_is_waited_for_once(world: World) -> None:
    """
    Ten sessions of 2 s by ten pods: one that is there costs 2 s, and what the ended ones did costs nothing.

    The same sessions by two pods: each will come back for more, so the busy device itself is dear.
    """
    for pods, queue_ms, pod_ms in ((10, 0, 2000), (2, 142.9 * 0.8, 2000 * 0.2)):
        one = World()
        one.node("a", *[used(2000)] * 10)
        for number in range(pods):
            bind(one, f"p{number}", "a")
            bind(one, f"p{number}", "a", phase="Succeeded" if number else "Running")
        one.scores("next")
        terms = one.explain("next")["a"]["terms_ms"]
        assert terms["wait"] == pytest.approx(queue_ms, abs=0.1)
        more_ms = 2000 * (derive_queue(20 / 300 + 0.25) - derive_queue(20 / 300))
        assert terms["arriving"] == pytest.approx(pod_ms + (1 - pods / 10) * more_ms, abs=0.1)
    assert world.placed.bound_lately() == {}


def test_pods_bound_lately_are_counted_for_five_minutes(world: World) -> None:
    bind(world, "p", "a")
    bind(world, "p", "a", phase="Succeeded")
    assert world.placed.bound_lately() == {"a": 1}
    world.clock.advance(301 * 10**9)
    assert world.placed.bound_lately() == {}


def test_what_is_on_its_way_fades_as_the_window_fills(world: World) -> None:
    bind(world, "p", "a")
    assert world.placed.arriving("fpga")["a"].pods == 1
    world.clock.advance(150_000_000_000)
    assert world.placed.arriving("fpga")["a"].pods == pytest.approx(0.5)
    world.clock.advance(151_000_000_000)
    assert world.placed.arriving("fpga") == {}
    assert world.placed.settled("a") == 1


def test_an_answer_that_nobody_followed_is_forgotten(world: World) -> None:
    world.node("a", used(1))
    world.scores("lost")
    assert len(world.placed) == 1
    world.clock.advance(31_000_000_000)
    assert world.placed.arriving("fpga") == {}


def test_a_pod_is_not_in_its_own_way(world: World) -> None:
    """Asked about twice, because the first binding failed."""
    world.node("a", used(1))
    first = world.scores()
    world.explain()
    assert world.scores() == first
    assert world.explain()["a"]["facts"]["in_flight"] == 0


def test_a_new_extender_knows_what_was_bound_before_it_came(world: World) -> None:
    """By the pod's own condition: half of the horizon is over."""
    item = bind(world, "p", "a")
    at = "2023-07-22T04:24:10Z"
    item["status"]["conditions"] = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": at}]
    world.placed.replace([item])
    assert world.placed.arriving("fpga")["a"].pods == pytest.approx(0.5, abs=0.01)


def test_pressure_and_health_of_the_host_count_for_fpga_pods(world: World) -> None:
    """Two devices alike, one host starved of memory."""
    for name, stalled, health in (("calm", 0.0, 9.0), ("starved", 0.6, 2.0)):
        tracker = FpgaTracker(world.clock)
        tracker.accept(used(1000))
        load = NodeLoad(
            WALL_NS / 1e9, 20, health, {"mean_mem_pressure": stalled, "mean_mem_bw_util": stalled}
        )
        world.annotate(name, {KEY: render_state(tracker.read()), WINDOW_KEY: render_load(load)})
    found = world.scores()
    assert found["calm"] == BEST > found["starved"]
    assert {"mem_pressure", "mem_bw_util", "health"} <= set(world.explain()["starved"]["terms_ms"])


def test_gpu_pods_go_by_gpu_load(world: World) -> None:
    world.load("idle", 5.0, mean_gpu_util=0.1, mean_gpu_mem_util=0.1)
    world.load("busy", 9.0, mean_gpu_util=0.9, mean_gpu_mem_util=0.9)
    world.load("none", 9.0, mean_cpu_util=0.1)
    containers = [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}]
    found = world.scores_of(world.call("p", {}, containers=containers))
    assert found["idle"] == BEST > found["none"] > found["busy"]
    assert "no GPU load" in world.explain()["none"]["why"]


def test_balance_pods_go_by_health_and_load(world: World) -> None:
    world.load("well", 9.5, mean_cpu_util=0.2, mean_cpu_pressure=0.0)
    world.load("ill", 2.0, mean_cpu_util=0.95, mean_cpu_pressure=0.5)
    world.annotate("mute", {})
    found = world.scores_of(world.call("p", {"nodescope.io/balance": "true"}))
    assert found["well"] == BEST > found["mute"] > found["ill"]


def test_plain_pods_have_no_opinion_and_leave_no_trace(world: World) -> None:
    world.node("a", used(1))
    world.node("b", used(200_000))
    assert world.scores_of(world.call("p", {})) == {"a": 0, "b": 0}
    assert world.extender.decisions.keys() == []
    assert len(world.placed) == 0


def test_the_original_s_ranks() -> None:
    """Its own example: sums (0, 0), (5, 5), (10, 10); with 1-2-2 and no bitstream 100, 73 and 46 percent."""
    world = World("rank")
    for name, ms in (("a", 0), ("b", 5), ("c", 10)):
        world.node(name, FpgaEvent(NOW_MS, usage_ms=ms), FpgaEvent(NOW_MS, reconfiguration_ms=ms))
    world.annotate("broken", {KEY: "{"})
    assert world.scores() == {"a": 100, "b": 73, "c": 46, "broken": 0}
    assert [world.explain()[name]["facts"]["percent"] for name in "abc"] == [100, 73, 46]


def test_the_original_s_locality_is_a_fifth() -> None:
    world = World("rank")
    world.node("has", loaded("def"))
    world.node("other", loaded("abc"))
    assert world.scores(bitstream="def") == {"has": 100, "other": 80}


def test_another_vendor_is_refused_and_silence_passes(world: World) -> None:
    key = "fpga-scheduling.io/fpga-vendor"
    world.node("amd", used(1), labels={key: "amd"})
    world.node("intel", used(1), labels={key: "intel"})
    world.node("silent", used(1))
    call = world.call("p", {**ENABLED, key: "amd"})
    answer = json.loads(world.extender.filter(call))
    assert answer["NodeNames"] == ["amd", "silent"]
    assert answer["FailedAndUnresolvableNodes"] == {"intel": "fpga vendor is not amd"}
    assert answer["Error"] == ""


def test_a_node_that_the_watch_has_not_seen_passes_and_is_neutral(world: World) -> None:
    world.node("known", used(1))
    call = parse_call(
        json.dumps({"pod": {"metadata": {"labels": ENABLED}}, "nodenames": ["known", "new"]}).encode()
    )
    assert json.loads(world.extender.filter(call))["NodeNames"] == ["known", "new"]
    assert world.scores_of(call) == {"known": BEST, "new": BEST - 119}


def test_a_thousand_decisions_are_kept_and_the_older_ones_with_their_best_nodes() -> None:
    """More would be memory without bounds: a decision has a row for every node."""
    decisions = Decisions()
    ratings = [NodeRating(f"n{number:03}", score=number) for number in range(100)]
    for number in range(DECISIONS + 5):
        pod = PodRequest("d", f"p{number}", f"u{number}", "fpga")
        decisions.filtered(pod, "cost", 0, {f"r{other}": "another vendor" for other in range(50)})
        decisions.scored(pod, "cost", 0, ratings)
    keys = decisions.keys()
    assert (keys[0], keys[-1], len(keys)) == (f"d/p{DECISIONS + 4}", "d/p5", DECISIONS)
    newest, oldest = decisions.find(keys[0]), decisions.find(keys[-1])
    assert newest is not None
    assert oldest is not None
    assert len(newest.ratings) == newest.rated == oldest.rated == 100
    assert [one.score for one in oldest.ratings] == list(range(99, 99 - THINNED, -1))
    assert decisions._rows == sum(one.rows for one in decisions._kept.values()) <= ROWS


def test_a_version_1_annotation_is_dated_by_the_server(world: World) -> None:
    """It does not say when it was written; the object's managed fields do."""
    text = json.dumps({"version": 1, "recentUsage": 0, "recentBitstreamIdentifiers": {"def": {}}})
    fields: dict[str, Any] = {"f:metadata": {"f:annotations": {".": {}, f"f:{KEY}": {}}}}
    managers = [{"manager": "collector", "time": "2023-07-22T04:26:30Z", "fieldsV1": fields}, {"bad": 1}, 5]
    world.nodes.change({"metadata": {"name": "old", "annotations": {KEY: text}, "managedFields": managers}})
    world.node("new", loaded("abc"))
    assert world.scores(bitstream="def")["old"] == BEST
    assert world.explain()["old"]["confidence"] == 1
