"""The queue: bounded, and every point is sent, lost or still there."""

from hypothesis import given
from hypothesis import strategies as st

from nodescope.use.push.push_queue import PushQueue
from nodescope.use.push.request import Encoded


def make_request(size: int, points: int = 1) -> Encoded:
    return Encoded(b"x" * size, points, 0)


def test_the_oldest_leaves_first_and_is_counted() -> None:
    queue = PushQueue(10)
    assert [queue.put(make_request(4, points)) for points in (1, 2, 3)] == [0, 0, 1]
    assert queue.counters.lost == {"queue_full": 1}
    assert [queue.take(0).points, queue.take(0).points, queue.take(0)] == [2, 3, None]  # type: ignore[union-attr]


def test_what_could_not_be_sent_is_the_oldest_again() -> None:
    queue = PushQueue(100)
    for points in (1, 2):
        queue.put(make_request(4, points))
    first = queue.take(0)
    assert first is not None
    queue.put_back(first)
    assert queue.take(0) is first


def test_a_closed_queue_is_emptied_and_not_waited_for() -> None:
    queue = PushQueue(100)
    queue.put(make_request(1))
    queue.close()
    assert queue.take(60) is not None
    assert queue.take(60) is None
    assert queue.is_closed


@given(
    st.lists(st.tuples(st.sampled_from(["put", "take", "return"]), st.integers(1, 20))), st.integers(1, 60)
)
def test_no_point_is_lost_uncounted_or_counted_twice(steps: list[tuple[str, int]], most: int) -> None:
    queue = PushQueue(most)
    made = delivered = 0
    for step, size in steps:
        if step == "put":
            queue.put(make_request(size, size))
            made += size
        elif (request := queue.take(0)) is not None:
            if step == "take":
                delivered += request.points
            else:
                queue.put_back(request)
        assert queue.waiting_bytes <= most
    left = queue.drain("stopped")
    assert made == delivered + queue.counters.lost.total()
    assert queue.counters.lost["stopped"] == left
    assert (queue.waiting_bytes, queue.waiting_requests) == (0, 0)
