"""
/live: the ring's newest frames, in the codec of the log, with the next cursor.

A cursor is `<run>-<sequence>`: after a restart of the agent, or when the
asked frames have left the ring, the answer says that it is not complete and
starts with the oldest frame there is.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from nodescope.base.codec import Encoder
from nodescope.base.errors import RequestRejected
from nodescope.base.frame import Frame
from nodescope.hold.ring import Ring

# A tail of so many frames or bytes at once; a reader that is further
# behind asks again.
FRAMES = 120
# Two minutes of 5,000 containers are some 400 MB.
TAIL_BYTES = 2**20
# The sequence is -1 before the first tick; 18 digits are more than any run has.
_CURSOR = re.compile(r"(?P<run>[^-]+)-(?P<sequence>-?[0-9]{1,18})")


@dataclass(frozen=True, slots=True)
class LiveBody:
    """An answer of /live."""

    body: bytes
    cursor: str
    complete: bool
    more: bool = False
    """Whether there are frames behind the cursor already."""


@dataclass(frozen=True, slots=True)
class Live:
    """Reads tails from the ring."""

    ring: Ring
    run_id: str
    node: str

    def read(self, since: str) -> LiveBody:
        """Frames behind the cursor; an empty cursor means the newest only."""
        newest = self.ring.newest()
        last = newest.sequence if newest else -1
        sequence, known = self._parse(since, last)
        complete, frames = self.ring.since(sequence)
        body, count = self._encode(frames[:FRAMES])
        cursor = f"{self.run_id}-{frames[count - 1].sequence if count else sequence}"
        return LiveBody(body, cursor, complete and known, count < len(frames))

    def _encode(self, frames: Sequence[Frame]) -> tuple[bytes, int]:
        """The first of them, and how many these are."""
        encoder = Encoder()
        body = bytearray(encoder.hello(run=self.run_id, node=self.node))
        for count, frame in enumerate(frames, 1):
            body += encoder.encode(frame)
            if len(body) >= TAIL_BYTES:
                return bytes(body), count
        return bytes(body), len(frames)

    def _parse(self, since: str, last: int) -> tuple[int, bool]:
        if not since:
            return max(-1, last - 1), True
        match = _CURSOR.fullmatch(since)
        if not match:
            raise RequestRejected(
                f"since={since[:60]!r} is not a cursor; accepted: the Nodescope-Cursor of an earlier answer"
            )
        return (int(match["sequence"]), True) if match["run"] == self.run_id else (-1, False)
