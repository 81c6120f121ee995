"""The front: the page and probes load nothing, questions load what answers them once."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from nodescope.base.errors import RequestRejected
from nodescope.use.viewer.front import Front, guard

WAIT_SECONDS = 30.0


class Loader:
    """Counts how often it is called; fails as often as it is told, and waits while it is held."""

    def __init__(self, failures: int = 0) -> None:
        self.calls = 0
        self.failures = failures
        self.begun = threading.Event()
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def __call__(self) -> ASGIApp:
        self.calls += 1
        self.begun.set()
        assert self.may_go_on.wait(WAIT_SECONDS)
        if self.calls <= self.failures:
            raise RequestRejected("no such file or folder: /gone")
        return PlainTextResponse("answered")


def ask(front: Front, questions: Callable[[httpx.AsyncClient], Awaitable[Any]], **options: Any) -> Any:
    async def main() -> Any:
        transport = httpx.ASGITransport(guard(front, **options))
        async with httpx.AsyncClient(
            transport=transport, base_url="http://localhost", timeout=WAIT_SECONDS
        ) as client:
            return await questions(client)

    return asyncio.run(main())


@pytest.mark.parametrize("path", ["/", "/api/health", "/healthz", "/readyz", "/no-such-file", "/apis"])
def test_the_page_and_probes_load_nothing(path: str) -> None:
    load = Loader()
    answer = ask(Front(load), lambda client: client.get(path))
    assert answer.status_code == (404 if path in ("/no-such-file", "/apis") else 200)
    assert load.calls == 0


@pytest.mark.parametrize("path", ["/", "/healthz", "/api/health"])
def test_another_method_is_refused_without_a_load(path: str) -> None:
    load = Loader()
    answer = ask(Front(load), lambda client: client.post(path))
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET")
    assert load.calls == 0


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Host": "evil.example"}, 421),
        ({"Origin": "https://evil.example"}, 403),
    ],
)
def test_who_is_refused_loads_nothing(headers: dict[str, str], status: int) -> None:
    load = Loader()
    answer = ask(
        Front(load),
        lambda client: client.get("/api/instance", headers=headers),
        admits=lambda given: given == "Bearer right",
    )
    assert (answer.status_code, load.calls) == (status, 0)


@pytest.mark.parametrize("path", ["/api/instance", "/api", "/api/nothing", "/openapi.json"])
def test_a_question_loads_what_answers_it(path: str) -> None:
    load = Loader()
    answer = ask(Front(load), lambda client: client.get(path))
    assert (answer.text, load.calls) == ("answered", 1)


def test_two_at_once_wait_for_one_load_and_are_told_of_it() -> None:
    load = Loader()
    load.may_go_on.clear()

    async def questions(client: httpx.AsyncClient) -> list[str]:
        said = [(await client.get("/api/health")).json()["answers"]]
        waiting = [asyncio.create_task(client.get("/api/instance")) for _ in range(2)]
        await asyncio.to_thread(load.begun.wait, WAIT_SECONDS)
        said.append((await client.get("/api/health")).json()["answers"])
        load.may_go_on.set()
        said += [one.text for one in await asyncio.gather(*waiting)]
        said.append((await client.get("/api/health")).json()["answers"])
        return said

    assert ask(Front(load), questions) == ["resting", "starting", "answered", "answered", "ready"]
    assert load.calls == 1


def test_the_load_goes_on_when_one_of_two_leaves() -> None:
    load = Loader()
    load.may_go_on.clear()

    async def questions(client: httpx.AsyncClient) -> str:
        leaves, stays = (asyncio.create_task(client.get("/api/instance")) for _ in range(2))
        await asyncio.to_thread(load.begun.wait, WAIT_SECONDS)
        leaves.cancel()
        await asyncio.gather(leaves, return_exceptions=True)
        load.may_go_on.set()
        return (await stays).text

    assert ask(Front(load), questions) == "answered"
    assert load.calls == 1


def test_a_load_that_fails_is_told_and_tried_again() -> None:
    load = Loader(failures=1)

    async def questions(client: httpx.AsyncClient) -> list[httpx.Response]:
        return [await client.get("/api/instance") for _ in range(2)]

    refused, answered = ask(Front(load), questions)
    assert refused.status_code == 503
    assert refused.json()["detail"] == "no such file or folder: /gone"
    assert (answered.text, load.calls) == ("answered", 2)


def test_time_without_a_question_counts_from_the_end_of_the_last_answer() -> None:
    """An open live tail is a question that is still being answered."""
    seen: list[tuple[str, bool]] = []
    front: Front

    async def tail(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(("during", front.idle_seconds() == 0.0))
        await PlainTextResponse("tail")(scope, receive, send)

    async def questions(client: httpx.AsyncClient) -> None:
        await client.get("/")
        seen.append(("only the page", front.woken.is_set()))
        await client.get("/api/live")
        await asyncio.sleep(0)
        seen.append(("after", front.idle_seconds() > 0.0))

    front = Front(lambda: tail)
    ask(front, questions)
    assert seen == [("only the page", False), ("during", True), ("after", True)]


def test_a_file_of_the_page_is_compressed_as_answers_are(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<!doctype html>" + "long " * 1000)
    answer = ask(Front(Loader(), tmp_path), lambda client: client.get("/"))
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.headers["content-security-policy"]
