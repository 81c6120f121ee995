"""
Who asks, and whether they may: both are for the cluster's API server to say.

    through the API server   it shows a certificate of the request-header authority and
                             names its own caller in headers (ConfigMap kube-system/
                             extension-apiserver-authentication says which)
    directly                 a bearer token, which the API server reviews (KEDA's metrics-api)
    may they?                a SubjectAccessReview; answers hold for ten seconds

Docs  https://kubernetes.io/docs/tasks/extend-kubernetes/configure-aggregation-layer/
"""

import asyncio
import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import unquote

from nodescope.base.clock import Clock
from nodescope.base.errors import KubernetesAway, KubernetesRefused, RequestRejected
from nodescope.kube.client import Client

CONFIG_PATH = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
TOKEN_PATH = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105 - no secret
ACCESS_PATH = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
MASTERS = "system:masters"
ANONYMOUS, AUTHENTICATED = "system:anonymous", "system:authenticated"
REVIEW_SECONDS = 10.0
REVIEWS = 2000
# A token of an account has some 1,200 characters.
TOKEN_CHARACTERS = 16384

Verdict = TypeVar("Verdict")
Headers = Iterable[tuple[bytes, bytes]]


class CallerUnknown(RequestRejected):
    """Neither the API server nor a token that it accepts."""

    status, title = 401, "unauthorized"


class CallerRefused(RequestRejected):
    """The API server knows the caller, and says no."""

    status, title = 403, "forbidden"


class ReviewsAway(RequestRejected):
    """The API server cannot be asked about the caller."""

    status, title = 503, "service unavailable"


@dataclass(frozen=True, slots=True)
class Caller:
    """A user of the cluster."""

    user: str
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class FrontProxy:
    """How the API server names its callers."""

    authority: str = ""
    """PEM; empty where the cluster has no aggregation layer."""
    names: tuple[str, ...] = ()
    """Of its certificate; empty: any that the authority signed."""
    user_headers: tuple[str, ...] = ()
    group_headers: tuple[str, ...] = ()
    extra_prefixes: tuple[str, ...] = ()

    def read_caller(self, peer: str, headers: Headers) -> Caller | None:
        """None where this is not the API server, or it names nobody."""
        if not self.authority or (self.names and peer not in self.names):
            return None
        given = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in headers]
        users = [value for name, value in given if name in self.user_headers and value]
        if not users:
            return None
        groups = [value for name, value in given if name in self.group_headers and value]
        # As every API server adds it; its own parts come without any group.
        if users[0] != ANONYMOUS and AUTHENTICATED not in groups:
            groups.append(AUTHENTICATED)
        return Caller(users[0], tuple(groups), tuple(self._read_extra(given)))

    def _read_extra(self, given: list[tuple[str, str]]) -> Iterable[tuple[str, tuple[str, ...]]]:
        found: dict[str, list[str]] = {}
        for name, value in given:
            for prefix in self.extra_prefixes:
                if name.startswith(prefix):
                    found.setdefault(unquote(name.removeprefix(prefix)), []).append(value)
        return ((key, tuple(values)) for key, values in sorted(found.items()))


def parse_front_proxy(config: Mapping[str, Any]) -> FrontProxy:
    data = config.get("data") or {}

    def read(key: str) -> tuple[str, ...]:
        try:
            found = json.loads(data.get(f"requestheader-{key}") or "[]")
        except ValueError:
            found = []
        return tuple(str(one) for one in found) if isinstance(found, list) else ()

    users, groups, extra = (
        tuple(one.lower() for one in read(key))
        for key in ("username-headers", "group-headers", "extra-headers-prefix")
    )
    authority = str(data.get("requestheader-client-ca-file") or "")
    return FrontProxy(authority, read("allowed-names"), users, groups, extra)


@dataclass(slots=True)
class Reviews:
    """Answers of the API server about callers, each for ten seconds."""

    clock: Clock
    _kept: OrderedDict[object, tuple[int, Any]] = field(default_factory=OrderedDict)

    async def ask(self, key: object, question: Callable[[], Verdict]) -> Verdict:
        """From memory, or by a thread that asks."""
        kept = self._kept.get(key)
        if kept is not None and self.clock.mono_ns() - kept[0] < REVIEW_SECONDS * 1e9:
            found: Verdict = kept[1]
            return found
        try:
            answer = await asyncio.to_thread(question)
        except (KubernetesAway, KubernetesRefused) as error:
            raise ReviewsAway(f"the API server cannot be asked about the caller: {error}") from error
        self._kept[key] = self.clock.mono_ns(), answer
        while len(self._kept) > REVIEWS:
            self._kept.popitem(last=False)
        return answer


@dataclass(slots=True)
class Callers:
    """Authentication and authorization, delegated."""

    client: Client
    reviews: Reviews
    proxy: FrontProxy = FrontProxy()

    def load_proxy(self) -> FrontProxy:
        """From the cluster; KubernetesAway or KubernetesRefused where it cannot be had."""
        self.proxy = parse_front_proxy(self.client.read(CONFIG_PATH))
        return self.proxy

    async def identify(self, peer: str | None, headers: Headers) -> Caller:
        """`peer`: the name in a certificate that the request-header authority signed."""
        caller = None if peer is None else self.proxy.read_caller(peer, headers)
        if caller is not None:
            return caller
        authorization = dict(headers).get(b"authorization", b"").decode("latin-1")
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not 0 < len(token.strip()) <= TOKEN_CHARACTERS:
            raise CallerUnknown("ask through the API server (kubectl get --raw), or send a bearer token")
        key = "token", hashlib.sha256(token.encode()).digest()
        found = await self.reviews.ask(key, lambda: self._review_token(token.strip()))
        if found is None:
            raise CallerUnknown("the API server does not accept this token")
        return found

    def _review_token(self, token: str) -> Caller | None:
        content = {"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "spec": {"token": token}}
        status = self.client.create(TOKEN_PATH, content).get("status") or {}
        user = status.get("user") or {}
        if not status.get("authenticated") or not user.get("username"):
            return None
        extra = tuple((key, tuple(values)) for key, values in sorted((user.get("extra") or {}).items()))
        return Caller(str(user["username"]), tuple(user.get("groups") or ()), extra)

    async def check(self, caller: Caller, attributes: Mapping[str, Mapping[str, str]]) -> None:
        """CallerRefused unless the API server says that the caller may."""
        if MASTERS in caller.groups:
            return
        key = caller, json.dumps(attributes, sort_keys=True)
        if not await self.reviews.ask(key, lambda: self._review_access(caller, attributes)):
            asked = next(iter(attributes.values()))
            raise CallerRefused(f"{caller.user} may not {' '.join(asked.values())}")

    def _review_access(self, caller: Caller, attributes: Mapping[str, Mapping[str, str]]) -> bool:
        spec: dict[str, Any] = {
            "user": caller.user,
            "groups": list(caller.groups),
            "extra": {key: list(values) for key, values in caller.extra},
            **attributes,
        }
        content = {"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": spec}
        status = self.client.create(ACCESS_PATH, content).get("status") or {}
        return bool(status.get("allowed")) and not status.get("denied")
