"""
A frame's header: its times, outcomes and events, without its blocks.

The events of a wave are kept as one text. Thousands of containers that start at once are some
ten small objects each, made while the memory of all the others is taken: kept as objects, they
would hold every page of it for minutes after the containers are gone.

For the same reason outcomes are kept once for as long as nothing but their cost changes.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from nodescope.base.codec import events_from_rows, events_to_rows
from nodescope.base.frame import Frame, Outcome

# From so many on, the events of one frame are a wave.
WAVE_EVENTS = 50


@dataclass(frozen=True, slots=True)
class Header:
    frame: Frame
    """Without its blocks; of a wave, without its events. What a source's tick cost is the newest frame's alone."""
    block_count: int
    wave: bytes = b""
    """JSON."""

    def unpack(self) -> Frame:
        return (
            replace(self.frame, events=events_from_rows(json.loads(self.wave))) if self.wave else self.frame
        )


def pack_header(frame: Frame, before: Header | None = None) -> Header:
    """`before` is the tick's before, which it may share its outcomes with."""
    known = before.frame.outcomes if before else {}
    bare = replace(frame, blocks=(), outcomes=share_outcomes(frame.outcomes, known))
    if len(frame.events) < WAVE_EVENTS:
        return Header(bare, len(frame.blocks))
    wave = json.dumps(events_to_rows(frame.events)).encode()
    return Header(replace(bare, events=()), len(frame.blocks), wave)


def share_outcomes(outcomes: Mapping[str, Outcome], known: Mapping[str, Outcome]) -> Mapping[str, Outcome]:
    """The known ones themselves when they say the same, but for the cost."""
    if outcomes.keys() != known.keys():
        return outcomes
    for name, one in outcomes.items():
        other = known[name]
        if one is not other and (
            one.state != other.state
            or one.reason != other.reason
            or one.detail != other.detail
            or one.note != other.note
        ):
            return outcomes
    return known
