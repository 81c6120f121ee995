"""
Asking many agents at once, on the event loop: a GET with a deadline over a kept connection.

Hundreds of agents may be asked for one answer, and those that are dead hold
nobody up: no thread waits for them. Of HTTP only what our agents send is
understood: a status and a body of a length that is said beforehand.
"""

import asyncio
import ssl
from contextlib import suppress
from dataclasses import dataclass, field

from nodescope import __version__
from nodescope.base.errors import HttpFailed

# A node of 250 pods answers with 40 KB.
ANSWER_BYTES = 4 * 2**20
HEAD_BYTES = 16384


class NotHttp(ValueError):
    """An answer that no agent of ours gives."""


@dataclass(slots=True)
class AgentClient:
    """Speaks to one agent; one request at a time."""

    address: str
    port: int
    tls: ssl.SSLContext | None = None
    _streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def get(self, target: str, authorization: str, seconds: float) -> bytes:
        """The body; HttpFailed where there is none in time, or another status than 200."""
        where = f"{self.address}:{self.port}"
        try:
            async with asyncio.timeout(seconds), self._lock:
                status, body = await self._ask(render_request(self.address, target, authorization))
        except TimeoutError as error:
            self.close()
            raise HttpFailed(where, f"no answer within {seconds:g} s", timed_out=True) from error
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
            self.close()
            raise HttpFailed(where, str(error) or type(error).__name__) from error
        if status != 200:
            raise HttpFailed(where, f"it says {status}", status)
        return body

    async def _ask(self, request: bytes) -> tuple[int, bytes]:
        was_kept = self._streams is not None
        try:
            return await self._exchange(request)
        except (ConnectionError, EOFError):
            if not was_kept:
                raise
            # Closed by the agent meanwhile.
            self.close()
            return await self._exchange(request)

    async def _exchange(self, request: bytes) -> tuple[int, bytes]:
        if self._streams is None:
            self._streams = await asyncio.open_connection(
                self.address, self.port, ssl=self.tls, limit=HEAD_BYTES
            )
        reader, writer = self._streams
        writer.write(request)
        status, length, is_kept = parse_head(await reader.readuntil(b"\r\n\r\n"))
        body = await reader.readexactly(length)
        if not is_kept:
            self.close()
        return status, body

    def close(self) -> None:
        if self._streams is not None:
            with suppress(OSError, RuntimeError):
                self._streams[1].close()
            self._streams = None


def render_request(host: str, target: str, authorization: str) -> bytes:
    """An address of IPv6 is written in brackets."""
    named = f"[{host}]" if ":" in host else host
    credentials = f"Authorization: {authorization}\r\n" if authorization else ""
    if any(sign in authorization for sign in "\r\n"):
        raise NotHttp("the token has a line break in it")
    head = (
        f"GET {target} HTTP/1.1\r\nHost: {named}\r\nUser-Agent: nodescope/{__version__}\r\n{credentials}\r\n"
    )
    return head.encode("latin-1")


def parse_head(head: bytes) -> tuple[int, int, bool]:
    """Status, length of the body, and whether the connection stays; NotHttp for what no agent sends."""
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ", 2)
    if len(words) < 2 or words[0] not in ("HTTP/1.1", "HTTP/1.0") or not words[1].isdigit():
        raise NotHttp(f"not an answer of HTTP: {first[:40]!r}")
    headers = {
        name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
    }
    length = headers.get("content-length", "")
    if not length.isdigit() or len(length) > 9 or int(length) > ANSWER_BYTES:
        raise NotHttp(f"an answer of length {length[:20]!r}; at most {ANSWER_BYTES} bytes are taken")
    is_kept = words[0] == "HTTP/1.1" and headers.get("connection", "").lower() != "close"
    return int(words[1]), int(length), is_kept
