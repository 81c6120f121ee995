"""
The other replicas' decisions: kube-scheduler asks one of them, and people ask any.

Their addresses are those of one name, a headless Service's, looked up for each
question. A question to a peer says that it is one, and is not handed on.
"""

import json
import socket
import ssl
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from nodescope.base.errors import HttpFailed
from nodescope.serve.http_client import Endpoint, HttpClient

# A person waits; a replica that is gone must not take longer than this.
PEER_SECONDS = 1.0
# A decision about 5,000 nodes is thinned before it is told; one about 200 is 100 KB.
PEER_BYTES = 8 * 2**20
# More replicas than anybody runs.
PEERS = 8
HERE = "here"


@dataclass(frozen=True, slots=True)
class Peers:
    """Every replica, this one among them."""

    names: tuple[tuple[str, int], ...]
    """Host and port: one name that has all addresses, or several."""
    tls: ssl.SSLContext | None = None

    def explain(self, pod: str, authorization: str) -> list[dict[str, Any]]:
        """What each of them has decided about a pod; those that do not answer, or know nothing, are left out."""
        headers = {"Authorization": authorization} if authorization else {}
        addresses = self._find()
        if not addresses:
            return []
        with ThreadPoolExecutor(len(addresses)) as threads:
            told = threads.map(lambda address: self._ask(address, pod, headers), addresses)
            return [found for found in told if found]

    def _find(self) -> list[tuple[str, int]]:
        found: dict[tuple[str, int], None] = {}
        for host, port in self.names:
            with suppress(OSError):
                for *_, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
                    found[str(address[0]), port] = None
        return list(found)[:PEERS]

    def _ask(self, address: tuple[str, int], pod: str, headers: Mapping[str, str]) -> dict[str, Any]:
        client = HttpClient(Endpoint(*address, self.tls), PEER_SECONDS, PEER_BYTES)
        try:
            found = json.loads(client.read(f"/explain?pod={quote(pod)}&{HERE}=1", headers).body)
        except (HttpFailed, ValueError, RecursionError):
            return {}
        finally:
            client.close()
        return found if isinstance(found, dict) and isinstance(found.get("at"), int | float) else {}
