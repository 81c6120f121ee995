"""A node made of files in a temporary folder, and a clock that a test turns by hand."""

import threading
from dataclasses import dataclass, field
from pathlib import Path

from nodescope.base.settings import Settings
from nodescope.collect.containers.live_containers import LiveContainers
from nodescope.collect.containers.names import ContainerNames
from nodescope.collect.files.roots import Descriptors, NodeRoot
from nodescope.collect.run.source import Context, Tick

SECOND = 10**9


class Node:
    """Files under a root that counts as a fixture: no inotify, no questions to this machine."""

    def __init__(self, folder: Path, *, is_fixture: bool = True) -> None:
        self.path = folder / "node"
        self.path.mkdir(exist_ok=True)
        if is_fixture:
            (folder / "node.toml").write_text("page_bytes = 4096\n")

    def write(self, path: str, content: str | bytes) -> None:
        target = self.path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        # In place, so that a descriptor that is open sees it, as in /proc.
        target.write_bytes(content if isinstance(content, bytes) else content.encode())

    def remove(self, path: str) -> None:
        target = self.path / path
        if target.is_dir():
            for child in sorted(target.rglob("*"), reverse=True):
                if child.is_dir() and not child.is_symlink():
                    child.rmdir()
                else:
                    child.unlink()
            target.rmdir()
        else:
            target.unlink()

    def link(self, path: str, target: str) -> None:
        place = self.path / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        place.symlink_to(target)

    def root(self, faults: dict[str, int] | None = None) -> NodeRoot:
        return NodeRoot(self.path, faults)

    def context(
        self,
        settings: Settings | None = None,
        *,
        descriptors: int = 1000,
        faults: dict[str, int] | None = None,
    ) -> Context:
        root = self.root(faults)
        return Context(
            root, Descriptors(descriptors), settings or Settings(), ContainerNames(root), LiveContainers()
        )


def at(number: int) -> Tick:
    return Tick(number, number * SECOND, number * SECOND)


@dataclass
class TurnableClock:
    """Time stands still until somebody waits, or a test turns it."""

    now_ns: int = 0
    ends_ns: int | None = None
    """Told to stop once this moment is reached."""
    waits: list[int] = field(default_factory=list)

    def wall_ns(self) -> int:
        return self.now_ns

    def mono_ns(self) -> int:
        return self.now_ns

    def turn(self, seconds: float) -> None:
        self.now_ns += round(seconds * SECOND)

    def wait_until(self, deadline_mono_ns: int, stop: threading.Event) -> bool:
        self.waits.append(deadline_mono_ns)
        self.now_ns = max(self.now_ns, deadline_mono_ns)
        return stop.is_set() or (self.ends_ns is not None and self.now_ns >= self.ends_ns)
