"""Runs stories over seeds, judges every answer, and counts."""

import shutil
import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.stories.agent import Agent, agent_over
from tests.stories.answers import Answer, Verdict
from tests.stories.every_answer import Breach, list_breaches
from tests.stories.story import Scene, Story, build_scene

CALLS_ALLOWED = 2


@dataclass(frozen=True, slots=True)
class Outcome:
    """One question of one story with one seed."""

    story: str
    kind: str
    seed: int
    words: str
    verdict: Verdict
    answers: Sequence[Answer] = ()
    breaches: Sequence[Breach] = ()

    @property
    def tokens(self) -> int:
        return max((answer.tokens for answer in self.answers), default=0)

    def plain(self) -> dict[str, Any]:
        return {
            "story": self.story,
            "class": self.kind,
            "seed": self.seed,
            "question": self.words,
            "grade": self.verdict.grade,
            "why": self.verdict.why,
            "rank": self.verdict.rank,
            "calls": [[answer.tool, answer.arguments] for answer in self.answers],
            "tokens": self.tokens,
            "breaches": [[breach.rule, breach.what] for breach in self.breaches],
        }


def run_story(
    story: Story, seed: int, *, is_small: bool = False, folder: Path | None = None
) -> list[Outcome]:
    """Every question of a story, in archives of its own."""
    with place(folder) as where:
        scene, questions = build_scene(story, seed, where, is_small=is_small)
        with agent_over(where) as agent:
            found = []
            for question in questions:
                agent.heard = []
                verdict = put(question.put, agent)
                found.append(judge(scene, seed, question.words, verdict, agent.heard))
            return found


@contextmanager
def place(folder: Path | None) -> Iterator[Path]:
    where = folder or Path(tempfile.mkdtemp(prefix="exam-"))
    try:
        yield where
    finally:
        if folder is None:
            shutil.rmtree(where, ignore_errors=True)


def put(question: Callable[[Agent], Verdict], agent: Agent) -> Verdict:
    """An exception of the server is no answer; one of ours has its place in the report."""
    try:
        return question(agent)
    except Exception as error:  # noqa: BLE001 - one broken answer must not end an exam of hours
        place_of = traceback.extract_tb(error.__traceback__)[-1]
        return Verdict("no answer", f"{type(error).__name__}: {error} ({place_of.name}:{place_of.lineno})")


def judge(scene: Scene, seed: int, words: str, verdict: Verdict, heard: Sequence[Answer]) -> Outcome:
    if len(heard) > CALLS_ALLOWED and verdict.grade == "right":
        verdict = Verdict("wrong", f"took {len(heard)} calls", verdict.rank)
    breaches = [breach for answer in heard for breach in list_breaches(scene, answer)]
    return Outcome(scene.story.name, scene.story.kind, seed, words, verdict, tuple(heard), breaches)


def run_exam(
    stories: Iterable[Story],
    seeds: Sequence[int],
    progress: Callable[[int, int, str], None] = lambda *_: None,
    *,
    is_small: bool = False,
) -> list[Outcome]:
    rows = [(story, seed) for seed in seeds for story in stories]
    found: list[Outcome] = []
    for number, (story, seed) in enumerate(rows):
        progress(number, len(rows), f"{story.name} {seed}")
        found += run_story(story, seed, is_small=is_small)
    progress(len(rows), len(rows), "")
    return found


@dataclass(slots=True)
class Tally:
    """Counts of one story, of one class, or of all."""

    name: str
    right: int = 0
    wrong: int = 0
    silent: int = 0
    calls: int = 0
    tokens: list[int] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        grade = outcome.verdict.grade
        self.right += grade == "right"
        self.wrong += grade == "wrong"
        self.silent += grade == "no answer"
        self.calls += len(outcome.answers)
        self.tokens.append(outcome.tokens)

    @property
    def asked(self) -> int:
        return self.right + self.wrong + self.silent


def tally(outcomes: Iterable[Outcome], key: Callable[[Outcome], str]) -> list[Tally]:
    rows: dict[str, Tally] = {}
    for outcome in outcomes:
        rows.setdefault(key(outcome), Tally(key(outcome))).add(outcome)
    return list(rows.values())
