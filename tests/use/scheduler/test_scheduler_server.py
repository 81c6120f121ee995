"""The extender's HTTP: both verbs under any JSON, bounds, token, explanations, metrics."""

import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from tests.serve.stalled import hold_unread
from tests.support import TurnableClock

from nodescope.base.settings import Settings
from nodescope.commands.extender import judge_readiness
from nodescope.fpga.state import KEY
from nodescope.serve.gate import Gate
from nodescope.serve.prometheus_text import render_families
from nodescope.serve.server import build_server, open_socket
from nodescope.use.scheduler.explain import Decisions
from nodescope.use.scheduler.extender import Extender
from nodescope.use.scheduler.nodes import Nodes
from nodescope.use.scheduler.placed_pods import PlacedPods
from nodescope.use.scheduler.rating import BEST
from nodescope.use.scheduler.self_metrics import ExtenderCounters, derive_families
from nodescope.use.scheduler.server import BODY_BYTES, TURNS, ExtenderApp

POD = {
    "metadata": {"name": "p", "namespace": "d", "uid": "1", "labels": {"fpga-scheduling.io/enabled": "true"}}
}


def make_app(admits: Callable[[str], bool] | None = None) -> Gate:
    clock = TurnableClock()
    nodes, placed, counters = Nodes(clock), PlacedPods(clock), ExtenderCounters()
    nodes.change({"metadata": {"name": "a", "annotations": {KEY: "{"}}})

    def render() -> str:
        return render_families(derive_families(counters, nodes, placed, {}, clock), openmetrics=False)

    extender = Extender(nodes, placed, Decisions(), clock)
    return Gate(ExtenderApp(extender, counters, lambda: judge_readiness({}), render), admits)


def ask(app: Gate, method: str, path: str, **options: Any) -> httpx.Response:
    async def talk() -> httpx.Response:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://extender") as client:
            return await client.request(method, path, **options)

    return asyncio.run(talk())


def test_who_does_not_read_is_cut_off_before_the_next_answer_is_made() -> None:
    gate = make_app()
    assert isinstance(gate.app, ExtenderApp)
    stalled = hold_unread(gate.app.connections)
    assert ask(gate, "GET", "/healthz").status_code == 200
    assert not stalled.is_aborted
    asked = {"Pod": POD, "Nodes": None, "NodeNames": ["a", "b"]}
    assert ask(gate, "POST", "/prioritize", json=asked).status_code == 200
    assert stalled.is_aborted


@pytest.mark.parametrize("path", ["/prioritize", "/scheduler/prioritize"])
def test_scores_are_a_bare_array_of_whole_numbers(path: str) -> None:
    """7.0 would make kube-scheduler drop the whole answer."""
    found = ask(make_app(), "POST", path, json={"Pod": POD, "Nodes": None, "NodeNames": ["a", "b"]})
    rows = found.json()
    assert [row["Host"] for row in rows] == ["a", "b"]
    assert all(type(row["Score"]) is int for row in rows)
    assert "." not in found.text


def test_whole_nodes_come_back_whole() -> None:
    nodes = {"metadata": {}, "items": [{"metadata": {"name": "x"}, "spec": {"podCIDR": "10.0.0.0/24"}}]}
    body = {"Pod": POD, "Nodes": nodes, "NodeNames": None}
    found = ask(make_app(), "POST", "/filter", json=body).json()
    assert found["Nodes"] == nodes
    assert found["NodeNames"] is None
    assert ask(make_app(), "POST", "/prioritize", json=body).json()[0]["Host"] == "x"
    empty = ask(make_app(), "POST", "/filter", json={**body, "Nodes": {"items": None}}).json()
    assert empty["Nodes"]["items"] == []


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (b"", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "no object"),
        (b"{}", "Pod"),
        (b'{"Pod": {}}', "metadata"),
        (b'{"Pod": {"metadata": {}}}', "neither NodeNames nor Nodes"),
        (b'{"Pod": {"metadata": {}}, "NodeNames": [1]}', "NodeNames"),
        (b'{"Pod": {"metadata": {}}, "NodeNames": "a"}', "NodeNames"),
        (b'{"Pod": {"metadata": {}}, "Nodes": []}', "Nodes"),
        (b'{"Pod": {"metadata": {}}, "Nodes": {"items": [{}]}}', "Node"),
        (b'{"Pod": {"metadata": {}}, "Nodes": {"items": 5}}', "Nodes"),
        (b"\xff\xfe", "not JSON"),
    ],
)
@pytest.mark.parametrize("verb", ["/filter", "/prioritize"])
def test_what_is_no_question_is_refused_by_name(verb: str, body: bytes, word: str) -> None:
    found = ask(make_app(), "POST", verb, content=body)
    assert found.status_code == 400
    assert word in found.json()["detail"]


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
LABELS = st.dictionaries(
    st.sampled_from(
        [
            "fpga-scheduling.io/enabled",
            "fpga-scheduling.io/bitstream-identifier",
            "fpga-scheduling.io/fpga-vendor",
            "nodescope.io/balance",
        ]
    ),
    st.just("true") | PLAIN,
    max_size=4,
)
PODS = st.fixed_dictionaries(
    {"metadata": st.fixed_dictionaries({}, optional={"name": PLAIN, "uid": PLAIN, "labels": LABELS | PLAIN})},
    optional={"spec": PLAIN | st.just({"containers": [{"resources": {"limits": {"amd.com/gpu": 1}}}, 5]})},
)
STATES = st.sampled_from(
    [
        "{",
        '{"version": 2, "updatedAt": 1e9, "state": {"window": 300, "usage": [1], "bitstreams": [[0, 1e308]]}}',
        '{"version": 1, "recentUsage": 1e17, "UsageState": "AwQABg=="}',
        5,
    ]
)
NODE_LISTS = st.lists(
    st.fixed_dictionaries(
        {
            "metadata": st.fixed_dictionaries(
                {"name": st.text(max_size=5)},
                optional={
                    "annotations": PLAIN
                    | st.fixed_dictionaries({}, optional={KEY: STATES, "nodescope.io/window": STATES}),
                    "labels": LABELS,
                    "managedFields": PLAIN,
                },
            )
        }
    ),
    max_size=3,
)


@given(
    PODS | PLAIN,
    st.none() | st.lists(st.text(max_size=5), max_size=4) | PLAIN,
    NODE_LISTS,
    st.sampled_from(["filter", "prioritize"]),
)
def test_any_json_is_answered_or_refused(pod: Any, names: Any, nodes: list[Any], verb: str) -> None:
    """forall JSON: 200 with every node in it once, or 400 with a reason; never anything else."""
    body = {"Pod": pod, "NodeNames": names, "Nodes": {"items": nodes}}
    found = ask(make_app(), "POST", f"/{verb}", content=json.dumps(body))
    assert found.status_code in (200, 400)
    if found.status_code == 400:
        assert found.json()["detail"]
    elif verb == "prioritize":
        scores = [row["Score"] for row in found.json()]
        assert all(type(score) is int and 0 <= score <= BEST for score in scores)


@given(st.binary(max_size=200), st.sampled_from(["filter", "prioritize"]))
def test_any_bytes_are_refused(body: bytes, verb: str) -> None:
    assert ask(make_app(), "POST", f"/{verb}", content=body).status_code == 400


def test_a_body_is_bounded_whether_it_says_its_length_or_not() -> None:
    async def chunks() -> Any:
        for _ in range(10):
            yield b"x" * 2**20

    for options in ({"content": b"x" * (10 * 2**20)}, {"content": chunks()}):
        found = ask(make_app(), "POST", "/filter", **options)
        assert found.status_code == 413
        assert str(BODY_BYTES) in found.json()["detail"]


def test_a_wrong_token_gets_nothing_but_the_probes() -> None:
    app = make_app(lambda header: header == "Bearer right")
    for method, path in (
        ("POST", "/filter"),
        ("POST", "/prioritize"),
        ("GET", "/metrics"),
        ("GET", "/explain"),
    ):
        assert ask(app, method, path).status_code == 401
        assert ask(app, method, path, headers={"Authorization": "Bearer wrong"}).status_code == 401
    assert ask(app, "GET", "/healthz").status_code == 200
    assert ask(app, "GET", "/readyz").status_code == 200
    assert ask(app, "GET", "/metrics", headers={"Authorization": "Bearer right"}).status_code == 200


def test_wrong_paths_and_methods_say_what_there_is() -> None:
    app = make_app()
    assert "/prioritize" in ask(app, "GET", "/priorities").json()["detail"]
    assert ask(app, "GET", "/filter").headers["allow"] == "POST"
    assert ask(app, "POST", "/metrics").status_code == 405
    assert ask(app, "GET", f"/explain?pod={'x' * 5000}").status_code == 414


def test_explanations_are_found_by_pod() -> None:
    app = make_app()
    ask(app, "POST", "/prioritize", json={"Pod": POD, "NodeNames": ["a"]})
    found = ask(app, "GET", "/explain?pod=d/p").json()
    assert (found["pod"], found["kind"], found["nodes"][0]["node"]) == ("d/p", "fpga", "a")
    missing = ask(app, "GET", "/explain?pod=d/pp")
    assert missing.status_code == 404
    assert missing.json()["hint"] == 'did you mean "d/p"?'
    assert "d/p" in ask(app, "GET", "/explain").json()["hint"]


@dataclass
class OtherReplicas:
    """Peers that say what a test lets them, when it lets them."""

    told: list[dict[str, Any]]
    may_answer: threading.Event = field(default_factory=threading.Event)

    def explain(self, pod: str, authorization: str) -> list[dict[str, Any]]:
        del pod, authorization
        self.may_answer.wait(30)
        return self.told


def add_peers(gate: Gate, peers: OtherReplicas) -> None:
    assert isinstance(gate.app, ExtenderApp)
    gate.app.peers = peers  # type: ignore[assignment]


@pytest.mark.parametrize(("at", "is_ours"), [(0.0, True), (1e12, False)])
def test_the_newest_decision_is_told_whoever_made_it(at: float, *, is_ours: bool) -> None:
    """Also where this replica could not ask itself: an older decision of another one was told then."""
    gate, peers = make_app(), OtherReplicas([{"pod": "d/p", "at": at}])
    peers.may_answer.set()
    add_peers(gate, peers)
    ask(gate, "POST", "/prioritize", json={"Pod": POD, "Nodes": None, "NodeNames": ["a", "b"]})
    assert ("nodes" in ask(gate, "GET", "/explain?pod=d/p").json()) is is_ours


def test_who_waits_for_other_replicas_keeps_neither_kube_scheduler_nor_them_waiting() -> None:
    gate, peers = make_app(), OtherReplicas([])
    add_peers(gate, peers)

    async def talk() -> list[int]:
        transport = httpx.ASGITransport(app=gate)
        async with httpx.AsyncClient(transport=transport, base_url="http://extender", timeout=60) as client:
            waiting = [asyncio.create_task(client.get("/explain?pod=d/p")) for _ in range(TURNS)]
            await asyncio.sleep(0)
            placed = await client.post("/prioritize", json={"Pod": POD, "Nodes": None, "NodeNames": ["a"]})
            asked = await client.get("/explain?pod=d/p&here=1")
            peers.may_answer.set()
            return [placed.status_code, asked.status_code, *[(await one).status_code for one in waiting]]

    assert asyncio.run(talk())[:2] == [200, 200]


def test_the_metrics_are_prometheus_text() -> None:
    app = make_app()
    ask(app, "POST", "/prioritize", json={"Pod": POD, "NodeNames": ["a"]})
    ask(app, "POST", "/filter", content=b"x")
    families = {
        family.name: family for family in text_string_to_metric_families(ask(app, "GET", "/metrics").text)
    }
    asked = {
        (sample.labels["verb"], sample.labels["outcome"]): sample.value
        for sample in families["nodescope_extender_requests"].samples
    }
    assert asked["prioritize", "ok"] == 1
    assert asked["filter", "refused"] == 1
    states = {
        sample.labels["state"]: sample.value
        for sample in families["nodescope_extender_annotations"].samples
        if sample.labels["annotation"] == "fpga"
    }
    assert states["broken"] == 1


@pytest.mark.real
def test_slow_bodies_do_not_keep_kube_scheduler_out() -> None:
    """Forty that never end: once eight of them were enough for 503."""
    server = build_server(make_app(), Settings())
    listener = open_socket("127.0.0.1:0")
    port = listener.getsockname()[1]
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])), daemon=True)
    thread.start()
    with contextlib.ExitStack() as slow:
        for number in range(40):
            one = slow.enter_context(
                socket.create_connection(("127.0.0.1", port), 20, (f"127.0.6.{number % 8 + 1}", 0))
            )
            one.sendall(b"POST /filter HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000000\r\n\r\n{")
        call = {"Pod": POD, "Nodes": None, "NodeNames": ["a", "b"]}
        for verb in ("filter", "prioritize"):
            answer = httpx.post(f"http://127.0.0.1:{port}/{verb}", json=call, timeout=30)
            assert answer.status_code == 200, answer.text
    server.should_exit = True
    thread.join(20)
    listener.close()
