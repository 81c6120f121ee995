"""The API behind the API server: who is believed, who may, what is answered, and refusals as Status objects."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest
from tests.support import TurnableClock
from tests.use.adapter.test_reports import Cluster

from nodescope.base.errors import KubernetesAway
from nodescope.serve.server import PEER_KEY
from nodescope.use.adapter.api import AdapterApi
from nodescope.use.adapter.callers import (
    ACCESS_PATH,
    TOKEN_PATH,
    Callers,
    FrontProxy,
    Reviews,
    parse_front_proxy,
)
from nodescope.use.adapter.self_metrics import AdapterCounters

PODS = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/pods"
SUMS = "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop"
CONFIG = {
    "data": {
        "requestheader-client-ca-file": "PEM",
        "requestheader-allowed-names": '["front-proxy"]',
        "requestheader-username-headers": '["X-Remote-User"]',
        "requestheader-group-headers": '["X-Remote-Group"]',
        "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
    }
}


class PlayedReviews:
    """The API server's side of reviews: one token, one user who may."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.is_away = False

    def create(self, path: str, content: Mapping[str, Any]) -> dict[str, Any]:
        if self.is_away:
            raise KubernetesAway("it does not answer")
        spec = dict(content["spec"])
        self.asked.append((path, spec))
        if path == TOKEN_PATH:
            known = spec["token"].startswith("r")
            return {"status": {"authenticated": known, "user": {"username": "keda", "groups": ["g"]}}}
        return {"status": {"allowed": spec["user"] in ("hpa", "keda")}}


class Asked:
    """One application, asked as the API server or somebody else would."""

    def __init__(self) -> None:
        self.reviews = PlayedReviews()
        self.proxy = parse_front_proxy(CONFIG)

    def get(
        self, path: str, peer: str | None = "front-proxy", method: str = "GET", **headers: str
    ) -> tuple[int, Any]:
        given = {"X-Remote-User": "hpa"} if peer and not headers else headers
        return asyncio.run(self._get(path, peer, method, given))

    async def _get(
        self, path: str, peer: str | None, method: str, headers: dict[str, str]
    ) -> tuple[int, Any]:
        callers = Callers(self.reviews, Reviews(TurnableClock()), self.proxy)  # type: ignore[arg-type]
        app = AdapterApi(Cluster().answers, callers, AdapterCounters(), lambda: "")
        path, _, query = path.partition("?")
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        async def receive() -> Any:
            return {"type": "http.request", "body": b""}

        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": query.encode(),
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
            PEER_KEY: peer,
        }
        await app(scope, receive, send)
        body = b"".join(message.get("body", b"") for message in sent)
        return sent[0]["status"], json.loads(body)


@pytest.fixture
def asked() -> Asked:
    return Asked()


def test_values_of_pods_are_told_as_kubernetes_wants_them(asked: Asked) -> None:
    status, found = asked.get(f"{PODS}/*/cpu?labelSelector=app%3Dweb")
    assert (status, found["kind"], len(found["items"])) == (200, "MetricValueList", 10)
    item = found["items"][0]
    assert item["describedObject"]["kind"] == "Pod"
    assert item["metric"] == {"name": "cpu", "selector": None}
    assert (item["value"], item["windowSeconds"]) == ("1", 20)


def test_one_pod_and_a_node_s_number_of_it(asked: Asked) -> None:
    assert len(asked.get(f"{PODS}/p-n1/cpu_max")[1]["items"]) == 1
    assert asked.get(f"{PODS}/p-n1/node_cpu_util_p95")[1]["items"][0]["value"] == "600m"
    assert (
        asked.get("/apis/custom.metrics.k8s.io/v1beta2/nodes/n1/cpu_util")[1]["items"][0]["value"] == "500m"
    )


def test_a_sum_is_one_external_value(asked: Asked) -> None:
    (item,) = asked.get(f"{SUMS}/cpu?labelSelector=app%3Dweb")[1]["items"]
    assert (item["metricName"], item["value"], item["window"]) == ("cpu", "10", 20)
    # A share is not added up.
    (item,) = asked.get(f"{SUMS}/node_cpu_util")[1]["items"]
    assert item["value"] == "500m"


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        (f"{PODS}/*/cpuu", 404, "did you mean"),
        (f"{PODS}/gone/cpu", 404, "no pod shop/gone"),
        (f"{PODS}/*/gpu_util", 404, "not measured"),
        (f"{PODS}/*/cpu?labelSelector=a;b", 400, "accepted: a=b"),
        (f"{PODS}/*/cpu?labelSelector=app%3Dother", 404, "no pod matches"),
        ("/apis/custom.metrics.k8s.io/v1beta9/namespaces/shop/pods/*/cpu", 404, "v1beta2"),
        ("/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/services/*/cpu", 404, "there are"),
        ("/api/v1/secrets", 404, "there are"),
    ],
)
def test_what_is_not_there_is_a_status_that_says_why(asked: Asked, path: str, status: int, said: str) -> None:
    found = asked.get(path)
    assert found[0] == status
    assert (found[1]["kind"], found[1]["code"]) == ("Status", status)
    assert said in found[1]["message"]


def test_only_the_api_server_s_certificate_makes_its_headers_count(asked: Asked) -> None:
    """forall others: the headers are words of a stranger."""
    masters = {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}
    assert asked.get("/apis", "front-proxy", **masters)[0] == 200
    for peer in (None, "", "somebody"):
        assert asked.get("/apis", peer, **masters)[0] == 401
    asked.proxy = FrontProxy()
    assert asked.get("/apis", "front-proxy", **masters)[0] == 401


def test_a_certificate_without_a_user_is_nobody(asked: Asked) -> None:
    assert asked.get("/apis", "front-proxy", Accept="application/json")[0] == 401


def test_the_api_server_is_asked_whether_they_may(asked: Asked) -> None:
    extra = {"X-Remote-User": "hpa", "X-Remote-Group": "ops", "X-Remote-Extra-Scopes%2fa": "b"}
    assert asked.get(f"{PODS}/*/cpu", **extra)[0] == 200
    ((path, spec),) = asked.reviews.asked
    assert path == ACCESS_PATH
    assert (spec["user"], spec["groups"]) == ("hpa", ["ops", "system:authenticated"])
    assert spec["extra"] == {"scopes/a": ["b"]}
    assert spec["resourceAttributes"] == {
        "group": "custom.metrics.k8s.io",
        "version": "v1beta2",
        "namespace": "shop",
        "verb": "get",
        "resource": "pods",
        "subresource": "cpu",
        "name": "*",
    }
    status, found = asked.get(f"{SUMS}/cpu", **{"X-Remote-User": "nobody"})
    assert (status, found["reason"]) == (403, "Forbidden")


def test_a_token_is_reviewed(asked: Asked) -> None:
    assert asked.get(f"{SUMS}/cpu", None, Authorization="Bearer right")[0] == 200
    assert [path for path, _ in asked.reviews.asked] == [TOKEN_PATH, ACCESS_PATH]
    assert asked.get(f"{SUMS}/cpu", None, Authorization="Bearer wrong")[0] == 401
    assert asked.get(f"{SUMS}/cpu", None, Authorization="Basic right")[0] == 401


def test_without_the_api_server_nobody_is_let_in(asked: Asked) -> None:
    """It is away: 503, not an answer to whoever asks."""
    asked.reviews.is_away = True
    assert asked.get(f"{PODS}/*/cpu")[0] == 503


def test_metrics_are_only_read(asked: Asked) -> None:
    assert asked.get(f"{PODS}/*/cpu", method="DELETE")[0] == 405


def test_discovery_names_every_metric(asked: Asked) -> None:
    groups = {one["name"] for one in asked.get("/apis")[1]["groups"]}
    assert groups == {"custom.metrics.k8s.io", "external.metrics.k8s.io"}
    resources = asked.get("/apis/custom.metrics.k8s.io/v1beta2")[1]["resources"]
    assert {"pods/cpu_p95", "pods/node_mem_bw", "nodes/gpu_util_max"} <= {one["name"] for one in resources}
    # The newer form is for servers that make it; the API server then asks for each version.
    form = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    assert asked.get("/apis", **{"X-Remote-User": "hpa", "Accept": form})[0] == 406


def test_reviews_hold_for_ten_seconds() -> None:
    async def trial() -> list[int]:
        clock, calls = TurnableClock(), []
        reviews = Reviews(clock)

        async def ask() -> int:
            await reviews.ask("k", lambda: calls.append(1))
            return len(calls)

        made = [await ask(), await ask()]
        clock.advance(11 * 10**9)
        return [*made, await ask()]

    assert asyncio.run(trial()) == [1, 1, 2]


@pytest.mark.parametrize("broken", ["", "{", '"x"', "null"])
def test_a_configuration_that_is_broken_believes_nobody(broken: str) -> None:
    data = {**CONFIG["data"], "requestheader-username-headers": broken}
    assert parse_front_proxy({"data": data}).read_caller("front-proxy", [(b"x-remote-user", b"a")]) is None
