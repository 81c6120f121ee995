"""
Everything the OpenAPI document allows, and what it does not, is asked: nothing breaks the viewer.

No 5xx, no status or shape that the document does not name. The number of
questions is bounded; every run asks others.
"""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.use.viewer.archives import write_demo
from tests.use.viewer.asking import Asker

from nodescope.base.clock import SystemClock
from nodescope.use.answers.snapshots import NodeFolders
from nodescope.use.viewer.app import build_api
from nodescope.use.viewer.request import Viewer

pytestmark = pytest.mark.real

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
DOCUMENT = build_api(Viewer(NodeFolders([], SystemClock()))).openapi()
SCHEMA = schemathesis.openapi.from_dict(DOCUMENT)
NEGATIVE = schemathesis.GenerationMode.NEGATIVE
PATHS = sorted(DOCUMENT["paths"])
CALM = settings(
    max_examples=15,
    deadline=None,
    derandomize=False,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)


@pytest.fixture(scope="module")
def asker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asker]:
    """Six minutes of three containers; live tails end at once."""
    folder = write_demo(tmp_path_factory.mktemp("schema") / "demo", containers=3, hours=0.1)
    with Asker(folder) as asker:
        asker.viewer.stopping = True
        yield asker


@pytest.mark.parametrize("path", PATHS)
def test_whatever_is_asked_is_answered_as_the_document_says(asker: Asker, path: str) -> None:
    """forall queries: no 5xx; status, type and shape are among those the document names."""
    operation = SCHEMA[path]["GET"]

    @CALM
    @given(st.one_of(operation.as_strategy(), operation.as_strategy(generation_mode=NEGATIVE)))
    def ask(case: Any) -> None:
        query = {key: value for key, value in (case.query or {}).items() if value is not None}
        answer = asker.get(case.formatted_path, params=query)
        case.validate_response(answer, checks=CHECKS)

    ask()


times = st.sampled_from(
    [
        "",
        "now",
        "-5m",
        "-1s",
        "-3w",
        "0",
        "1769999900",
        "2026-02-02T02:40:00Z",
        "1e400",
        "9" * 30,
        "-0",
        "\u0664",
    ]
)
metrics = st.sampled_from(
    [
        "cpu",
        "memory",
        "cpu_throttled",
        "network_receive",
        "gpu_power",
        "cpu.load_1m",
        "cgroup.v2.cpu.stat.usage_usec",
        "",
        "x' OR 1=1 --",
    ]
)
texts = st.text(max_size=20)


@settings(CALM, max_examples=60)
@given(
    path=st.sampled_from([path for path in PATHS if "study" not in path]),
    query=st.fixed_dictionaries(
        {"metric": metrics, "from": times, "to": times},
        optional={
            "containers": st.one_of(texts, st.sampled_from(["a", "0", "a,b", "api", "cache,cache", ","])),
            "max_points": st.sampled_from(["1", "2", "7", "10000"]),
            "rate": st.sampled_from(["auto", "on", "off"]),
            "scope": st.sampled_from(["node", "gpu", "container", "cpu", "moon"]),
            "range": st.sampled_from(["", "all", "1m", "0s", "1d"]),
            "node": st.sampled_from(["", "demo-1", "demo"]),
            "search": texts,
            "sort": st.sampled_from(["value", "last", "name", "up"]),
            "labels": texts,
            "format": st.sampled_from(["csv", "parquet", "html"]),
        },
    ),
)
def test_fuzzed_questions_have_an_answer_or_a_reason(asker: Asker, path: str, query: dict[str, str]) -> None:
    """forall half-sensible queries: an answer, or a refusal that says something."""
    answer = asker.get(path, params=query)
    # Without a build of the page there is no HTML export, and that is said.
    assert answer.status_code < 500 or "not built" in answer.text, (answer.url, answer.text)
    if answer.status_code >= 400:
        content = answer.json()
        assert content["error"]
        assert content["detail"]


@settings(CALM, max_examples=12)
@given(
    study=st.sampled_from(
        ["all", "trend", "periodicity", "changepoint", "summary", "anomaly", "correlation", "x"]
    ),
    metric=metrics,
    span=st.sampled_from(["1s", "10s", "2m", "all"]),
)
def test_studies_of_anything_have_an_answer_or_a_reason(
    asker: Asker, study: str, metric: str, span: str
) -> None:
    """forall studies, metrics, ranges: findings, or in words why there are none."""
    answer = asker.get(f"/api/study/{study}", params={"metric": metric, "range": span})
    assert answer.status_code in (200, 400, 404, 413), answer.text
    for result in answer.json().get("results", []):
        assert result["sentence"]
        assert (result["reason"] is None) == (result["status"] in ("found", "none"))


def test_the_document_names_every_path(asker: Asker) -> None:
    """What the contract promises is in the document, each with its refusals."""
    assert {path.removeprefix("/api/") for path in PATHS} == {
        "annotations",
        "changes",
        "cluster/compare",
        "cluster/wall",
        "cluster/workloads",
        "compare",
        "containers",
        "events",
        "export",
        "filters",
        "groups",
        "health",
        "heat",
        "incidents",
        "instance",
        "live",
        "metrics",
        "minutes",
        "node",
        "rightsize",
        "scan/{study}",
        "studies",
        "study/{study}",
        "summary",
        "timeseries",
        "workloads",
        "wrong",
    }
    assert asker.json("/openapi.json") == DOCUMENT
