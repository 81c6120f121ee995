"""How far back the frames of a run are kept: by time, whatever the interval."""

import pytest

from nodescope.base.frame import Frame
from nodescope.read.live.follow import AGENT_SECONDS, LOG_SECONDS, FrameStream


def make_frames(count: int, interval_seconds: float, first: int = 0) -> list[Frame]:
    at_ns = [round((first + number) * interval_seconds * 1e9) for number in range(count)]
    return [Frame(first + number, one, one, (), {}) for number, one in enumerate(at_ns)]


@pytest.mark.parametrize("interval_seconds", [0.1, 1.0, 10.0])
def test_what_a_consolidator_has_not_converted_yet_is_all_there(interval_seconds: float) -> None:
    """300 frames were kept: of ticks of a second less than a pass of five minutes, of a tenth 30 s."""
    stream = FrameStream("node")
    # Five minutes between two passes, and an open segment.
    count = round((300 + 90) / interval_seconds)
    stream.add(make_frames(count, interval_seconds))
    assert list(stream.frames) == list(range(count))


@pytest.mark.parametrize("seconds", [LOG_SECONDS, AGENT_SECONDS])
def test_older_frames_leave_also_one_by_one(seconds: float) -> None:
    stream = FrameStream("node", seconds=seconds)
    for number in range(round(seconds) + 50):
        stream.add(make_frames(1, 1.0, number))
    assert len(stream.frames) == round(seconds)
    assert max(stream.frames) == round(seconds) + 49


def test_the_newest_minute_is_a_minute() -> None:
    stream = FrameStream("node")
    stream.add(make_frames(1200, 0.1))
    assert list(stream.newest(60).frames) == list(range(600, 1200))
    assert FrameStream("node").newest(60).frames == {}
