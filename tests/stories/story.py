"""A story: a scene on one or more nodes, and questions whose true answers follow from it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from tests.stories.agent import Agent, iso
from tests.stories.answers import Verdict
from tests.stories.generate.archive import write_archive
from tests.stories.generate.background import fill_busy, fill_churning, fill_quiet
from tests.stories.generate.cluster import Random, digest
from tests.stories.generate.machine import StoryNode

HOUR = 3600
MINUTE = 60
# Noon of some day in March; the seed moves it by minutes.
END_MS = 1_772_366_400_000
QUIET, BUSY, CHURNING = "quiet", "busy", "churning"


@dataclass(frozen=True, slots=True)
class Question:
    """What somebody asks, and how the answer is judged."""

    words: str
    put: Callable[[Agent], Verdict]


Teller = Callable[["Scene"], Iterator[Question]]


@dataclass(frozen=True, slots=True)
class Story:
    """One row of the exam."""

    name: str
    kind: str
    """The class of the question, as the exam's table has it."""
    tell: Teller
    hours: float = 1.0
    on: str = BUSY
    """What runs beside it."""
    containers: int = 100
    small: int = 10
    """How many containers a small node has, in the short form."""


@dataclass
class Scene:
    """The nodes of a story while it is told."""

    story: Story
    seed: int
    is_small: bool = False
    nodes: list[StoryNode] = field(default_factory=list)
    random: Random = field(init=False)

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(int(digest(self.story.name, self.seed)[:15], 16))
        self.end_ms = END_MS + int(self.random.integers(-300, 300)) * 60_000

    @property
    def node(self) -> StoryNode:
        return self.nodes[0] if self.nodes else self.add_node("node-a")

    @property
    def seconds(self) -> int:
        return round(self.story.hours * HOUR)

    def add_node(self, name: str, seconds: int | None = None) -> StoryNode:
        node = StoryNode(name, self.seed, seconds or self.seconds, self.end_ms, story=self.story.name)
        # Every third node has no access to the Kubernetes API; every second has an older agent.
        node.has_api = self.seed % 3 != 0
        node.names_workloads = self.seed % 2 == 1
        self.nodes.append(node)
        return node

    def fill(self, node: StoryNode | None = None, on: str | None = None) -> None:
        """Last: what else runs is of no name that the story uses."""
        node, on = node or self.node, on or self.story.on
        many = self.story.small if self.is_small else self.story.containers
        if on == QUIET:
            fill_quiet(node, min(many, 20))
        elif on == CHURNING:
            fill_churning(node, min(many, 30), 200 if self.is_small else 500)
        else:
            fill_busy(node, many)

    def second(self, low: float, high: float) -> int:
        """A whole second between two shares of the span."""
        return int(self.random.integers(round(low * self.seconds), round(high * self.seconds)))

    def iso(self, second: float) -> str:
        return iso(self.node.at(second))

    def write(self, folder: Path) -> None:
        for node in self.nodes:
            write_archive(folder / node.name, node, is_short=self.is_small and node.seconds <= 2 * HOUR)


def build_scene(story: Story, seed: int, folder: Path, *, is_small: bool) -> tuple[Scene, Sequence[Question]]:
    """The archives on disk, and what is asked about them."""
    scene = Scene(story, seed, is_small)
    questions = list(story.tell(scene))
    scene.write(folder)
    return scene, questions
