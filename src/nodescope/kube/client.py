"""
Requests to the API server: one kept connection, JSON in and out.

Thin on http.client and ssl, because the agent's memory matters: 13 MiB less
than the smallest client library, 45 less than the official one. Not for
threads: each thread that asks has a client of its own.
"""

import http.client
import json
import socket
from collections.abc import Iterator, Mapping
from typing import Any, Self
from urllib.parse import urlencode

from nodescope import __version__
from nodescope.base.errors import KubernetesAway, KubernetesRefused
from nodescope.kube.account import KubeAccount

MERGE_PATCH = "application/merge-patch+json"
WHOLE = "application/json"
# Names, labels and annotations without the rest: half the bytes of a pod, a tenth of a node.
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
CONNECT_SECONDS = 5.0
# The API server gives up on a request after 60 s; an agent need not wait that long.
ANSWER_SECONDS = 20.0
# A page of 100 pods is 1 MiB; a Node with many images 100 KiB.
ANSWER_BYTES = 64 * 2**20
# One watch event is one object; etcd's own limit is 1.5 MiB.
LINE_BYTES = 8 * 2**20
# The API server's own words on who asked too often.
PATIENCE_SECONDS = 60.0


class Client:
    """Asks in one account's name; connects when it has to."""

    def __init__(self, account: KubeAccount, *, metadata_only: bool = False) -> None:
        self.account = account
        self._metadata_only = metadata_only
        self._connection: http.client.HTTPConnection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """GET one object or one page of a list."""
        return self._ask("GET", path, query)

    def patch(
        self, path: str, change: Mapping[str, Any], query: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Merge: only the keys in `change` are touched, null deletes, nothing conflicts."""
        return self._ask("PATCH", path, query, json.dumps(change).encode(), MERGE_PATCH)

    def create(self, path: str, content: Mapping[str, Any]) -> dict[str, Any]:
        return self._ask("POST", path, None, json.dumps(content).encode(), "application/json")

    def stream(self, path: str, query: Mapping[str, str], silence_seconds: float) -> Iterator[dict[str, Any]]:
        """A watch: one object a line, until the server ends it. Returns when the server has agreed."""
        return self._lines(self._send("GET", path, query, None, "", silence_seconds), silence_seconds)

    def _lines(self, answer: http.client.HTTPResponse, silence_seconds: float) -> Iterator[dict[str, Any]]:
        try:
            if self._connection is not None and self._connection.sock is not None:
                self._connection.sock.settimeout(silence_seconds)
            while line := answer.readline(LINE_BYTES):
                yield parse_object(line)
        except (OSError, http.client.HTTPException) as error:
            raise KubernetesAway(describe(self.account, error)) from error
        finally:
            # What is left of a stream cannot be skipped: the connection ends with it.
            self.close()

    def interrupt(self) -> None:
        """From another thread: whoever waits for an answer is woken."""
        connection = self._connection
        if connection is not None and connection.sock is not None:
            try:
                connection.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: bytes | None = None,
        media_type: str = "",
    ) -> dict[str, Any]:
        answer = self._send(method, path, query or {}, body, media_type, ANSWER_SECONDS)
        return parse_object(self._read_whole(answer))

    def _read_whole(self, answer: http.client.HTTPResponse) -> bytes:
        try:
            content = answer.read(ANSWER_BYTES + 1)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise KubernetesAway(describe(self.account, error)) from error
        if len(content) > ANSWER_BYTES:
            self.close()
            raise KubernetesAway(f"an answer of more than {ANSWER_BYTES} bytes")
        return content

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: bytes | None,
        media_type: str,
        silence_seconds: float,
    ) -> http.client.HTTPResponse:
        """The answer's head; a kept connection that the server closed meanwhile is made anew, once."""
        was_kept = self._connection is not None
        try:
            answer = self._exchange(method, path, query, body, media_type, silence_seconds)
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError) as error:
            self.close()
            if not was_kept:
                raise KubernetesAway(describe(self.account, error)) from error
            return self._send(method, path, query, body, media_type, silence_seconds)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise KubernetesAway(describe(self.account, error)) from error
        if answer.status >= 300:
            raise self._refusal(answer)
        return answer

    def _exchange(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: bytes | None,
        media_type: str,
        silence_seconds: float,
    ) -> http.client.HTTPResponse:
        if self._connection is None:
            self._connection = connect(self.account)
        if self._connection.sock is not None:
            self._connection.sock.settimeout(silence_seconds)
        target = self.account.prefix + path + (f"?{urlencode(query)}" if query else "")
        headers = {"Accept": self._accept(query), "User-Agent": f"nodescope/{__version__}"}
        if media_type:
            headers["Content-Type"] = media_type
        token = self.account.read_token()
        if token:
            headers["Authorization"] = f"Bearer {token}"
        self._connection.request(method, target, body, headers)
        return self._connection.getresponse()

    def _accept(self, query: Mapping[str, str]) -> str:
        if not self._metadata_only:
            return WHOLE
        return METADATA if "watch" in query else METADATA_LIST

    def _refusal(self, answer: http.client.HTTPResponse) -> KubernetesAway | KubernetesRefused:
        """What the server says, in its own words; 429 and 5xx mean: later."""
        content = self._read_whole(answer)
        try:
            said = str(json.loads(content).get("message") or "")
        except (ValueError, AttributeError, RecursionError):
            said = content[:200].decode("utf-8", "replace")
        sentence = f"{answer.status} {' '.join(said.split())[:300] or answer.reason}"
        if answer.status == 401:
            sentence += f": {self.account.origin} is not accepted: its token or certificate has expired, or is of another cluster"
        if answer.status == 429 or answer.status >= 500:
            return KubernetesAway(sentence, parse_retry_after(answer.headers.get("Retry-After", "")))
        return KubernetesRefused(sentence, answer.status)


def connect(account: KubeAccount) -> http.client.HTTPConnection:
    if account.tls is None:
        return http.client.HTTPConnection(account.host, account.port, timeout=CONNECT_SECONDS)
    if account.server_name:
        return NamedConnection(account)
    return http.client.HTTPSConnection(
        account.host, account.port, timeout=CONNECT_SECONDS, context=account.tls
    )


class NamedConnection(http.client.HTTPConnection):
    """TLS to one address in the name of another, as tls-server-name asks."""

    def __init__(self, account: KubeAccount) -> None:
        super().__init__(account.host, account.port, timeout=CONNECT_SECONDS)
        self._account = account

    def connect(self) -> None:
        super().connect()
        if self._account.tls is not None:
            self.sock = self._account.tls.wrap_socket(self.sock, server_hostname=self._account.server_name)


def parse_object(content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise KubernetesAway(f"an answer that is not JSON: {content[:80]!r}") from error
    if not isinstance(found, dict):
        raise KubernetesAway(f"an answer that is no object: {content[:80]!r}")
    return found


def parse_retry_after(text: str) -> float | None:
    """Seconds, as the API server writes it; never longer than a minute."""
    return min(float(text), PATIENCE_SECONDS) if text.isdigit() and len(text) < 9 else None


def describe(account: KubeAccount, error: Exception) -> str:
    """Where we asked, by whose word, and what went wrong."""
    # An OSError's own words come after a number that says the same.
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    where = f"{account.host}:{account.port} ({account.origin})"
    return f"{where} does not answer: {said or type(error).__name__}"
