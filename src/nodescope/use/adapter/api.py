"""
custom.metrics.k8s.io and external.metrics.k8s.io as the API server forwards them.

    GET /apis[/GROUP[/VERSION]]                                          discovery
    GET /apis/custom.metrics.k8s.io/v1beta2
          /namespaces/NS/pods/NAME|*/METRIC?labelSelector=...
          /nodes/NAME|*/METRIC
    GET /apis/external.metrics.k8s.io/v1beta1
          /namespaces/NS/METRIC?labelSelector=...                        over the pods of these labels

Refusals are Status objects, as the API server's own.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from nodescope import __version__
from nodescope.base.clock import stopwatch_seconds
from nodescope.base.errors import RequestRejected
from nodescope.base.text import clean_text
from nodescope.serve.connections import Connections
from nodescope.serve.gate import PROBES
from nodescope.serve.json_response import make_json
from nodescope.serve.server import PEER_KEY
from nodescope.serve.turns import Turns, answer_in_turn
from nodescope.use.adapter.answers import Answers, MetricValue, NothingKnown
from nodescope.use.adapter.callers import Callers
from nodescope.use.adapter.metric_table import list_names, parse_metric, render_quantity
from nodescope.use.adapter.reports import WINDOW_SECONDS
from nodescope.use.adapter.self_metrics import AdapterCounters

CUSTOM, EXTERNAL = "custom.metrics.k8s.io", "external.metrics.k8s.io"
VERSIONS = {CUSTOM: ("v1beta2",), EXTERNAL: ("v1beta1",)}
REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
}
# Questions under way: most of the time they wait for agents.
TURNS = 64
WAIT_SECONDS = 5.0
# A selector is a few hundred characters.
PATH_CHARACTERS = 1000


class PathUnknown(RequestRejected):
    """Nothing is served there."""

    status, title = 404, "not found"


@dataclass(frozen=True, slots=True)
class MetricQuestion:
    """One request for values, taken apart."""

    group: str
    version: str
    namespace: str
    resource: str
    """pods, nodes; of external metrics empty."""
    name: str
    """Of the object; * for all that match."""
    metric: str
    selector: str = ""

    def attributes(self) -> dict[str, dict[str, str]]:
        """As a SubjectAccessReview wants them."""
        asked = {"group": self.group, "version": self.version, "namespace": self.namespace}
        if self.group == EXTERNAL:
            asked |= {"verb": "list", "resource": self.metric}
        else:
            asked |= {
                "verb": "get",
                "resource": self.resource,
                "subresource": self.metric,
                "name": self.name,
            }
        return {"resourceAttributes": {key: value for key, value in asked.items() if value}}


def parse_question(path: str, query: Mapping[str, Sequence[str]]) -> MetricQuestion:
    """RequestRejected where nothing is served."""
    match path.strip("/").split("/"):
        case ["apis", group, version, "namespaces", namespace, "pods", name, metric] if group == CUSTOM:
            found = MetricQuestion(group, version, namespace, "pods", name, metric)
        case ["apis", group, version, "nodes", name, metric] if group == CUSTOM:
            found = MetricQuestion(group, version, "", "nodes", name, metric)
        case ["apis", group, version, "namespaces", namespace, metric] if group == EXTERNAL:
            found = MetricQuestion(group, version, namespace, "", "*", metric)
        case _:
            raise PathUnknown(
                f"no {clean_text(path, 200)}; there are: pods and nodes of {CUSTOM}, and {EXTERNAL}"
            )
    if found.version not in VERSIONS[found.group]:
        raise PathUnknown(f"no version {found.version[:20]!r}; there is {', '.join(VERSIONS[found.group])}")
    return MetricQuestion(
        found.group,
        found.version,
        found.namespace,
        found.resource,
        found.name,
        found.metric,
        (query.get("labelSelector") or [""])[0],
    )


@dataclass(slots=True)
class AdapterApi:
    """The ASGI application that the API server forwards to."""

    _answers: Answers
    _callers: Callers
    _counters: AdapterCounters
    _readiness: Callable[[], str]
    connections: Connections = field(default_factory=Connections)
    _turns: Turns = field(init=False)

    def __post_init__(self) -> None:
        self._turns = Turns(TURNS, self.connections, WAIT_SECONDS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if scope["path"] in (*PROBES, "/livez"):
            reason = self._readiness() if scope["path"] == "/readyz" else ""
            await make_json({"ready": not reason, "reason": reason}, 503 if reason else 200)(
                scope, receive, send
            )
            return
        await answer_in_turn(self._turns, self._answer, scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            response = await self._decide(scope)
        except RequestRejected as error:
            self._counters.refused[error.status] += 1
            response = make_status(error)
        await response(scope, receive, send)

    async def _decide(self, scope: Scope) -> Response:
        path = scope["path"]
        if scope["method"] not in ("GET", "HEAD"):
            raise WrongMethod(f"{scope['method'][:20]} is not accepted; accepted: GET")
        if len(path) > PATH_CHARACTERS:
            raise RequestRejected(f"the path has more than {PATH_CHARACTERS} characters")
        caller = await self._callers.identify(scope.get(PEER_KEY), scope["headers"])
        known = describe_discovery(path.rstrip("/"))
        if known is not None:
            check_form(scope["headers"])
            await self._callers.check(caller, {"nonResourceAttributes": {"verb": "get", "path": path}})
            return make_json(known)
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        question = parse_question(path, query)
        await self._callers.check(caller, question.attributes())
        return make_json(await self._read(question))

    async def _read(self, question: MetricQuestion) -> dict[str, Any]:
        started = stopwatch_seconds()
        try:
            return (
                await self._read_external(question)
                if question.group == EXTERNAL
                else await self._read_custom(question)
            )
        finally:
            self._counters.seconds[question.group].observe(stopwatch_seconds() - started)

    async def _read_custom(self, question: MetricQuestion) -> dict[str, Any]:
        metric = parse_metric(question.metric, question.resource)
        if question.resource == "nodes":
            nodes = self._answers.index.list_nodes() if question.name == "*" else [question.name]
            values = await self._answers.read_nodes(metric, nodes)
        elif question.name == "*":
            pods = self._answers.index.select(question.namespace, question.selector)
            values = await self._answers.read_pods(metric, pods)
        else:
            pod = self._answers.index.find(question.namespace, question.name)
            if pod is None:
                raise NothingKnown(f"no pod {question.namespace}/{question.name}")
            values = await self._answers.read_pods(metric, [pod])
        self._counters.values[question.group] += len(values)
        return {
            "kind": "MetricValueList",
            "apiVersion": f"{question.group}/{question.version}",
            "metadata": {},
            "items": [describe_value(question, value) for value in values],
        }

    async def _read_external(self, question: MetricQuestion) -> dict[str, Any]:
        metric = parse_metric(question.metric, "pods")
        value = await self._answers.read_sum(metric, question.namespace, question.selector)
        self._counters.values[question.group] += 1
        item = {
            "metricName": question.metric,
            "metricLabels": {},
            "timestamp": render_time(value.at_ms),
            "window": WINDOW_SECONDS,
            "value": render_quantity(value.value),
        }
        return {
            "kind": "ExternalMetricValueList",
            "apiVersion": f"{question.group}/{question.version}",
            "metadata": {},
            "items": [item],
        }


class WrongForm(RequestRejected):
    """A form of discovery that we do not write; the API server then asks for each version."""

    status, title = 406, "not acceptable"


def check_form(headers: Iterable[tuple[bytes, bytes]]) -> None:
    if any(name == b"accept" and b"as=APIGroupDiscoveryList" in value for name, value in headers):
        raise WrongForm("discovery is answered as APIGroupList, APIGroup and APIResourceList")


class WrongMethod(RequestRejected):
    """Metrics are only read."""

    status, title = 405, "method not allowed"


def describe_value(question: MetricQuestion, value: MetricValue) -> dict[str, Any]:
    is_pod = question.resource == "pods"
    about = {"kind": "Pod" if is_pod else "Node", "name": value.name, "apiVersion": "/v1"}
    return {
        "describedObject": {**about, "namespace": question.namespace} if is_pod else about,
        "metric": {"name": question.metric, "selector": None},
        "timestamp": render_time(value.at_ms),
        "windowSeconds": WINDOW_SECONDS,
        "value": render_quantity(value.value),
    }


def render_time(at_ms: int) -> str:
    """Seconds, as Kubernetes writes its own."""
    return datetime.fromtimestamp(at_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def make_status(error: RequestRejected) -> Response:
    content = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": str(error),
        "reason": REASONS.get(error.status, "ServiceUnavailable"),
        "code": error.status,
    }
    return make_json(content, error.status)


def describe_discovery(path: str) -> dict[str, Any] | None:
    """What there is, at /apis and below; None for other paths."""
    if path in ("/openapi/v2", "/openapi/v3"):
        # Values only: there is nothing that a client could create.
        about = {"title": "nodescope", "version": __version__}
        return {"swagger": "2.0", "info": about, "paths": {}} if path.endswith("v2") else {"paths": {}}
    groups = {f"/apis/{group}": describe_group(group) for group in VERSIONS}
    if path == "/apis":
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": list(groups.values())}
    if path in groups:
        return {"kind": "APIGroup", "apiVersion": "v1", **groups[path]}
    for group, versions in VERSIONS.items():
        for version in versions:
            if path == f"/apis/{group}/{version}":
                return describe_resources(group, version)
    return None


def describe_group(group: str) -> dict[str, Any]:
    versions = [{"groupVersion": f"{group}/{one}", "version": one} for one in VERSIONS[group]]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def describe_resources(group: str, version: str) -> dict[str, Any]:
    if group == EXTERNAL:
        resources = [
            describe_resource(name, "ExternalMetricValueList", namespaced=True) for name in list_names("pods")
        ]
    else:
        resources = [
            describe_resource(f"{resource}/{name}", "MetricValueList", namespaced=resource == "pods")
            for resource in ("pods", "nodes")
            for name in list_names(resource)
        ]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group}/{version}",
        "resources": resources,
    }


def describe_resource(name: str, kind: str, *, namespaced: bool) -> dict[str, Any]:
    return {"name": name, "singularName": "", "namespaced": namespaced, "kind": kind, "verbs": ["get"]}
