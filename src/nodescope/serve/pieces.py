"""An answer whose first part is shared with others: joined to the rest, each would be a copy of its own."""

from collections.abc import Mapping

from starlette.responses import Response
from starlette.types import Receive, Scope, Send


class PiecesResponse(Response):
    """Two parts, sent one after the other."""

    def __init__(self, first: bytes, rest: bytes, headers: Mapping[str, str]) -> None:
        super().__init__(first, headers={**headers, "Content-Length": str(len(first) + len(rest))})
        self._rest = rest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": bool(self._rest)})
        if self._rest:
            await send({"type": "http.response.body", "body": self._rest})
