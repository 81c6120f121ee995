"""
A frame's header: its times, outcomes and events, without its blocks.

The events of a wave are kept as one text. Thousands of containers that start at once are some
ten small objects each, made while the memory of all the others is taken: kept as objects, they
would hold every page of it for minutes after the containers are gone.
"""

import json
from dataclasses import dataclass, replace

from nodescope.base.codec import events_from_rows, events_to_rows
from nodescope.base.frame import Frame

# From so many on, the events of one frame are a wave.
WAVE_EVENTS = 50


@dataclass(frozen=True, slots=True)
class Header:
    frame: Frame
    """Without its blocks; of a wave, without its events."""
    block_count: int
    wave: bytes = b""
    """JSON."""

    def unpack(self) -> Frame:
        return (
            replace(self.frame, events=events_from_rows(json.loads(self.wave))) if self.wave else self.frame
        )


def pack_header(frame: Frame) -> Header:
    bare = replace(frame, blocks=())
    if len(frame.events) < WAVE_EVENTS:
        return Header(bare, len(frame.blocks))
    wave = json.dumps(events_to_rows(frame.events)).encode()
    return Header(replace(bare, events=()), len(frame.blocks), wave)
