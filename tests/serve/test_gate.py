"""The gate in front of every server: token, Host, query length, headers; and bodies within bounds."""

import asyncio
from typing import Any

import httpx
import pytest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from nodescope.base.errors import RequestRejected
from nodescope.serve.body import BodiesTooMany, BodyTooLarge, HeldBytes, read_body
from nodescope.serve.gate import PROBES, Gate, is_local, name_hosts, parse_host


def ask(
    gate: Gate,
    path: str,
    host: str = "localhost",
    method: str = "GET",
    scheme: str = "http",
    **headers: str,
) -> httpx.Response:
    async def talk() -> httpx.Response:
        transport = httpx.ASGITransport(app=gate)
        async with httpx.AsyncClient(transport=transport, base_url=f"{scheme}://{host}") as client:
            return await client.request(method, path, headers=headers)

    return asyncio.run(talk())


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    await Response("in", headers={"X-Frame": "theirs"})(scope, receive, send)


def admit(authorization: str) -> bool:
    return authorization == "Bearer right"


def test_without_rules_everything_passes() -> None:
    assert ask(Gate(answer), "/anything", "elsewhere.example").text == "in"


@pytest.mark.parametrize("path", sorted(PROBES))
def test_probes_need_no_token(path: str) -> None:
    assert ask(Gate(answer, admit), path).text == "in"


@pytest.mark.parametrize("path", ["/", "/metrics", "/healthz/", "/healthz%0A", "/HEALTHZ", "//healthz"])
def test_every_other_path_does(path: str) -> None:
    """Whatever a router behind the gate would make of a path, it is refused before."""
    refused = ask(Gate(answer, admit), path)
    assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
    assert ask(Gate(answer, admit), path, Authorization="Bearer right").text == "in"


def test_a_query_may_have_its_length_and_no_more() -> None:
    gate = Gate(answer, query_characters=10, hints={414: "less"})
    assert ask(gate, "/?" + "x" * 10).text == "in"
    refused = ask(gate, "/?" + "x" * 11)
    assert (refused.status_code, refused.json()["hint"]) == (414, "less")


def test_on_loopback_only_its_names_are_answered() -> None:
    """A name that resolves to 127.0.0.1 in a visitor's browser is not enough."""
    gate = Gate(answer, hosts=frozenset({"node.example"}))
    for name in ("localhost", "127.0.0.1:8050", "[::1]:8050", "127.8.9.1", "Node.Example:80"):
        assert ask(gate, "/", host=name).text == "in", name
    for name in ("evil.example", "localhost.evil.example", "10.0.0.1"):
        assert ask(gate, "/", host=name).status_code == 421, name


OTHER_SITE = {"Sec-Fetch-Site": "cross-site"}
FOLLOWED = {**OTHER_SITE, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("GET", {}, 200),
        ("POST", {}, 200),
        ("POST", {"Sec-Fetch-Site": "same-origin", "Origin": "http://localhost"}, 200),
        ("POST", {"Origin": "http://localhost:80"}, 200),
        ("GET", {"Sec-Fetch-Site": "none"}, 200),
        ("GET", FOLLOWED, 200),
        ("POST", FOLLOWED, 403),
        ("GET", OTHER_SITE, 403),
        ("GET", {"Sec-Fetch-Site": "same-site"}, 403),
        ("GET", {**OTHER_SITE, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}, 403),
        ("POST", {"Origin": "http://evil.example"}, 403),
        ("POST", {"Origin": "null"}, 403),
        ("POST", {"Origin": "http://localhost:9999"}, 403),
    ],
)
def test_a_page_of_another_site_is_refused(method: str, headers: dict[str, str], status: int) -> None:
    """Neither its forms nor its pictures; a link that somebody follows is a visit."""
    assert ask(Gate(answer), "/fpga/events", method=method, **headers).status_code == status
    assert ask(Gate(answer, same_origin=False), "/", method=method, **headers).status_code == 200


def test_the_names_of_a_server_follow_its_addresses() -> None:
    """On loopback its own alone; elsewhere all, unless some are named: then these, and plain addresses."""
    assert name_hosts(["127.0.0.1:9100", "[::1]:9100"], []) == frozenset()
    assert name_hosts(["127.0.0.1:9100", "0.0.0.0:8000"], []) is None
    assert name_hosts([":9100"], []) is None
    named = Gate(answer, hosts=name_hosts(["0.0.0.0:9100"], ["Node.example"]), any_address=True)
    for host, status in (("node.example", 200), ("10.0.0.1:9100", 200), ("evil.example", 421)):
        assert ask(named, "/", host=host).status_code == status, host


def test_under_tls_the_cookie_is_for_tls_alone() -> None:
    gate = Gate(answer, admit, cookie="c")
    assert "Secure" in ask(gate, "/?token=right", scheme="https").headers["set-cookie"].split("; ")
    assert "Secure" not in ask(gate, "/?token=right").headers["set-cookie"].split("; ")


def test_a_browser_exchanges_the_token_for_a_cookie() -> None:
    gate = Gate(answer, admit, cookie="c")
    welcome = ask(gate, "/?token=right")
    assert (welcome.status_code, welcome.headers["location"]) == (303, "/")
    assert {"HttpOnly", "SameSite=strict"} <= set(welcome.headers["set-cookie"].split("; "))
    assert ask(gate, "/?token=wrong").json()["error"] == "token refused"
    assert ask(gate, "/data", Cookie="c=right").text == "in"
    assert ask(gate, "/data", Cookie="c=wrong").status_code == 401


def test_without_a_cookie_s_name_no_cookie_counts() -> None:
    """Servers that no browser visits take the header alone."""
    gate = Gate(answer, admit)
    assert ask(gate, "/?token=right").status_code == 401
    assert ask(gate, "/", Cookie="c=right").status_code == 401


def test_headers_are_on_answers_and_on_refusals() -> None:
    """And they replace what the application says."""
    gate = Gate(answer, admit, headers={"X-Frame": "ours"})
    assert ask(gate, "/healthz").headers["x-frame"] == "ours"
    assert ask(gate, "/").headers["x-frame"] == "ours"


@pytest.mark.parametrize(
    ("text", "name"), [("a:80", "a"), ("a", "a"), ("[::1]:80", "::1"), ("", ""), ("a:b", "a:b")]
)
def test_the_name_of_a_host(text: str, name: str) -> None:
    assert parse_host(text) == name
    assert not is_local("")


# -- bodies --------------------------------------------------------------------------


def read(*messages: dict[str, Any], length: bytes = b"", most_bytes: int = 10) -> bytes:
    waiting = iter(messages)

    async def receive() -> dict[str, Any]:
        found = next(waiting, None)
        if found is None:
            await asyncio.Event().wait()
        return found or {}

    headers = [(b"content-length", length)] if length else []
    return asyncio.run(read_body({"headers": headers}, receive, most_bytes, 0.01))


def part(body: bytes, more: bool = False) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


def test_a_body_comes_in_parts() -> None:
    assert read(part(b"abc", True), part(b"", True), part(b"defghij")) == b"abcdefghij"


def test_a_body_beyond_the_bound_is_refused_with_its_status() -> None:
    """By what its sender declares, before a byte is read; and by what really comes."""
    with pytest.raises(BodyTooLarge, match="has 11 bytes; at most 10") as caught:
        read(length=b"11")
    assert caught.value.status == 413
    with pytest.raises(BodyTooLarge, match="longer than the 10 bytes"):
        read(part(b"x" * 6, True), part(b"x" * 6, True), length=b"2")


def test_a_body_that_ends_early_or_never_is_refused() -> None:
    with pytest.raises(RequestRejected, match="closed before the body was whole"):
        read(part(b"a", True), {"type": "http.disconnect"})
    with pytest.raises(RequestRejected, match=r"did not arrive within 0\.01 s"):
        read(part(b"a", True))


def test_bodies_are_bounded_in_sum_and_for_each_address() -> None:
    """Counted as they come, and given back when the body is read or refused."""
    held = HeldBytes(10, 6)
    held.take("a", 6)
    with pytest.raises(BodiesTooMany) as caught:
        held.take("a", 1)
    assert caught.value.status == 503
    held.take("b", 4)
    with pytest.raises(BodiesTooMany):
        held.take("c", 1)
    held.give("a", 6)
    held.take("c", 6)
    assert held.total == 10
