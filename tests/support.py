"""
What tests share: a clock that can be turned, and fixture nodes that move on.

A fixture node is copied into a folder of the test's own. The second instant is
written over the first file by file, in place, because the agent keeps its
descriptors open: they must see the new content as they would in /proc.
"""

import asyncio
import os
import shutil
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import unquote_to_bytes

import httpx
from tests.nodes.make_nodes import make_nodes

from nodescope.base.frame import Frame
from nodescope.base.settings_load import load_settings
from nodescope.wiring import Parts, build_agent_app, build_parts

# One folder per fixture node, each with t0 and t1.
NODES = make_nodes()
# An instant that is easy to tell from a real one.
WALL_NS = 1_690_000_000_000_000_000
MONO_NS = 500_000_000_000


@dataclass(slots=True)
class TurnableClock:
    """Stands still until a test advances it; waiting advances it instead of sleeping."""

    now_wall_ns: int = WALL_NS
    now_mono_ns: int = MONO_NS

    def wall_ns(self) -> int:
        return self.now_wall_ns

    def mono_ns(self) -> int:
        return self.now_mono_ns

    def advance(self, ns: int) -> None:
        self.now_wall_ns += ns
        self.now_mono_ns += ns

    def wait_until(self, deadline_mono_ns: int, stop: Event) -> bool:
        self.advance(max(0, deadline_mono_ns - self.now_mono_ns))
        return stop.is_set()


def list_nodes() -> list[str]:
    """The names of all fixture nodes."""
    return sorted(path.parent.name for path in NODES.glob("*/node.toml"))


def read_node(name: str) -> dict[str, Any]:
    return tomllib.loads((NODES / name / "node.toml").read_text())


def read_faults(name: str) -> dict[str, str]:
    path = NODES / name / "faults.toml"
    return tomllib.loads(path.read_text()) if path.exists() else {}


def copy_node(name: str, target: Path) -> Path:
    """The first instant of a fixture node, in a folder that the test may change."""
    return shutil.copytree(NODES / name / "t0", target, symlinks=True)


def build_parts_at(root: Path, clock: TurnableClock, **flags: object) -> Parts:
    """The agent on a root, connected but not started."""
    return build_parts(load_settings({"root": str(root), **flags}, {}, {}, ""), clock)


def request_all(parts: Parts, paths: Iterable[str]) -> list[httpx.Response]:
    """GET each path of the agent, without a socket."""

    async def ask() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app=build_agent_app(parts))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return [await client.get(path) for path in paths]

    return asyncio.run(ask())


@dataclass
class FixtureNode:
    """A fixture node in a folder of its own, and the agent that looks at it."""

    name: str
    folder: Path
    reader: str = "auto"
    clock: TurnableClock = field(default_factory=TurnableClock)
    parts: Parts = field(init=False)

    def __post_init__(self) -> None:
        self.description = read_node(self.name)
        for file in ("node.toml", "faults.toml"):
            if (NODES / self.name / file).exists():
                shutil.copy(NODES / self.name / file, self.folder / file)
        self.root = self.folder / "root"
        self.root.mkdir()
        self.show("t0")
        asked = self.description.get("settings", {})
        self.parts = build_parts_at(self.root, self.clock, node=self.name, reader=self.reader, **asked)

    def show(self, instant: str) -> None:
        """Make the root look like an instant: new, removed and changed files."""
        wanted = dict(self._files(instant))
        for folder, _, files in os.walk(os.fsencode(self.root), topdown=False):
            for file in files:
                if os.path.join(folder, file) not in wanted:
                    os.unlink(os.path.join(folder, file))
            if not os.listdir(folder):
                os.rmdir(folder)
        for path, source in wanted.items():
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if source.is_symlink():
                if not os.path.lexists(path):
                    os.symlink(os.readlink(source), path)
            else:
                with open(path, "wb") as target:
                    target.write(source.read_bytes())
        self._stamp_folders(int(instant[1:]))

    def _files(self, instant: str) -> Iterator[tuple[bytes, Path]]:
        top = NODES / self.name / instant
        is_percent = self.description.get("names") == "percent"
        for source in top.rglob("*"):
            if source.is_symlink() or source.is_file():
                stored = str(source.relative_to(top))
                name = unquote_to_bytes(stored) if is_percent else os.fsencode(stored)
                yield os.path.join(os.fsencode(self.root), name), source

    def _stamp_folders(self, number: int) -> None:
        """The agent lists log folders again when their time has changed: it must not depend on the test's speed."""
        for name in ("containers", "pods"):
            path = self.root / "var/log" / name
            if path.exists():
                os.utime(path, ns=(WALL_NS + number, WALL_NS + number))

    def tick(self) -> Frame:
        """One tick, with the answers of the call sources as they are now."""
        for caller in self.parts.sampler._callers:
            caller.ask()
        return self.parts.sampler.tick()

    def run(self) -> tuple[Frame, Frame]:
        """A tick at each instant."""
        first = self.tick()
        self.clock.advance(self.description["elapsed_ns"])
        self.show("t1")
        return first, self.tick()

    def close(self) -> None:
        self.parts.sampler.stop()
