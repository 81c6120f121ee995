"""Asking an agent over a real socket: kept connections, one deadline, and nothing but what agents send."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from nodescope.base.errors import HttpFailed
from nodescope.use.adapter.agent_client import AgentClient, NotHttp, parse_head, render_request

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def serve(answers: list[bytes], trial: Callable[[AgentClient], Awaitable[None]]) -> list[int]:
    """Each connection gets the next answer to each of its requests; how many requests each had."""
    requests: list[int] = []
    open_writers: list[asyncio.StreamWriter] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(0)
        open_writers.append(writer)
        own = len(requests) - 1
        while (head := await reader.readline()) and answers:
            while await reader.readline() not in (b"\r\n", b""):
                pass
            assert head == b"GET /pods HTTP/1.1\r\n"
            requests[own] += 1
            writer.write(answers.pop(0))

    async def run() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        client = AgentClient("127.0.0.1", server.sockets[0].getsockname()[1])
        async with server:
            await trial(client)
            client.close()
            for writer in open_writers:
                writer.close()
                with suppress(OSError):
                    await writer.wait_closed()

    asyncio.run(run())
    return requests


def test_a_connection_is_kept() -> None:
    async def trial(client: AgentClient) -> None:
        for _ in range(3):
            assert await client.get("/pods", "", 10) == b"ok"

    assert serve([OK] * 3, trial) == [3]


def test_one_that_was_closed_meanwhile_is_opened_again_once() -> None:
    async def trial(client: AgentClient) -> None:
        assert await client.get("/pods", "", 10) == b"ok"
        client._streams[1].get_extra_info("socket").shutdown(2)  # type: ignore[index]
        assert await client.get("/pods", "", 10) == b"ok"

    assert serve([OK] * 2, trial) == [1, 1]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", "it says 503"),
        (b"SSH-2.0-x\r\n\r\n", "not an answer of HTTP"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "length ''"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n", "at most"),
        (b"x" * 40_000, "limit"),
    ],
)
def test_what_no_agent_sends_is_a_failure_in_one_line(answer: bytes, said: str) -> None:
    async def trial(client: AgentClient) -> None:
        with pytest.raises(HttpFailed, match=said):
            await client.get("/pods", "", 10)

    serve([answer], trial)


def test_an_agent_that_stops_in_the_middle_is_cut_at_the_deadline() -> None:
    async def trial(client: AgentClient) -> None:
        with pytest.raises(HttpFailed, match="no answer within"):
            await client.get("/pods", "", 0.2)

    serve([OK[:-1], OK], trial)


def test_an_answer_that_ends_the_connection_is_the_last_on_it() -> None:
    assert parse_head(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nConnection: close\r\n\r\n") == (200, 5, False)


def test_a_token_cannot_add_a_header() -> None:
    with pytest.raises(NotHttp, match="line break"):
        render_request("::1", "/pods", "Bearer a\r\nX: y")
    assert b"Host: [::1]\r\n" in render_request("::1", "/pods", "Bearer a")
