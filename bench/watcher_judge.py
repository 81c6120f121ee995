"""
The watcher on nodes that were not made by who made the detectors (`bench/judge_nodes`).

Every node goes through ring, watcher and store, as in the agent, with the clock of its
samples. Of each trouble: told in time or not, and for leaks the share of the time from their
beginning to the kill that had passed when they were told. Of healthy nodes: what was worth a
page and should not have been, for a node and week, and the most on one node and day.

    python -m bench.watcher_judge                                   the seeds of the claim
    python -m bench.watcher_judge --seeds 1-3 --healthy 1-4         seeds to work on: never the claim's
    python -m bench.watcher_judge --only leak --healthy none        some troubles, by how they begin
"""

import argparse
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from bench.judge_nodes.replay import Replay, Told
from bench.judge_nodes.shapes import DAY
from bench.judge_nodes.trouble import TROUBLES, Planted, Trial, make_healthy, make_trial
from bench.result import Goal, Options, Row

PLANTED_SEEDS = range(500, 506)
HEALTHY_SEEDS = range(700, 708)
HEALTHY_DAYS = 7.0
# Of a node with trouble, and of healthy ones: small ones are many, large ones are few.
PLANTED_CONTAINERS = (12, 20, 30)
HEALTHY_CONTAINERS = (20, 30, 40, 60)
LEAST_RECALL = 0.95
LEAST_LEAD = 0.5
PROCESSES = 2
WEEK = 7 * DAY


@dataclass(frozen=True, slots=True)
class Task:
    name: str
    seed: int
    days: float = 0.0
    containers: int = 0
    """0 for what the seed says."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one node."""

    name: str
    seed: int
    steps: int
    planted: int
    missed: tuple[str, ...] = ()
    leads: tuple[float, ...] = ()
    false: tuple[str, ...] = ()
    false_days: tuple[int, ...] = ()
    """The day of the node for each of these."""
    seconds: float = 0.0


@dataclass
class Score:
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def missed(self) -> list[str]:
        return [one for outcome in self.outcomes for one in outcome.missed]

    @property
    def leads(self) -> list[float]:
        return [one for outcome in self.outcomes for one in outcome.leads]

    @property
    def false(self) -> list[str]:
        return [one for outcome in self.outcomes for one in outcome.false]

    @property
    def planted(self) -> int:
        return sum(outcome.planted for outcome in self.outcomes)

    @property
    def weeks(self) -> float:
        return sum(outcome.steps for outcome in self.outcomes) / WEEK

    @property
    def most_a_day(self) -> int:
        return max((max(Counter(one.false_days).values(), default=0) for one in self.outcomes), default=0)


def run_task(task: Task) -> Outcome:
    trial = make(task)
    began = time.process_time()
    told = Replay(trial.machine).run()
    return judge(trial, told, time.process_time() - began)


def make(task: Task) -> Trial:
    if task.name == "healthy":
        usual = HEALTHY_CONTAINERS[task.seed % len(HEALTHY_CONTAINERS)]
        return make_healthy(task.seed, task.days, task.containers or usual)
    plant = next(one for one in TROUBLES if one.__name__ == task.name)
    usual = PLANTED_CONTAINERS[task.seed % len(PLANTED_CONTAINERS)]
    return make_trial(plant, task.seed, task.containers or usual)


def judge(trial: Trial, told: Sequence[Told], seconds: float) -> Outcome:
    missed, leads = [], []
    for planted in trial.planted:
        step = find_first(told, planted)
        if step is None or step > planted.ends:
            late = "not told" if step is None else f"{(step - planted.ends) / 6:.0f} min late"
            missed.append(f"{trial.name} {trial.seed} {planted.kind}: {late}")
        if planted.kind == "memory_leak":
            # One that was never told was told at its end.
            at = planted.ends if step is None else step
            leads.append(min(1.0, (at - planted.begins) / (planted.ends - planted.begins)))
    false = list(list_false(trial, told))
    return Outcome(
        trial.name,
        trial.seed,
        trial.machine.steps,
        len(trial.planted),
        tuple(missed),
        tuple(leads),
        tuple(text for text, _ in false),
        tuple(step // DAY for _, step in false),
        seconds,
    )


def is_about(one: Told, planted: Planted) -> bool:
    finding = one.finding
    return finding.kind == planted.kind and (
        finding.workload == planted.who or finding.device.startswith(planted.who)
    )


def find_first(told: Sequence[Told], planted: Planted) -> int | None:
    """What was confirmed before anything had begun is a false alarm, and no foresight."""
    return next(
        (
            one.step
            for one in told
            if one.finding.is_confirmed and one.step >= planted.begins and is_about(one, planted)
        ),
        None,
    )


def list_false(trial: Trial, told: Sequence[Told]) -> Iterator[tuple[str, int]]:
    """Each finding once, at its first page."""
    culprits = {one.who for one in trial.planted}
    seen = set()
    for one in told:
        finding = one.finding
        if not finding.is_page_worthy or finding.id in seen:
            continue
        seen.add(finding.id)
        is_true = any(is_about(one, planted) and one.step >= planted.begins for planted in trial.planted)
        follows = finding.workload in culprits and finding.kind in trial.follows
        if not is_true and not follows:
            hour = one.step / 360
            yield f"{trial.name} {trial.seed} {finding.kind} {finding.who} at {hour:.1f} h", one.step


def list_tasks(only: Sequence[str], seeds: Sequence[int], healthy: Sequence[int], days: float) -> list[Task]:
    weeks = [Task("healthy", seed, days) for seed in healthy]
    names = [one.__name__ for one in TROUBLES if not only or one.__name__.startswith(tuple(only))]
    return weeks + [Task(name, seed) for seed in seeds for name in names]


def measure(tasks: Sequence[Task], processes: int = PROCESSES) -> tuple[Score, Score]:
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    troubled, calm = Score(), Score()
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for outcome in pool.imap_unordered(run_task, tasks):
            (calm if outcome.name == "healthy" else troubled).outcomes.append(outcome)
            text = f"{outcome.name} {outcome.seed}: missed {outcome.missed or 'none'}, false {outcome.false or 'none'}"
            leads = f", told at {outcome.leads[0]:.2f}" if outcome.leads else ""
            print(f"{text}{leads} ({outcome.seconds:.0f} s)", file=sys.stderr, flush=True)
    return troubled, calm


def build_rows(troubled: Score, calm: Score) -> list[Row]:
    rows = []
    if troubled.outcomes:
        rows += recall_rows(troubled)
    if calm.outcomes:
        kinds = Counter(text.split()[2] for text in calm.false)
        rows += [
            Row(
                "watcher, judged: false pages of healthy nodes, a node and week",
                len(calm.false) / calm.weeks,
                "",
                goal=Goal(1.0, "ours"),
                remark=f"{len(calm.false)} in {calm.weeks:.1f} node-weeks; {list_counts(kinds)}",
            ),
            Row(
                "watcher, judged: most false pages on one node and day",
                calm.most_a_day,
                "",
                goal=Goal(1.0, "ours"),
                remark=f"{sum(len(set(one.false_days)) for one in calm.outcomes)} node-days with one of {calm.weeks * 7:.0f}",
            ),
        ]
    both = [*troubled.outcomes, *calm.outcomes]
    speed = sum(one.seconds for one in both) / (10 * sum(one.steps for one in both))
    rows.append(
        Row(
            "watcher, judged: replay, beside the time that it tells of",
            speed,
            "ratio",
            goal=Goal(0.01, "ours"),
        )
    )
    return rows


def recall_rows(troubled: Score) -> list[Row]:
    kinds = Counter(outcome.name.partition("_")[0] for outcome in troubled.outcomes)
    of_kind = Counter(text.partition("_")[0] for text in troubled.missed)
    parts = ", ".join(f"{kind} {count}" for kind, count in kinds.items())
    rows = [
        Row(
            "watcher, judged: of what was planted, not told in time",
            len(troubled.missed) / troubled.planted,
            "ratio",
            goal=Goal(1 - LEAST_RECALL, "ours"),
            remark=f"{troubled.planted} planted on nodes: {parts}; missed: {list_counts(of_kind)}",
        ),
        Row(
            "watcher, judged: false pages on nodes with trouble, a node and week",
            len(troubled.false) / troubled.weeks,
            "",
            remark=f"{len(troubled.false)} in {troubled.weeks:.1f} node-weeks; "
            f"{list_counts(Counter(text.split()[2] for text in troubled.false))}",
        ),
    ]
    if troubled.leads:
        rows.append(
            Row(
                "watcher, judged: lead of leaks, median",
                float(np.median(troubled.leads)),
                "ratio",
                goal=Goal(LEAST_LEAD, "ours"),
                remark=f"{len(troubled.leads)} leaks, nine of ten within {np.quantile(troubled.leads, 0.9):.2f}",
            )
        )
    return rows


def list_counts(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.most_common()) or "none"


def run(options: Options) -> list[Row]:
    del options
    return build_rows(*measure(list_tasks((), PLANTED_SEEDS, HEALTHY_SEEDS, HEALTHY_DAYS)))


def parse_seeds(text: str) -> range:
    if text == "none":
        return range(0)
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def main() -> int:
    parser = argparse.ArgumentParser(description="The watcher on nodes of another author.")
    parser.add_argument(
        "--seeds", type=parse_seeds, default=PLANTED_SEEDS, help="of nodes with trouble, or none"
    )
    parser.add_argument(
        "--healthy", type=parse_seeds, default=HEALTHY_SEEDS, help="of healthy nodes, or none"
    )
    parser.add_argument("--days", type=float, default=HEALTHY_DAYS, help="of a healthy node")
    parser.add_argument(
        "--only", type=lambda text: text.split(","), default=[], help="troubles that begin so"
    )
    parser.add_argument("--containers", type=int, default=0, help="of each node, to be quick")
    parser.add_argument("--processes", type=int, default=PROCESSES)
    options = parser.parse_args()
    tasks = list_tasks(options.only, options.seeds, options.healthy, options.days)
    tasks = [replace(task, containers=options.containers) for task in tasks]
    for row in build_rows(*measure(tasks, options.processes)):
        print(f"{row.what}: {row.ours:.4g} {row.unit} ({row.remark})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
