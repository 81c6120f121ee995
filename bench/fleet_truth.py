"""
What a fleet's questions find, against what was planted in fleets of many seeds.

A fleet is written, surveyed, cut into units and answered by the code that the
workers run, in this process. Rules were chosen on the seeds of CHOSEN alone;
the figures are of REPORTED, and of fleets in which nothing was planted.
"""

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench import fleet_shapes
from bench.fleet_shapes import FALSE_SHARE, Fleet
from bench.result import Row
from nodescope.keep.demo.archive import Span, write_node
from nodescope.keep.demo.fleet import plan_fleet, plant_steady_cache, rollout_minute
from nodescope.keep.demo.plan import Planter, plant_crash_loop, plant_cron
from nodescope.keep.demo.story import DemoRequest
from nodescope.keep.folder import MS_PER_DAY
from nodescope.read.files.file_survey import Survey, survey_roots
from nodescope.use.fleet.answer import FleetAnswer, build_answer
from nodescope.use.fleet.unit import Job, Unit, split_by_day, units_around
from nodescope.use.fleet.worker import run_unit

END_MS = 1_772_366_400_000
NODES, CONTAINERS = 10, 10
CHOSEN = range(100, 110)
REPORTED = range(200, 215)
UNPLANTED = range(300, 310)
SPAN_MS, WITHIN_MS = 1_800_000, 120_000

Planted = dict[tuple[str, str], str]
"""Node and container id -> what it is."""
Plan = Callable[[DemoRequest], Sequence[Planter]]


def plan_nothing(wish: DemoRequest) -> Sequence[Planter]:
    """Only what is no story: services, a steady cache, a cron job, a crash loop here and there."""
    loop = [plant_crash_loop] if wish.number % 5 == 0 else []
    return [plant_steady_cache, plant_cron, *loop]


def write_member(wish: DemoRequest, plan: Plan) -> list[dict[str, Any]]:
    """One node below wish.data; what was planted on it."""
    node = f"demo-{wish.number + 1}"
    own = replace(wish, data=wish.data / node, node=node)
    made = write_node(own, "bench", lambda _: None, planters=plan(own), cut=cut_days)
    return [{"node": node, **one} for one in made.truth]


def cut_days(start_ms: int, end_ms: int) -> Iterator[Span]:
    """All of it is over and merged: one file a day."""
    at_ms = start_ms
    while at_ms < end_ms:
        next_ms = min(end_ms, (at_ms // MS_PER_DAY + 1) * MS_PER_DAY)
        yield at_ms, next_ms, "consolidated"
        at_ms = next_ms


@dataclass(slots=True)
class Score:
    """Of all seeds together."""

    planted: int = 0
    found: int = 0
    right: int = 0
    series: int = 0
    odd: list[str] = field(default_factory=list)
    """Misses and false discoveries, by name."""

    def add(self, name: str, answer: FleetAnswer, planted: Planted) -> None:
        truth = set(planted)
        found = {(row["node"], row["container_id"]) for row in answer.kept}
        self.planted += len(truth)
        self.found += len(found)
        self.right += len(found & truth)
        self.series += answer.series
        self.odd += [f"{name}: missed {key[0]} {planted[key]}" for key in sorted(truth - found)]
        for row in answer.kept:
            if (row["node"], row["container_id"]) not in truth:
                self.odd.append(f"{name}: false {row['node']} {row['workload']}: {row['sentence']}")

    def row(self, what: str, more: str = "") -> Row:
        """Each miss and each false discovery is told beside the table."""
        print(*self.odd, sep="\n", file=sys.stderr)
        return Row(
            f"{what}: planted and not found",
            float(self.planted - self.right),
            "series",
            remark=f"{self.planted} planted among {self.series:,} series; "
            f"false {self.found - self.right} of {self.found} found{more}",
        )


def run_here(units: Sequence[Unit], job: Job, survey: Survey) -> FleetAnswer:
    parts = [run_unit(unit, job) for unit in units]
    return build_answer(parts, survey.faults, job, "workload", FALSE_SHARE)


def ask_leaks(survey: Survey) -> tuple[Sequence[Unit], Job]:
    return split_by_day(survey, ["memory_anon"], None, None), Job("leaks")


def ask_changes(survey: Survey, at_ms: int) -> tuple[Sequence[Unit], Job]:
    """Both metrics that the command looks at."""
    units = units_around(survey, ["memory", "cpu"], at_ms - SPAN_MS, at_ms + SPAN_MS)
    return units, Job("changes", at_ms, WITHIN_MS)


def truth_of(planted: Sequence[dict[str, Any]]) -> tuple[Planted, Planted]:
    """The first life of what leaks, the second of what was rolled out."""
    leaks, changes = (
        {(one["node"], one["container_ids"][life]): kind for one in planted if one["kind"] == kind}
        for kind, life in (("leak", 0), ("bad_image", 1))
    )
    return leaks, changes


@contextmanager
def written(seed: int, plan: Plan) -> Iterator[tuple[DemoRequest, Survey, list[dict[str, Any]]]]:
    """Odd seeds are two hours, even ones are one."""
    place = Path(tempfile.mkdtemp(prefix="nodescope-bench-"))
    try:
        hours = 1.0 + seed % 2
        wishes = [
            DemoRequest(place, hours, CONTAINERS, seed, END_MS, "", number, NODES) for number in range(NODES)
        ]
        planted = [one for wish in wishes for one in write_member(wish, plan)]
        yield wishes[0], survey_roots([str(place)]), planted
    finally:
        shutil.rmtree(place, ignore_errors=True)


def score(seeds: Sequence[int], plan: Plan) -> tuple[Score, Score]:
    """Leaks and changes; without a rollout, changes are asked for at the minute where one would be."""
    leaks, changes = Score(), Score()
    for seed in seeds:
        with written(seed, plan) as (wish, survey, planted):
            leaking, changed = truth_of(planted)
            leaks.add(f"leaks, seed {seed}", run_here(*ask_leaks(survey), survey), leaking)
            at_ms = rollout_minute(wish)
            changes.add(f"changes, seed {seed}", run_here(*ask_changes(survey, at_ms), survey), changed)
    return leaks, changes


def seed_rows() -> list[Row]:
    rows = []
    for seeds, plan, what in (
        (REPORTED, plan_fleet, "seeds nobody looked at"),
        (UNPLANTED, plan_nothing, "nothing planted"),
    ):
        leaks, changes = score(seeds, plan)
        rows += [
            leaks.row(f"fleet leaks, {len(seeds)} {what}"),
            changes.row(f"fleet changes, {len(seeds)} {what}"),
        ]
    return rows


def score_shapes(seeds: Sequence[int], what: str, ask: Callable[[int], Fleet]) -> Score:
    total = Score()
    for seed in seeds:
        fleet = ask(seed)
        total.add(f"{what}, seed {seed}", fleet.answer, fleet.planted)
    return total


SHAPES: dict[str, Callable[[int], Fleet]] = {
    "leaks of other shapes, 1 h": lambda seed: fleet_shapes.ask_leaks(seed, NODES, 1.0),
    "leaks of other shapes, 6 h": lambda seed: fleet_shapes.ask_leaks(seed, NODES, 6.0),
    "changes of other shapes": lambda seed: fleet_shapes.ask_changes(seed, NODES),
}


def shape_rows() -> list[Row]:
    return [score_shapes(REPORTED, what, ask).row(f"fleet {what}") for what, ask in SHAPES.items()]


if __name__ == "__main__":
    for what, ask in SHAPES.items():
        one = score_shapes(CHOSEN, what, ask)
        print(one.row(what).remark, flush=True)
    for one in score(CHOSEN, plan_fleet):
        print(one.row("demo").remark, flush=True)
