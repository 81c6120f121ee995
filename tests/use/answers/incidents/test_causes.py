"""Generated nodes whose cause is known: it is named, with its victims, and nothing is invented."""

from dataclasses import replace

import numpy as np
import pytest
from tools.incidents.direct import make_table
from tools.incidents.stories import CLASSES, KINDS, Generated, generate

from nodescope.use.answers.incidents.explain import find_incidents
from nodescope.use.answers.incidents.incident import Incident
from nodescope.use.answers.incidents.loss import NETWORK_REST, Departure, find_fallen
from nodescope.use.answers.incidents.sentence import render_incident
from nodescope.use.answers.incidents.shift import Shift
from nodescope.use.answers.incidents.signal import BY_NAME, LACKED
from nodescope.use.answers.incidents.table import spread_back
from nodescope.use.answers.incidents.together import find_fallen_together

# None of the seeds on which the score or its confidence was fitted or is reported.
SEED = 7_000


def no_history(row: int, signal: str) -> None:
    del row, signal


def told_of(node: Generated, focus: str = "") -> list[Incident]:
    table, kills = make_table(node)
    names = [row.name for row in table.rows]
    place = names.index(f"shop/{focus}") if focus else None
    found, _ = find_incidents(table, kills, no_history, place)
    return found


def make_node(cause: str, kind: str = "busy", seed: int = SEED) -> Generated:
    return generate(seed, kind, cause, containers=40)


@pytest.mark.parametrize("cause", CLASSES)
def test_the_true_cause_comes_first(cause: str) -> None:
    """And begins when it was planted, within a minute; its figures are possible ones."""
    node = make_node(cause)
    first = told_of(node)[0]
    assert first.cause is not None
    assert first.cause.workload == f"shop/{node.truth.workload}"
    planted_ms = make_table(node)[0].time_of(node.truth.onset)
    if cause != "leak":
        assert abs(first.from_ms - planted_ms) <= 60_000
    for change in (*first.causes, *first.victims):
        assert change.after is not None
        assert change.after >= 0
    assert node.truth.workload in render_incident(first)


def hide_falls(node: Generated) -> None:
    """The traffic of every service is so uneven that none shows the fall by itself."""
    random = np.random.default_rng(1)
    for one in node.wishes:
        if one.kind == "service" and one.workload != node.truth.workload:
            size = len(one.got["network"])
            one.got["network"] = (
                one.got["network"]
                * np.repeat(np.exp(0.35 * random.standard_normal(size // 24 + 1)), 24)[:size]
            )


def test_what_all_lose_at_once_is_seen_where_no_series_shows_it() -> None:
    """A full link takes a third from everybody, which is less than the noise of each."""
    node = make_node("network")
    hide_falls(node)
    table, kills = make_table(node)
    assert not find_fallen(table, "network", NETWORK_REST)
    found, _ = find_incidents(table, kills, no_history)
    first = found[0]
    assert first.cause is not None
    assert first.cause.workload == f"shop/{node.truth.workload}"
    assert first.resource == "network"
    assert first.victims_count >= 5
    assert all((one.after or 0) < (one.before or 0) for one in first.victims)
    # Asked about one of those that lost, the same one did it, and only its own loss is told.
    victim = first.victims[-1].workload
    place = [row.name for row in table.rows].index(victim)
    asked, _ = find_incidents(table, kills, no_history, place)
    taken = next(one for one in asked if one.kind == "taken")
    assert taken.cause is not None
    assert taken.cause.workload == first.cause.workload
    assert {one.workload for one in taken.victims} == {victim}


def test_traffic_that_goes_from_one_to_another_is_no_loss_of_all() -> None:
    """One that falls when another rises gave it its work; the others go on as before."""
    node = make_node("network")
    table, _ = make_table(node)
    traffic = table.signals["network"]
    taker = [row.name for row in table.rows].index(f"shop/{node.truth.workload}")
    # All others as they were before the onset; one of them hands its traffic over.
    at, span = node.truth.onset, table.steps - node.truth.onset
    rise = np.nanmax(traffic[taker]) / 20
    for row in range(len(traffic)):
        traffic[row, at:] = traffic[row, at - span : at]
    one = int(
        np.nanargmax(
            np.where(np.arange(len(traffic)) == taker, -1, np.median(np.nan_to_num(traffic), axis=1))
        )
    )
    traffic[one, at:] *= 0.2
    traffic[taker, at:] += rise
    shift = Shift(taker, at, table.steps, 0.0, float(rise), is_open=True, alike=0)
    assert find_fallen_together(table, Departure("network", shift, 0.0)) == []


def test_memory_bandwidth_is_taken_on_a_node_with_idle_cores() -> None:
    """A few cores can fill the memory: whether the others are busy is another question."""
    node = generate(5_507, "quiet", "bandwidth")
    table, kills = make_table(node)
    assert "cache_misses" not in table.signals
    found, _ = find_incidents(table, kills, no_history)
    assert found[0].resource == "memory bandwidth"
    assert found[0].cause is not None
    assert found[0].cause.workload == f"shop/{node.truth.workload}"


@pytest.mark.parametrize("kind", KINDS)
def test_noise_is_no_incident(kind: str) -> None:
    """Jobs by the clock, a crash loop that was there before and hundreds of short jobs are not told."""
    assert told_of(make_node("", kind)) == []


@pytest.mark.parametrize(("rise", "is_told"), [(0.03, True), (0.008, False)])
def test_a_slight_loss_is_explained_to_who_asks_about_it(rise: float, is_told: bool) -> None:
    """3 % more waiting is no news of a node; asked about that container, the one that took the CPU is named."""
    node = make_node("cpu")
    victim = next(one for one in told_of(node)[0].victims if one.metric == "pressure_cpu")
    table, kills = make_table(node)
    place = [row.name for row in table.rows].index(victim.workload)
    for name, signal in BY_NAME.items():
        if signal in LACKED and name in table.signals:
            table.signals[name] = table.signals[name] * (rise / ((victim.after or 0) - (victim.before or 0)))
    found, _ = find_incidents(table, kills, no_history, place)
    taken = [one.cause.workload for one in found if one.kind == "taken" and one.cause]
    assert taken == ([f"shop/{node.truth.workload}"] if is_told else [])


def test_victims_stand_below_their_cause() -> None:
    """Their own waiting is no incident of its own, and never their cause."""
    node = make_node("cpu")
    found = told_of(node)
    (first,) = [one for one in found if one.victims]
    assert first.victims_count > 5
    assert all(victim.workload != first.causes[0].workload for victim in first.victims)
    assert all(victim.overlap is not None and victim.overlap > 0.4 for victim in first.victims)
    causes = {one.cause.workload for one in found if one.cause}
    assert not causes & {victim.workload for victim in first.victims}


def test_a_victim_that_asks_is_told_who_did_it() -> None:
    """The neighbour is named, with the lag; and who suffered nothing gets a no."""
    node = make_node("cpu")
    victim = told_of(node)[0].victims[0].workload.removeprefix("shop/")
    (mine,) = told_of(node, victim)
    assert mine.cause is not None
    assert mine.cause.workload == f"shop/{node.truth.workload}"
    assert mine.victims[0].lag_seconds is not None
    calm = make_node("throttled")
    other = next(one.workload for one in calm.wishes if one.workload != calm.truth.workload)
    assert told_of(calm, other) == []


def test_what_it_did_every_day_is_less_news() -> None:
    """A job that took as much twenty times in the day before is not the cause that is told first."""
    node = make_node("cpu")
    table, kills = make_table(node)
    row = [row.name for row in table.rows].index(f"shop/{node.truth.workload}")
    high = float(np.nanmax(table.signals["cpu"][row]))
    habit = np.tile([0.0, high], 20)
    fresh = find_incidents(table, kills, no_history)[0][0]
    known = find_incidents(table, kills, lambda place, _: habit if place == row else None)[0]
    again = [one for one in known if one.cause and one.cause.workload == fresh.causes[0].workload]
    assert not again or (again[0].weight or 0) < 0.5 * (fresh.weight or 0)


def test_a_kill_below_its_own_limit_is_not_its_own_fault() -> None:
    """The kernel took what another had filled: the killed one is a victim, the other the cause."""
    node = make_node("memory")
    table, _ = make_table(node)
    leaking = make_node("leak")
    (kill,) = make_table(leaking)[1]
    taker = [row.name for row in table.rows].index(f"shop/{node.truth.workload}")
    victim = 0 if taker else 1
    at_ms = table.time_of(node.truth.onset) + 120_000
    shot = replace(
        kill, row=victim, at_ms=at_ms, life=table.rows[victim].lives[0], limit_bytes=1e9, most_bytes=2e8
    )
    first = find_incidents(table, [shot], no_history)[0][0]
    assert first.cause is not None
    assert first.cause.workload == f"shop/{node.truth.workload}"
    assert "oom_kill" in {one.metric for one in first.victims}
    own = find_incidents(table, [replace(shot, most_bytes=0.99e9)], no_history)[0]
    assert table.rows[victim].name in {one.causes[0].workload for one in own if one.kind == "oom_kill"}


def test_without_pressure_the_fall_of_the_others_tells() -> None:
    """cgroup v1 does not say who waits."""
    node = make_node("cpu")
    node.has_pressure = False
    first = told_of(node)[0]
    assert first.cause is not None
    assert first.cause.workload == f"shop/{node.truth.workload}"
    assert {one.metric for one in first.victims} <= {"cpu"}


def test_where_no_pressure_is_measured_the_cores_wait_for_the_disk_tells() -> None:
    """cgroup v1, and nobody else was writing: the disk's taker is named because of I/O wait, and only then."""
    node = make_node("disk")
    node.has_pressure = False
    table, kills = make_table(node)
    taker = [row.name for row in table.rows].index(f"shop/{node.truth.workload}")
    for name in ("disk", "disk_operations"):
        others = np.arange(len(table.rows)) != taker
        table.signals[name][others] = np.where(np.isfinite(table.signals[name][others]), 1e4, np.nan)
    told = {one.resource for one in find_incidents(table, kills, no_history)[0]}
    assert "disk" in told
    table.io_wait = None
    assert "disk" not in {one.resource for one in find_incidents(table, kills, no_history)[0]}


def test_where_no_pressure_is_measured_the_run_queue_tells_of_the_cpu() -> None:
    """cgroup v1, and everybody else used as much as before: named because tasks queued up, and only then."""
    node = make_node("cpu")
    node.has_pressure = False
    table, kills = make_table(node)
    taker = [row.name for row in table.rows].index(f"shop/{node.truth.workload}")
    others = np.arange(len(table.rows)) != taker
    used = table.signals["cpu"][others]
    before = np.nanmedian(used[:, : node.truth.onset], axis=1, keepdims=True)
    table.signals["cpu"][others] = np.where(np.isfinite(used), np.nan_to_num(before), np.nan)
    assert table.run_queue is not None
    told = [one for one in find_incidents(table, kills, no_history)[0] if one.kind == "taken"]
    assert [one.resource for one in told] == ["cpu"]
    table.run_queue = np.zeros_like(table.run_queue)
    assert not [one for one in find_incidents(table, kills, no_history)[0] if one.kind == "taken"]


def test_who_stands_still_lost_more_than_who_waits() -> None:
    """The same incident weighs more where `full` rose with `some`; a fall that nobody measured weighs nothing."""
    node = make_node("disk")
    table, kills = make_table(node)
    whole = find_incidents(table, kills, no_history)[0][0]
    for name in ("cpu", "memory", "io"):
        del table.signals[f"pressure_{name}_full"]
    part = find_incidents(table, kills, no_history)[0][0]
    assert whole.causes[0].workload == part.causes[0].workload
    assert (whole.weight or 0) > (part.weight or 0)
    assert [one.metric for one in whole.victims] == [one.metric for one in part.victims]


def test_a_fall_on_another_gpu_is_not_the_takers_doing() -> None:
    node = make_node("gpu")
    table, kills = make_table(node)
    taker = [row.name for row in table.rows].index(f"shop/{node.truth.workload}")
    assert find_incidents(table, kills, no_history)[0][0].resource == "GPU"
    table.gpus[taker] = frozenset({"GPU-other"})
    assert "GPU" not in {one.resource for one in find_incidents(table, kills, no_history)[0]}


@pytest.mark.parametrize(
    ("cause", "signal", "high"), [("network", "tcp_retransmits", 80.0), ("cpu", "tcp_refused", 30.0)]
)
def test_a_pod_that_sends_again_or_refuses_connections_is_a_victim(
    cause: str, signal: str, high: float
) -> None:
    """Whom the kernel counts segments sent again, or connections that nobody accepted, lacks what another took."""
    node = make_node(cause)
    table, kills = make_table(node)
    names = [row.name for row in table.rows]
    taker = names.index(f"shop/{node.truth.workload}")
    before = find_incidents(table, kills, no_history)[0][0]
    known = {one.workload for one in (*before.causes, *before.victims)}
    hurt = next(place for place, name in enumerate(names) if name not in known)
    curve = np.zeros((len(names), table.steps))
    curve[hurt, node.truth.onset : node.truth.onset + 60] = high
    table.signals[signal] = curve
    first = find_incidents(table, kills, no_history)[0][0]
    assert first.causes[0].workload == names[taker]
    assert signal not in {one.metric for one in before.victims}
    assert (names[hurt], signal) in {(one.workload, one.metric) for one in first.victims}
    assert (first.weight or 0) > (before.weight or 0)


def test_what_is_read_every_half_minute_holds_for_the_time_since_the_reading_before() -> None:
    """Otherwise five of six steps would be missing, and a pod would count as hardly there."""
    nothing = float("nan")
    curves = np.array([[nothing] * 5 + [6.0] + [nothing] * 5 + [9.0] + [nothing] * 8])
    spread = spread_back(curves, 6)[0]
    assert spread[:12].tolist() == [6.0] * 6 + [9.0] * 6
    assert np.isnan(spread[12:]).all(), "nothing is known yet of the time after the last reading"
    assert np.array_equal(spread_back(curves, 0), curves, equal_nan=True)
