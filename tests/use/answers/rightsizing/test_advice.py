"""What is recommended from which facts; none of it reads an archive."""

import math
from dataclasses import replace
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from nodescope.use.answers.rightsizing.advice import (
    ENOUGH_SECONDS,
    FITS,
    MIB,
    NOT_YET,
    SIZED,
    UNKNOWN,
    advise,
    round_bytes,
    round_cores,
)
from nodescope.use.answers.rightsizing.need import ContainerNeed, merge_needs
from nodescope.use.answers.rightsizing.patch import KINDS, render_patch
from nodescope.use.answers.rightsizing.sentence import render_advice, render_risk, render_total

DAY_MS = 86_400_000
GIB = 1024 * MIB
NEED = ContainerNeed(
    node="n1",
    namespace="shop",
    workload="web",
    kind="Deployment",
    container="app",
    replicas=3,
    runs=3,
    first_ms=1_772_000_000_000,
    last_ms=1_772_000_000_000 + 2 * DAY_MS,
    seen_ms=2 * DAY_MS,
    is_specified=True,
    cpu_request=2.0,
    cpu_limit=4.0,
    memory_request=4 * GIB,
    memory_limit=4 * GIB,
    cpu_mean=0.2,
    cpu_busy=0.5,
    cpu_most=0.8,
    is_cpu_exact=True,
    throttled=0.0,
    memory_most=600 * MIB,
    is_cache_known=True,
    cache_mean=20 * MIB,
    growth=1.0,
    oom_kills=0,
    killed_at=None,
)


def test_a_day_of_little_use_is_sized_with_what_it_saves() -> None:
    advice = advise(NEED)
    assert advice.state == SIZED
    assert (advice.cpu_request, advice.cpu_limit) == (0.55, 1.2)
    assert advice.memory_request == 696 * MIB
    assert advice.memory_limit == 784 * MIB
    assert advice.saved_cores == pytest.approx(3 * 1.45)
    assert advice.saved_bytes == 3 * (4 * GIB - 696 * MIB)
    sentence = render_advice(advice)
    assert '"shop/web" (container "app")' in sentence
    assert "request 0.55 cores (now 2) and 696 MiB (now 4 GiB)" in sentence
    assert "for each of 3 replicas; saves 4.35 cores and 9.96 GiB" in sentence


def test_less_than_a_day_is_not_yet_and_says_from_when_on() -> None:
    advice = advise(replace(NEED, seen_ms=3 * 3_600_000))
    assert advice.state == NOT_YET
    assert advice.cpu_request is None
    assert advice.saved_cores is None
    assert advice.ready_ms == NEED.last_ms + round(1000 * ENOUGH_SECONDS) - 3 * 3_600_000
    assert "not yet, it was seen for 3 h, which is less than a day; from 2026-02-" in render_advice(advice)
    assert render_patch([advice]) == "# nothing to change\n"


def test_an_oom_kill_raises_the_limit() -> None:
    """Killed at its limit, more was wanted than was seen."""
    killed = replace(
        NEED, oom_kills=2, killed_at=float(GIB), memory_limit=float(GIB), memory_request=float(GIB)
    )
    advice = advise(killed)
    assert advice.memory_limit == 1.5 * GIB
    assert advice.memory_request == GIB
    assert "OOM-killed 2 times at a limit of 1 GiB" in render_risk(advice)


def test_a_limit_that_held_it_back_is_raised_and_the_request_is_not_lowered() -> None:
    held = replace(NEED, cpu_limit=0.5, cpu_request=0.4, cpu_busy=0.2, cpu_most=0.5, throttled=0.3)
    advice = advise(held)
    assert advice.cpu_limit == 0.75
    assert advice.cpu_request == 0.4
    assert "held it back in 30 % of the scheduler's periods" in render_risk(advice)


def test_no_cpu_limit_is_invented() -> None:
    assert advise(replace(NEED, cpu_limit=None)).cpu_limit is None


@pytest.mark.parametrize(("is_specified", "said"), [(True, "now none"), (False, "now not known")])
def test_no_request_is_no_request_of_zero(is_specified: bool, said: str) -> None:
    """Missing is not zero: nothing is saved, and whether nobody asked or nobody knows is told apart."""
    advice = advise(replace(NEED, cpu_request=None, memory_request=None, is_specified=is_specified))
    assert advice.saved_cores is None
    assert advice.saved_bytes is None
    assert said in render_advice(advice)
    assert ("the scheduler counts it as nothing" in render_advice(advice)) is is_specified


def test_what_was_not_measured_is_not_sized() -> None:
    advice = advise(replace(NEED, cpu_busy=None, memory_most=None))
    assert advice.state == UNKNOWN
    assert "cannot be told" in render_advice(advice)


def test_what_fits_is_left_alone() -> None:
    sized = advise(NEED)
    fitting = replace(
        NEED,
        cpu_request=sized.cpu_request,
        cpu_limit=sized.cpu_limit,
        memory_request=sized.memory_request,
        memory_limit=sized.memory_limit,
    )
    assert advise(fitting).state == FITS


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"growth": 1.3}, "its memory still grows (30 % more"),
        ({"cache_mean": GIB}, "1 GiB of page cache is not counted"),
        ({"is_cache_known": False, "cache_mean": None}, "page cache was not measured"),
        ({}, "a peak that comes once a week may be missing"),
        ({"seen_ms": 7 * DAY_MS}, "a load above that of the last 7 days"),
    ],
)
def test_the_risk_is_stated(change: dict[str, Any], said: str) -> None:
    assert said in render_risk(advise(replace(NEED, **change)))


@given(
    st.floats(0, 500),
    st.floats(0, 2e12),
    st.one_of(st.none(), st.floats(0.01, 64)),
    st.integers(0, 5),
)
def test_nothing_is_recommended_below_what_was_seen(
    busy: float, memory: float, limit: float | None, kills: int
) -> None:
    """forall needs: request >= what was seen, limit >= request, and nothing is negative."""
    need = replace(NEED, cpu_busy=busy, cpu_most=busy, memory_most=memory, cpu_limit=limit, oom_kills=kills)
    advice = advise(need)
    assert advice.cpu_request is not None
    assert advice.cpu_request >= busy
    assert advice.memory_request is not None
    assert advice.memory_request >= memory
    assert advice.memory_limit is not None
    assert advice.memory_limit >= advice.memory_request
    assert (advice.cpu_limit is None) == (limit is None)
    assert advice.cpu_limit is None or advice.cpu_limit >= advice.cpu_request


@given(st.floats(0, 1e4), st.floats(0, 1e13))
def test_rounding_goes_up_and_by_little(cores: float, count: float) -> None:
    assert cores <= round_cores(cores) + 1e-6 <= max(0.01, cores + 0.05) + 2e-6
    assert count <= round_bytes(count) + 1 <= max(16 * MIB, count + 64 * MIB) + 2


def test_replicas_of_two_nodes_are_one_row_sized_for_the_busier() -> None:
    other = replace(NEED, node="n2", replicas=2, cpu_busy=0.9, memory_most=100.0 * MIB, oom_kills=1)
    (both,) = merge_needs([NEED, other])
    assert (both.node, both.replicas, both.cpu_busy, both.memory_most) == ("n1, n2", 5, 0.9, 600 * MIB)
    assert both.oom_kills == 1


def test_the_total_counts_what_waits() -> None:
    advices = [advise(NEED), advise(replace(NEED, workload="young", seen_ms=1000))]
    assert render_total(advices) == (
        "1 of 2 containers should be sized otherwise, which saves 4.35 cores and 9.96 GiB in total; "
        "1 was seen for less than a day."
    )


def test_before_a_day_is_over_what_leaves_the_most_unused_is_named() -> None:
    """No size is recommended, but waste can be seen."""
    young = replace(NEED, seen_ms=3_600_000)
    idle = replace(young, workload="oldshop", cpu_request=6.0, cpu_busy=0.01)
    bare = replace(young, workload="bare", cpu_request=None, memory_request=None)
    total = render_total([advise(one) for one in (young, idle, bare)])
    assert total.startswith("Not yet: none of 3 containers was seen for a day, at most 60 min;")
    assert '"shop/oldshop" (container "app") leaves the most unused: it used at most 0.01 cores' in total
    # No request is known: its limit stands for it.
    assert "(4 cores its limit)" in render_total([advise(bare), advise(bare)])
    free = replace(bare, cpu_limit=None, memory_limit=None)
    assert "unused" not in render_total([advise(free), advise(free)])


# -- the patch -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_patch_names_each_container_where_its_kind_has_them(kind: str) -> None:
    sidecar = replace(NEED, container="proxy", cpu_limit=None)
    (found,) = yaml.safe_load_all(
        render_patch([advise(replace(NEED, kind=kind)), advise(replace(sidecar, kind=kind))])
    )
    assert (found["kind"], found["metadata"]) == (kind, {"name": "web", "namespace": "shop"})
    spec = found["spec"]["jobTemplate"]["spec"] if kind == "CronJob" else found["spec"]
    app, proxy = spec["template"]["spec"]["containers"]
    assert app == {
        "name": "app",
        "resources": {
            "requests": {"cpu": "550m", "memory": "696Mi"},
            "limits": {"cpu": "1200m", "memory": "784Mi"},
        },
    }
    assert proxy["resources"]["limits"] == {"memory": "784Mi"}


@pytest.mark.parametrize("kind", ["Job", "pod", "static pod", "container", "DaemonSet, Job or ReplicaSet"])
def test_what_cannot_be_patched_is_a_comment(kind: str) -> None:
    text = render_patch([advise(replace(NEED, kind=kind))])
    assert list(yaml.safe_load_all(text)) == [None]
    assert "made" in text or "manifest" in text


@given(st.text(max_size=40), st.text(max_size=40))
def test_names_cannot_leave_their_place_in_the_patch(name: str, container: str) -> None:
    """forall names: the patch is YAML, and holds no object of another name."""
    text = render_patch([advise(replace(NEED, workload=name, container=container))])
    for found in yaml.safe_load_all(text):
        assert found is None or found["metadata"]["name"] == name
        assert found is None or found["spec"]["template"]["spec"]["containers"][0]["name"] == container


def test_a_name_that_would_be_read_as_something_else_stays_a_name() -> None:
    found = yaml.safe_load(
        render_patch([advise(replace(NEED, workload="1e3", namespace="on", container="null"))])
    )
    assert found["metadata"] == {"name": "1e3", "namespace": "on"}
    assert found["spec"]["template"]["spec"]["containers"][0]["name"] == "null"
    assert math.isfinite(advise(NEED).weight)
