"""An answer in two parts is the same answer."""

import asyncio

import httpx
import pytest

from nodescope.serve.pieces import PiecesResponse


@pytest.mark.parametrize("rest", [b"", b"and the rest"])
def test_two_parts_are_one_answer_with_one_length(rest: bytes) -> None:
    async def talk() -> httpx.Response:
        transport = httpx.ASGITransport(app=PiecesResponse(b"first ", rest, {"Content-Type": "text/plain"}))
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            return await client.get("/")

    answer = asyncio.run(talk())
    assert answer.content == b"first " + rest
    assert answer.headers["content-length"] == str(len(answer.content))
    assert answer.headers["content-type"] == "text/plain"
