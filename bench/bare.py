"""
`python -m bench.bare PORT`: our server with nothing behind it.

The same uvicorn, the same bounds; every request is read and answered `ok`. What
a handler of ours costs is what it takes more than this.
"""

import asyncio
import sys

from starlette.types import Receive, Scope, Send

from nodescope.base.settings import Settings
from nodescope.publish.agent_http import OK_BODY, OK_START
from nodescope.serve.server import build_server, open_socket


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    del scope
    while (await receive()).get("more_body"):
        pass
    await send(OK_START)
    await send(OK_BODY)


def main(port: str) -> None:
    listener = open_socket(f"127.0.0.1:{port}")
    asyncio.run(build_server(answer, Settings()).serve(sockets=[listener]))


if __name__ == "__main__":
    main(sys.argv[1])
