"""Messages that the SDK would drop: each has its error, with the request's id where it has one."""

import json

import mcp_types as types
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nodescope.use.mcp.protocol.message import Message, MessageRefused, read_message

PING = {"jsonrpc": "2.0", "id": 4, "method": "ping"}

REFUSED = [
    (b"{broken", -32700, None),
    (b"", -32700, None),
    (b"\xff\xfe{}", -32700, None),
    (b'{"jsonrpc":"2.0","id":4,"method":"ping","params":{"a":NaN}}', -32700, None),
    (b"[" * 100_000, -32700, None),
    (json.dumps([PING]).encode(), -32600, None),
    (b"[]", -32600, None),
    (b'"ping"', -32600, None),
    (b"null", -32600, None),
    (b'{"jsonrpc":"2.0","id":4}', -32600, 4),
    (b'{"id":"x","method":"ping"}', -32600, "x"),
    (b'{"jsonrpc":"1.0","id":4,"method":"ping"}', -32600, 4),
    (b'{"jsonrpc":"2.0","id":4,"method":7}', -32600, 4),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":4,"method":"tools/list","params":[1]}', -32602, 4),
    (b'{"jsonrpc":"2.0","id":4,"method":"tools/list","params":"all"}', -32602, 4),
]


@pytest.mark.parametrize(("text", "code", "its_id"), REFUSED)
def test_a_message_that_is_none_has_its_error(text: bytes, code: int, its_id: object) -> None:
    found = read_message(text)
    assert isinstance(found, MessageRefused)
    assert (found.code, found.id, found.is_answered) == (code, its_id, True)
    sent = json.loads(found.to_error().model_dump_json(by_alias=True, exclude_unset=True))
    assert sent["id"] == its_id
    assert sent["error"]["code"] == code
    assert len(sent["error"]["message"]) < 200


def test_a_notification_is_never_answered() -> None:
    found = read_message(b'{"jsonrpc":"2.0","method":"notifications/initialized","params":[1]}')
    assert isinstance(found, MessageRefused)
    assert not found.is_answered


def test_what_is_a_message_is_handed_on_with_its_id() -> None:
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 4}}
    assert read_message(json.dumps(PING).encode()) == Message(4)
    assert read_message(json.dumps({**PING, "params": None}).encode()) == Message(4)
    assert read_message(json.dumps(cancelled).encode()) == Message(None, 4)
    # An answer to a request of ours is no request.
    assert read_message(b'{"jsonrpc":"2.0","id":9,"result":{}}') == Message()


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
)
fields = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | values,
        "id": values,
        "method": st.just("ping") | values,
        "params": values,
    },
)


@given(fields | values)
@example({"jsonrpc": "2.0", "id": "\ud800", "method": "ping"})
@example({"jsonrpc": "2.0", "id": 10**400, "method": "ping"})
def test_whatever_comes_is_refused_or_taken_by_the_sdk(content: object) -> None:
    """forall JSON: read_message refuses it, or the SDK's own model accepts it; nothing falls between."""
    text = json.dumps(content).encode()
    found = read_message(text)
    if isinstance(found, MessageRefused):
        assert found.code in (-32700, -32600, -32602)
    else:
        types.jsonrpc_message_adapter.validate_json(text, by_name=False)
