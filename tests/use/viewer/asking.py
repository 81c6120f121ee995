"""Asking the viewer's application in this process: no socket, no server."""

import asyncio
from pathlib import Path
from typing import Any, Self

import httpx
from tests.integration.agents import TurnableClock
from tests.use.viewer.archives import END_MS

from nodescope.base.clock import Clock
from nodescope.use.answers.snapshots import NodeFolders
from nodescope.use.viewer.app import build_app
from nodescope.use.viewer.page import STATIC
from nodescope.use.viewer.request import Viewer


class Asker:
    """One viewer and one loop; ask it like httpx."""

    def __init__(
        self, *paths: Path, static: Path = STATIC, clock: Clock | None = None, **options: Any
    ) -> None:
        self.clock = TurnableClock(wall=(END_MS + 30_000) * 1_000_000)
        self.viewer = Viewer(NodeFolders(list(paths), clock or self.clock), static=static)
        app = build_app(self.viewer, **options)
        self._runner = asyncio.Runner()
        self._client = httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://localhost:8050", timeout=60
        )

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.request("GET", path, **options)

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        return self._runner.run(self._client.request(method, path, **options))

    def json(self, path: str, **parameters: Any) -> Any:
        """The content of an answer that must be a good one."""
        answer = self.get(path, params=parameters or None)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._runner.run(self._client.aclose())
        self._runner.close()
