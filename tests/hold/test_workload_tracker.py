"""What workloads use: by the hour, of the memory bus, and how much they wait; unknown is not 0."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import examples

from nodescope.base.errors import ParseError
from nodescope.base.workload.pod_use import (
    HOURS,
    NodeWorkloads,
    PodUse,
    decode_hours,
    encode_hours,
    find_hour,
)
from nodescope.fpga.node_workloads import CHARACTERS, parse_workloads, render_workloads
from nodescope.hold.pods.bandwidth_split import BandwidthSplit
from nodescope.hold.pods.workload_tracker import NodeSample, WorkloadSample, WorkloadTracker

DAY = 86_400 * 19_000
USES = st.builds(
    PodUse,
    st.integers(0, 500),
    st.floats(0, 900).map(lambda value: float(f"{value:.3g}")),
    st.lists(st.none() | st.floats(0.01, 700), min_size=HOURS, max_size=HOURS).map(encode_hours),
    st.none() | st.floats(0.001, 500).map(lambda value: float(f"{value:.3g}")),
    st.none() | st.floats(0.001, 1).map(lambda value: float(f"{value:.3g}")),
    st.none() | st.floats(0.001, 1).map(lambda value: float(f"{value:.3g}")),
)
NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=60)


def watch(tracker: WorkloadTracker, hours: int, cores_at: Callable[[int], float]) -> None:
    """A look every ten minutes of one pod of `shop/web`, by the hour."""
    for minute in range(0, hours * 60, 10):
        cores = cores_at(minute // 60 % 24)
        tracker.observe(
            NodeSample(DAY + minute * 60, 4.0, None, None), {"shop/web": WorkloadSample(2, 2 * cores)}
        )


def test_cores_are_known_by_the_hour_of_the_day() -> None:
    tracker = WorkloadTracker()
    watch(tracker, 30, lambda hour: 4.0 if 8 <= hour < 18 else 0.5)
    found = tracker.read()
    assert found is not None
    use = found.uses["shop/web"]
    assert (use.pods, use.bandwidth, use.waits, use.gpu) == (2, None, None, None)
    assert find_hour(use.hours, 12, 0.0) == pytest.approx(4.0, rel=0.11)
    assert find_hour(use.hours, 3, 0.0) == pytest.approx(0.5, rel=0.11)


def test_an_hour_that_was_never_seen_is_not_zero() -> None:
    tracker = WorkloadTracker()
    watch(tracker, 2, lambda _: 3.0)
    found = tracker.read()
    assert found is not None
    assert decode_hours(found.uses["shop/web"].hours)[2:] == [None] * 22
    assert find_hour(found.uses["shop/web"].hours, 20, 7.5) == 7.5


def test_a_restarted_agent_goes_on_with_the_hours_that_it_wrote() -> None:
    tracker, heir = WorkloadTracker(), WorkloadTracker()
    watch(tracker, 24, lambda hour: 1.0 + hour)
    found = tracker.read()
    assert found is not None
    heir.restore(parse_workloads(render_workloads(found)))
    again = heir.read()
    assert again is not None
    assert again.uses["shop/web"].hours == found.uses["shop/web"].hours
    assert again.uses["shop/web"].pods == 0  # Until it is seen.


@examples(25)
@given(st.integers(0, 10**6))
def test_bandwidth_is_divided_among_those_who_use_it(seed: int) -> None:
    """forall loads that change by themselves: within a tenth, or 0.25, of what each core of a workload really moves."""
    truth = {"heavy": 8.0, "light": 0.5, "middle": 3.0}
    split, chance = BandwidthSplit(), random.Random(seed)
    for _ in range(400):
        cores = {name: chance.uniform(0.2, 4.0) for name in truth}
        moved = sum(truth[name] * used for name, used in cores.items())
        split.observe({**cores, "": 0.0}, moved * chance.gauss(1, 0.02))
    found = split.solve()
    assert found == {name: pytest.approx(factor, rel=0.1, abs=0.25) for name, factor in truth.items()}


def test_workloads_that_are_always_busy_together_share_what_they_move() -> None:
    split = BandwidthSplit()
    for _ in range(100):
        split.observe({"a": 2.0, "b": 2.0}, 12.0)
    assert split.solve() == {"a": pytest.approx(3.0, rel=0.05), "b": pytest.approx(3.0, rel=0.05)}


def test_a_workload_seen_for_a_moment_has_no_bandwidth() -> None:
    split = BandwidthSplit()
    split.observe({"a": 2.0}, 12.0)
    assert split.solve() == {}


def test_who_waits_when_others_do_not_is_told_apart() -> None:
    tracker = WorkloadTracker()
    for number in range(60):
        samples = {"d/fast": WorkloadSample(1, 1.0, 0.4), "d/slow": WorkloadSample(1, 1.0, 0.04)}
        tracker.observe(NodeSample(DAY + number * 20, 30.0, None, 0.5), samples)
    found = tracker.read()
    assert found is not None
    assert found.uses["d/fast"].waits == pytest.approx(0.8)
    assert found.uses["d/slow"].waits == pytest.approx(0.08)


def test_on_a_calm_node_nobody_is_said_to_be_patient() -> None:
    tracker = WorkloadTracker()
    for number in range(60):
        tracker.observe(NodeSample(DAY + number * 20, 1.0, None, 0.001), {"d/x": WorkloadSample(1, 1.0, 0.0)})
    found = tracker.read()
    assert found is not None
    assert found.uses["d/x"].waits is None


def test_beyond_the_bound_who_was_seen_longest_ago_is_dropped() -> None:
    tracker = WorkloadTracker(most=3)
    for number in range(10):
        tracker.observe(
            NodeSample(DAY + number * 20, 1.0, 5.0, None), {f"d/job-{number}": WorkloadSample(1, 1.0)}
        )
    found = tracker.read()
    assert found is not None
    assert list(found.uses) == ["d/job-7", "d/job-8", "d/job-9"]
    assert tracker.running() == {"d/job-9"}


@examples(200)
@given(st.dictionaries(NAMES, USES, max_size=20))
def test_what_is_written_is_read(uses: dict[str, PodUse]) -> None:
    """forall workloads: the text has at most 8 KiB, and says what was measured."""
    text = render_workloads(NodeWorkloads(1e9, uses))
    assert len(text) <= CHARACTERS
    assert parse_workloads(text).uses == uses


def test_where_there_is_no_room_those_that_use_least_are_left_out() -> None:
    uses = {f"namespace-{number}/workload": PodUse(1, float(number)) for number in range(300)}
    text = render_workloads(NodeWorkloads(1e9, uses))
    found = parse_workloads(text).uses
    assert len(text) <= CHARACTERS
    assert len(found) > 60
    assert min(use.cores for use in found.values()) == 300 - len(found)


@pytest.mark.parametrize(
    "text",
    ["x", "[]", "{}", '{"version":2}', '{"version":1,"workloads":[]}', '{"version":1,"workloads":{}}'],
)
def test_what_is_no_such_annotation_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        parse_workloads(text)


@pytest.mark.parametrize(
    "use",
    [
        '"x"',
        "{}",
        '{"pods":-1,"cores":1}',
        '{"pods":1,"cores":-1}',
        '{"pods":1,"cores":1e9}',
        '{"pods":1,"cores":NaN}',
        '{"pods":true,"cores":1}',
    ],
)
def test_an_entry_that_makes_no_sense_is_left_out(use: str) -> None:
    """The others of its node count."""
    text = '{"version":1,"updatedAt":1,"workloads":{"d/bad":%s,"d/good":{"pods":1,"cores":2}}}'
    assert parse_workloads(text % use).uses == {"d/good": PodUse(1, 2.0)}
