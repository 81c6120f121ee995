"""The exam can fail an answer: each check is shown one that is wrong, and one that cannot tell."""

import os
import subprocess
import sys
from typing import Any

import pytest
from tests.stories.answers import Answer, cause_rank, names_in
from tests.stories.catalogue import STORIES
from tests.stories.every_answer import list_breaches
from tests.stories.exam import judge, put
from tests.stories.generate.cluster import Workload
from tests.stories.story import Scene
from tests.stories.told.incidents import judge_cause
from tests.stories.told.who import judge_lines, judge_most
from tests.stories.told.windows import judge_no

NAMES = ["etl", "checkout", "catalog"]


def say(headline: str, *findings: dict[str, Any], status: str = "found", **more: Any) -> Answer:
    content = {
        "headline": headline,
        "status": status,
        "findings": list(findings),
        "not_looked_at": [],
        **more,
    }
    return Answer("explain_incident", {"at": "-5m"}, is_error=False, text=headline, content=content)


def scene_of(*names: str) -> Scene:
    scene = Scene(STORIES["neighbour-cpu"], 1, is_small=True)
    for name in names:
        scene.node.run(Workload(name), cpu=0.5)
    scene.node.settle()
    return scene


def test_a_workload_is_named_by_its_pod_and_not_by_a_longer_name() -> None:
    assert names_in('"shop/catalog-6f5c9-x2x4z/catalog" has the most', ["catalog", "cat"]) == ["catalog"]
    assert names_in("catalogue-api and my-catalog", ["catalog"]) == []
    assert names_in("orders-db-1 grows", ["orders", "orders-db"]) == ["orders-db"]


def test_the_rank_of_a_cause_is_its_place_among_the_blamed() -> None:
    victim = {"kind": "incident", "sentence": "checkout waited", "container": "checkout-6f-x/checkout"}
    taker = {"kind": "incident", "sentence": "etl took 12 cores from checkout", "evidence": {"cause": "etl"}}
    assert cause_rank(say("", taker, victim), "etl", NAMES) == 1
    assert cause_rank(say("", victim, victim, taker), "etl", NAMES) == 2
    assert cause_rank(say("", victim), "etl", NAMES) is None
    assert cause_rank(say("etl took 12 cores"), "etl", NAMES) == 1


@pytest.mark.parametrize(
    ("finding", "grade"),
    [
        ({"metric": "cpu", "sentence": "etl took 12 cores from checkout", "at": 1000.0 + 2e9}, "right"),
        ({"metric": "cpu", "sentence": "etl took 12 cores from checkout", "at": 5000.0 + 2e9}, "wrong"),
        ({"metric": "pressure_cpu", "sentence": "etl waited, checkout too", "at": 1000.0 + 2e9}, "wrong"),
        ({"metric": "cpu", "sentence": "checkout fell, etl rose", "at": 1000.0 + 2e9}, "wrong"),
        ({"metric": "cpu", "sentence": "etl took 12 cores", "at": 1000.0 + 2e9}, "wrong"),
    ],
)
def test_an_incident_is_judged_by_cause_victims_and_onset(finding: dict[str, Any], grade: str) -> None:
    scene = scene_of(*NAMES)
    answer = say("It happened.", {"kind": "incident", **finding})
    assert judge_cause(answer, scene, "etl", 2e9 + 1010).grade == grade


def test_an_answer_that_cannot_tell_is_not_wrong() -> None:
    scene = scene_of(*NAMES)
    unsure = say("too short", status="not_enough_data")
    assert judge_cause(unsure, scene, "etl", 2e9).grade == "no answer"
    assert judge_most(unsure, scene, "etl", [1.0]).grade == "no answer"
    assert judge_cause(say("nothing", status="none"), scene, "etl", 2e9).grade == "wrong"


def test_the_most_needs_the_name_and_the_figure() -> None:
    scene = scene_of(*NAMES)
    first = {"kind": "rank", "sentence": "1. etl", "evidence": {"mean": 2.05}}
    assert judge_most(say("etl has the most", first), scene, "etl", [2.0]).grade == "right"
    assert judge_most(say("etl has the most", first), scene, "etl", [3.0]).grade == "wrong"
    assert judge_most(say("catalog has the most", first), scene, "etl", [2.0]).grade == "wrong"
    lines = [{"kind": "rank", "sentence": f"{place}. job-{place}x4zb"} for place in (1, 2)]
    assert judge_lines(say("", *lines), "job").grade == "wrong"


def test_a_no_is_wrong_unless_it_says_that_it_could_not_have_seen_it() -> None:
    assert judge_no(say("No: it does not grow"), 10 * 2.0**20).grade == "wrong"
    assert judge_no(say("No rise above 40 MiB/h"), 10 * 2.0**20).grade == "no answer"
    assert judge_no(say("No rise above 4 MiB/h"), 10 * 2.0**20).grade == "wrong"


@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        (say("x" * 8000), "small"),
        (say("CPU fell to -0.488 cores"), "possible"),
        (say("", {"kind": "c", "sentence": "", "unit": "cores", "evidence": {"after": -0.2}}), "possible"),
        (say("", {"kind": "c", "sentence": "", "unit": "cores", "evidence": {"max": 64.0}}), "possible"),
        (say("", next={"tool": "explain_incident", "arguments": {"at": "-5m"}, "why": ""}), "going on"),
    ],
)
def test_a_broken_rule_is_seen(answer: Answer, rule: str) -> None:
    assert rule in [breach.rule for breach in list_breaches(scene_of(*NAMES), answer)]


def test_a_lost_span_is_seen_and_a_kept_one_is_none() -> None:
    scene = scene_of(*NAMES)
    for arguments, many in (({"container": "a"}, 1), ({"container": "a", "from": "-6h"}, 0)):
        answer = say("", next={"tool": "summarize_container", "arguments": arguments, "why": ""})
        answer.arguments = {"from": "-6h"}
        assert len(list(list_breaches(scene, answer))) == many


def test_what_falls_by_an_amount_is_no_impossible_figure() -> None:
    scene = scene_of(*NAMES)
    for words in ("memory changed by -120 MiB", "cpu fell from 0.41 cores to 0.39 cores (-5 %)"):
        assert not list(list_breaches(scene, say(words)))


def test_three_calls_are_too_many_and_an_exception_is_no_answer() -> None:
    scene = scene_of(*NAMES)
    right = judge_most(
        say("etl", {"kind": "rank", "sentence": "etl", "evidence": {"mean": 1.0}}), scene, "etl", [1.0]
    )
    assert judge(scene, 1, "", right, [say("")] * 3).verdict.grade == "wrong"

    def fail(_: object) -> Any:
        raise RuntimeError("gone")

    assert put(fail, None).grade == "no answer"  # type: ignore[arg-type]


def test_an_exam_uses_one_thread_of_blas() -> None:
    """Threads that wait for each other made an exam beside other work several times as long."""
    looks = (
        "import os, sys, tools.exam; assert 'numpy' in sys.modules; print(os.environ['OPENBLAS_NUM_THREADS'])"
    )
    environment = {key: value for key, value in os.environ.items() if key != "OPENBLAS_NUM_THREADS"}
    for given, expected in (({}, "1"), ({"OPENBLAS_NUM_THREADS": "2"}, "2")):
        said = subprocess.run(
            [sys.executable, "-c", looks],
            env={**environment, **given},
            capture_output=True,
            text=True,
            check=True,
        )
        assert said.stdout.strip() == expected
