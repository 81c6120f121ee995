"""
What the watcher finds on generated nodes, when it tells it, and what it tells without need.

Every node goes through the agent's own path (ring, watcher, store) with the
clock of its samples. On seven kinds of nodes something is planted at a known
second: a leak that ends in a kill, a kill out of the blue, throttling, a noisy
neighbour, a crash loop, a disk that fills up, a GPU that vanishes. On healthy
nodes heaps are collected, caches warm up, jobs come and go and nothing is wrong.

    python -m bench watcher                                the seeds of the claim
    python -m bench.watcher --seeds 1-4 --healthy 1-2      others, for work on it: never tune on the claim's

Lead is the share of the time from a leak's beginning to its kill that had
passed when it was told.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from tests.watch.nodes import HOUR, PLANTS, Trial, healthy

from bench.result import Goal, Options, Row
from nodescope.base.findings import NodeFinding

PLANTED_SEEDS = range(1000, 1006)
HEALTHY_SEEDS = range(2000, 2007)
PLANTED_HOURS = 3.0
HEALTHY_HOURS = 24.0
CONTAINERS = 15
WEEK_HOURS = 7 * 24.0
# Of a replay beside the time it tells of: faster than a hundred times.
REAL_TIME = 1 / 100
LEAST_RECALL = 0.95


@dataclass
class Score:
    planted: int = 0
    missed: list[str] = field(default_factory=list)
    leads: list[float] = field(default_factory=list)
    false_pages: list[str] = field(default_factory=list)
    hours: float = 0.0
    looks: int = 0
    seconds: float = 0.0

    @property
    def recall(self) -> float:
        return 1 - len(self.missed) / max(1, self.planted)

    def take(self, name: str, seed: int, trial: Trial) -> None:
        started = time.process_time()
        told = trial.replay.run()
        self.seconds += time.process_time() - started
        self.looks += trial.replay.watcher.status.looks
        self.hours += trial.replay.node.seconds / HOUR
        for planted in trial.planted:
            self.planted += 1
            first = find_first(told, planted.kind, planted.workload)
            at = None if first is None else first.updated - trial.replay.node.at(0)
            if at is None or at > planted.ends:
                self.missed.append(f"{name} {seed} {planted.kind}")
            if planted.kind == "memory_leak":
                # One that was never told was told at its end.
                share = 1.0 if at is None else (at - planted.begins) / (planted.ends - planted.begins)
                self.leads.append(min(1.0, share))
        false = list_false(f"{name} {seed}", told, trial)
        self.false_pages += false
        missed = [one for one in self.missed if one.startswith(f"{name} {seed} ")]
        print(
            f"{name} {seed}: missed {missed or 'none'}, false {false or 'none'}", file=sys.stderr, flush=True
        )


def find_first(told: Sequence[NodeFinding], kind: str, who: str) -> NodeFinding | None:
    return next(
        (one for one in told if one.kind == kind and one.is_confirmed and who in (one.workload, one.device)),
        None,
    )


def list_false(name: str, told: Sequence[NodeFinding], trial: Trial) -> list[str]:
    """Findings worth a page about what was not planted, each once."""
    planted = {(one.kind, one.workload) for one in trial.planted}
    pages = {one.id: one for one in told if one.is_page_worthy}
    return [
        f"{name} {one.kind} {one.who}"
        for one in pages.values()
        if not {(one.kind, one.workload), (one.kind, one.device)} & planted
    ]


def measure(seeds: Sequence[int], calm_seeds: Sequence[int], calm_hours: float) -> tuple[Score, Score]:
    score, calm = Score(), Score()
    for name, make in PLANTS.items():
        for seed in seeds:
            score.take(name, seed, make(seed, PLANTED_HOURS, CONTAINERS))
    for seed in calm_seeds:
        calm.take("healthy", seed, healthy(seed, calm_hours, CONTAINERS))
    return score, calm


def run(options: Options) -> list[Row]:
    del options
    return build_rows(*measure(PLANTED_SEEDS, HEALTHY_SEEDS, HEALTHY_HOURS), PLANTED_SEEDS, HEALTHY_SEEDS)


def build_rows(score: Score, calm: Score, seeds: Sequence[int], calm_seeds: Sequence[int]) -> list[Row]:
    planted = f"seeds {seeds[0]} to {seeds[-1]}, {score.planted} planted"
    node_hours = calm.hours + score.hours
    false = [*calm.false_pages, *score.false_pages]
    weeks = node_hours / WEEK_HOURS
    seconds = score.seconds + calm.seconds
    return [
        Row(
            "watcher: of what was planted, not told in time",
            1 - score.recall,
            "ratio",
            goal=Goal(1 - LEAST_RECALL, "ours"),
            remark=f"{planted}; {'; '.join(score.missed) or 'none'}",
        ),
        Row(
            "watcher: lead of leaks, median",
            float(np.median(score.leads)),
            "ratio",
            goal=Goal(0.5, "ours"),
            remark=f"worst {max(score.leads):.2f}",
        ),
        Row(
            "watcher: false findings worth a page, a node and week",
            len(false) / weeks,
            "",
            goal=Goal(1.0, "ours"),
            remark=f"healthy seeds {calm_seeds[0]} to {calm_seeds[-1]}, {node_hours:.0f} node-hours with the planted; "
            f"{'; '.join(false) or 'none'}",
        ),
        Row(
            "watcher: replay, beside the time that it tells of",
            seconds / (node_hours * HOUR),
            "ratio",
            goal=Goal(REAL_TIME, "ours"),
            remark=f"{score.looks + calm.looks} looks, frames included",
        ),
    ]


def parse_seeds(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def main() -> int:
    parser = argparse.ArgumentParser(description="The watcher on other seeds than the claim's.")
    parser.add_argument("--seeds", type=parse_seeds, default=range(1, 4))
    parser.add_argument("--healthy", type=parse_seeds, default=range(1, 3))
    parser.add_argument("--hours", type=float, default=8.0, help="of a healthy node")
    options = parser.parse_args()
    for row in build_rows(
        *measure(options.seeds, options.healthy, options.hours), options.seeds, options.healthy
    ):
        print(f"{row.what}: {row.ours:.4g} {row.unit} ({row.remark})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
