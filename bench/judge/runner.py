"""Runs the cases over two processes; the same seeds give the same cases in any order."""

import multiprocessing
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.judge.make.case import random_of
from bench.judge.score import anomaly, changes, cost, forecasts, lag, periods, summary
from bench.judge.section import Section
from bench.judge.table import Row

SECTIONS: dict[str, Section] = {
    module.SECTION.name: module.SECTION
    for module in (forecasts, changes, periods, lag, anomaly, summary, cost)
}
PROCESSES = 2
BAR = 30
# Cases handed to a process at once: few enough that the last of them end together.
AT_ONCE = 4

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Task:
    section: str
    name: str
    seed: int
    index: int


def tasks_of(names: Iterable[str], seeds: Sequence[int], size: int) -> list[Task]:
    """size cases of each class for each seed, mixed so that the time left can be told."""
    made = [
        Task(section, name, seed, index)
        for section in names
        for name, count in SECTIONS[section].counts(size).items()
        for seed in seeds
        for index in range(count)
    ]
    order = np.random.default_rng(0).permutation(len(made))
    return [made[place] for place in order]


def run_task(task: Task) -> tuple[Task, Any, str | None]:
    """A study that fails is a row of its own, not the end of the run."""
    random = random_of(task.seed, task.section, task.name, task.index)
    try:
        return task, SECTIONS[task.section].judge(task.name, random), None
    except Exception as error:  # noqa: BLE001
        return task, None, f"{type(error).__name__}: {error}"


def run(names: Sequence[str], seeds: Sequence[int], size: int, progress: Progress | None = None) -> list[Row]:
    # Each process uses one core; a library that starts threads of its own would take the other's.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    tasks = tasks_of(names, seeds, size)
    judged: dict[Task, Any] = {}
    failures: list[tuple[Task, str]] = []
    with multiprocessing.get_context("spawn").Pool(PROCESSES) as pool:
        for done, (task, outcome, error) in enumerate(pool.imap_unordered(run_task, tasks, AT_ONCE), 1):
            if error is None:
                judged[task] = outcome
            else:
                failures.append((task, error))
            if progress:
                progress(done, len(tasks))
    outcomes: dict[str, dict[str, list[Any]]] = {name: defaultdict(list) for name in names}
    # In the order of the tasks, not of their ends: the same seeds give the same table.
    for task in (task for task in tasks if task in judged):
        outcomes[task.section][task.name].append(judged[task])
    return [row for name in names for row in rows_of(name, outcomes[name], size)] + failure_rows(failures)


def rows_of(name: str, outcomes: dict[str, list[Any]], size: int) -> list[Row]:
    """In the order of the classes, not of their ends."""
    ordered = {kind: outcomes[kind] for kind in SECTIONS[name].counts(size) if kind in outcomes}
    return SECTIONS[name].rows(ordered)


def failure_rows(failures: Sequence[tuple[Task, str]]) -> list[Row]:
    part = "Studies that failed"
    return [
        Row(
            part,
            f"{task.section}, {task.name}, seed {task.seed}, case {task.index}",
            error[:60],
            "none",
            False,
        )
        for task, error in failures
    ]


def progress_bar() -> Progress:
    began = time.monotonic()

    def show(done: int, all_of: int) -> None:
        if done % 10 and done < all_of:
            return
        filled = round(BAR * done / max(1, all_of))
        left = (time.monotonic() - began) * (all_of - done) / done
        bar = "#" * filled + "." * (BAR - filled)
        print(f"\r[{bar}] {done}/{all_of}, {left:4.0f} s left ", end="", file=sys.stderr, flush=True)
        if done == all_of:
            print(file=sys.stderr)

    return show
