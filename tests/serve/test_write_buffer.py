"""A connection that joins what is written: the same bytes in the same order, in fewer calls."""

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from nodescope.serve.write_buffer import JOINED_BYTES, JoinedTransport


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
