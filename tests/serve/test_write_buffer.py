"""A connection that joins what is written: the same bytes in the same order, in fewer calls."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodescope.serve.bounds.write_buffer import JOINED_BYTES, PIECE_BYTES, JoinedTransport, Listening


class Wire(asyncio.Transport):
    """Remembers each call; None is the close."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[bytes | None] = []

    def write(self, data: Any) -> None:
        self.calls.append(bytes(data))

    def close(self) -> None:
        self.calls.append(None)

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0


STEPS = st.lists(st.binary(max_size=40) | st.sampled_from(["flush", "turn"]), max_size=20)


@given(STEPS)
def test_the_bytes_are_those_that_were_written(steps: list[bytes | str]) -> None:
    """forall writes, flushes and turns of the loop: join(calls) == join(writes), and the close comes last."""

    async def talk() -> Wire:
        wire = Wire()
        joined = JoinedTransport(wire, asyncio.get_running_loop())
        for step in steps:
            if isinstance(step, bytes):
                joined.write(step)
            elif step == "flush":
                joined.flush()
            else:
                await asyncio.sleep(0)
        joined.close()
        return wire

    *calls, last = asyncio.run(talk()).calls
    assert last is None
    assert b"".join(call or b"" for call in calls) == b"".join(one for one in steps if isinstance(one, bytes))
    assert b"" not in calls


def test_an_answer_is_one_call_and_a_part_of_one_does_not_wait_for_the_rest() -> None:
    async def talk() -> Wire:
        wire = Wire()
        joined = JoinedTransport(wire, asyncio.get_running_loop())
        joined.write(b"head")
        joined.write(b"body")
        joined.flush()
        joined.write(b"first of many")
        await asyncio.sleep(0)
        joined.write(b"x" * (JOINED_BYTES + 1))
        return wire

    assert asyncio.run(talk()).calls == [b"headbody", b"first of many", b"x" * (JOINED_BYTES + 1)]


class Socket(Wire):
    """Takes so many bytes, then tells to stop until it is read."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = room
        self.is_aborted = False
        self.joined: JoinedTransport | None = None

    def write(self, data: Any) -> None:
        super().write(data)
        self.room -= len(data)
        if self.room <= 0 and self.joined:
            self.joined.hear_pause(True)

    def abort(self) -> None:
        self.is_aborted = True


def test_a_long_answer_waits_in_pieces_and_its_close_comes_last() -> None:
    """What the socket does not take stays ours, counted; reading on brings the rest, in order."""

    async def talk() -> tuple[Socket, list[bool]]:
        socket = Socket(PIECE_BYTES)
        said: list[bool] = []
        joined = JoinedTransport(
            socket, asyncio.get_running_loop(), listening=Listening(full=said.append, unread=said.append)
        )
        socket.joined = joined
        body = bytes(range(256)) * (3 * PIECE_BYTES // 256)
        joined.write(body)
        joined.close()
        assert joined.unread_bytes == 2 * PIECE_BYTES
        assert joined.is_closing()
        assert None not in socket.calls
        socket.room = 10 * PIECE_BYTES
        joined.hear_pause(False)
        assert joined.unread_bytes == 0
        joined.detach()
        assert b"".join(call or b"" for call in socket.calls) == body
        return socket, said

    socket, said = asyncio.run(talk())
    assert socket.calls[-1] is None
    assert said == [True, True, False, False]


def test_who_does_not_read_is_told_of_and_nothing_is_kept_for_who_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("nodescope.serve.bounds.write_buffer.WATCH_SECONDS", 0.01)
    monkeypatch.setattr("nodescope.serve.bounds.write_buffer.STALL_SECONDS", 0.03)

    async def talk() -> None:
        stalled = asyncio.Event()
        socket = Socket(1)
        joined = JoinedTransport(socket, asyncio.get_running_loop(), listening=Listening(stalled=stalled.set))
        socket.joined = joined
        joined.write(b"x" * (2 * PIECE_BYTES))
        async with asyncio.timeout(10):
            await stalled.wait()
        assert joined.stalled_seconds > 0
        joined.detach()
        joined.write(b"for nobody" * JOINED_BYTES)
        assert joined.unread_bytes == 0
        assert joined.is_closing()

    asyncio.run(talk())
