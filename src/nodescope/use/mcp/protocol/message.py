"""
JSON-RPC messages that cannot be handed on, and the error each is answered with.

The SDK drops such messages without a word on stdio, and answers over HTTP
without the request's id. A client that waits for an answer would wait for ever.
"""

import json
from dataclasses import dataclass
from typing import Any, NoReturn

import mcp_types as types
from pydantic import ValidationError

PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS = -32700, -32600, -32602
# A call is a name and a few words; a thousand times that is no call.
MESSAGE_BYTES = 256 * 1024
CANCELLED = "notifications/cancelled"

Id = str | int | None


@dataclass(frozen=True, slots=True)
class MessageRefused:
    """Why a message is not handed on."""

    code: int
    message: str
    id: Id = None
    """Of the request; None where it has none that can be used."""
    is_answered: bool = True
    """A notification is never answered, also not one that is wrong."""

    def to_error(self) -> types.JSONRPCError:
        error = types.ErrorData(code=self.code, message=self.message)
        return types.JSONRPCError(jsonrpc="2.0", id=self.id, error=error)


TOO_LONG = MessageRefused(INVALID_REQUEST, f"the message is longer than {MESSAGE_BYTES:,} bytes")


@dataclass(frozen=True, slots=True)
class Message:
    """A message as far as a transport needs it: which request it is, or which one it cancels."""

    id: Id = None
    cancels: Id = None


def read_message(text: bytes) -> Message | MessageRefused:
    """What may be handed to the SDK, or the error that answers it."""
    try:
        content = json.loads(text.decode(), parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        return MessageRefused(PARSE_ERROR, f"the message is not JSON: {describe(error)}")
    if not isinstance(content, dict):
        what = "a batch; batches are not supported" if isinstance(content, list) else "no object"
        return MessageRefused(INVALID_REQUEST, f"the message is {what}: send one JSON-RPC object per message")
    return check_fields(content) or check_model(text, content)


def check_fields(content: dict[str, Any]) -> MessageRefused | None:
    """The fields in the order in which a wrong one makes the others worthless."""
    if "id" in content and not is_id(content["id"]):
        return MessageRefused(INVALID_REQUEST, '"id" must be text or a whole number')
    its_id, is_answered = content.get("id"), "id" in content or "method" not in content
    if content.get("jsonrpc") != "2.0":
        return MessageRefused(INVALID_REQUEST, '"jsonrpc" must be "2.0"', its_id, is_answered)
    if "method" not in content:
        if "result" in content or "error" in content:
            return None
        return MessageRefused(INVALID_REQUEST, 'the message has no "method"', its_id)
    if not isinstance(content["method"], str):
        return MessageRefused(INVALID_REQUEST, '"method" must be text', its_id, is_answered)
    if not isinstance(content.get("params"), dict | None):
        return MessageRefused(
            INVALID_PARAMS, '"params" must be an object with named parameters', its_id, is_answered
        )
    return None


def check_model(text: bytes, content: dict[str, Any]) -> Message | MessageRefused:
    """The SDK's own check comes last: what it does not take must not vanish."""
    its_id = content.get("id") if "method" in content else None
    try:
        types.jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        is_parsed = first["type"] != "json_invalid"
        code = INVALID_REQUEST if is_parsed else PARSE_ERROR
        return MessageRefused(code, f"not a JSON-RPC message: {first['msg'][:120]}", its_id)
    params = content.get("params") or {}
    cancels = params.get("requestId") if content.get("method") == CANCELLED else None
    return Message(its_id, cancels if is_id(cancels) else None)


def is_id(value: object) -> bool:
    """As MCP has them: never null."""
    return isinstance(value, str | int) and not isinstance(value, bool)


def refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


def describe(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at character {error.pos + 1}"
    return "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)[:80]
