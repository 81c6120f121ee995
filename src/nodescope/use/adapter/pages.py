"""The adapter's plain pages: /metrics and probes, for people and Prometheus."""

from collections.abc import Callable
from dataclasses import dataclass

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from nodescope.base.text import hint_nearest
from nodescope.serve.json_response import make_error, make_json
from nodescope.serve.prometheus_text import TEXT

PATHS = ("/metrics", "/healthz", "/readyz", "/")
INDEX = """nodescope adapter

/metrics /healthz /readyz
The API itself is asked through the cluster's API server:
  kubectl get --raw /apis/custom.metrics.k8s.io/v1beta2
"""


@dataclass(frozen=True, slots=True)
class AdapterPages:
    """Plain ASGI behind the gate."""

    readiness: Callable[[], str]
    render_metrics: Callable[[], str]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._answer(scope["path"])(scope, receive, send)

    def _answer(self, path: str) -> Response:
        if path in ("/healthz", "/health"):
            return make_json({"live": True})
        if path == "/readyz":
            reason = self.readiness()
            return make_json({"ready": not reason, "reason": reason}, 503 if reason else 200)
        if path == "/metrics":
            return Response(self.render_metrics().encode("utf-8", "replace"), headers={"Content-Type": TEXT})
        if path == "/":
            return Response(INDEX, media_type="text/plain")
        hint = hint_nearest(path[:80], PATHS)
        return make_error(404, "not found", f"no {path[:80]}{hint} there are: {' '.join(PATHS)}")
