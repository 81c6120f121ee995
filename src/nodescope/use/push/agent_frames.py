"""The agent's newest frames, over its /live: each once, and how many were missed."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from nodescope.base.codec import Decoder
from nodescope.base.errors import ArchiveRefused, ArchiveTruncated, HttpFailed
from nodescope.base.frame import Frame
from nodescope.serve.http_client import HttpClient

# An agent sends a MiB at once; a ring of a large node is some hundred answers.
ANSWERS_MOST = 200
# No run has this name: the whole ring, which has what is read every half minute, too.
ALL = "all--1"
NOT_OURS = (ArchiveRefused, KeyError, ValueError, TypeError, struct.error, RecursionError)


@dataclass(slots=True)
class AgentFrames:
    client: HttpClient
    token: str = ""
    node: str = ""
    """As the agent calls itself; known with the first answer."""
    missed: int = 0
    """Ticks that had left the ring when they were asked for."""
    _cursor: str = ALL
    _last: tuple[str, int] = ("", -1)

    def poll(self) -> Iterator[Frame]:
        """What is new; HttpFailed where the agent does not answer, or is none."""
        for _ in range(ANSWERS_MOST):
            headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
            answer = self.client.read(f"/live?since={self._cursor}", headers)
            yield from self._decode(answer.body)
            self._cursor = answer.headers.get("Nodescope-Cursor") or ALL
            if answer.headers.get("Nodescope-More") != "true":
                return

    def _decode(self, body: bytes) -> Iterator[Frame]:
        decoder = Decoder()
        try:
            for frame in decoder.decode(body):
                self.node = str(decoder.hello.get("node") or self.node)
                self._count_missed(str(decoder.hello.get("run")), frame.sequence)
                yield frame
        except ArchiveTruncated:
            # The answer was cut; its whole frames are good.
            return
        except NOT_OURS as error:
            address = self.client.endpoint.render()
            raise HttpFailed(
                address, "this is no agent of nodescope, or it is newer than this program"
            ) from error

    def _count_missed(self, run: str, sequence: int) -> None:
        """Another run counts from its own begin."""
        if self._last[0] == run:
            self.missed += max(0, sequence - self._last[1] - 1)
        self._last = (run, sequence)
