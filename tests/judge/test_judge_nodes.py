"""The nodes that judge the watcher: the truth is in the frames, and the generator knows no detector."""

import ast
from pathlib import Path

import numpy as np
import pytest
from bench.judge_nodes import trouble
from bench.judge_nodes.shapes import HOUR
from bench.judge_nodes.tables import TABLES, Frames
from bench.judge_nodes.trouble import NAME, TROUBLES, Plant, Trial, make_healthy, make_trial

from nodescope.base.frame import ENDS, OOM_EXIT

FOLDER = Path(trouble.__file__).parent
FORBIDDEN = ("nodescope.watch.detect", "nodescope.watch.rise", "nodescope.watch.look", "tests.")


def build(plant: Plant, seed: int = 3) -> Trial:
    trial = make_trial(plant, seed, 8)
    trial.machine.settle()
    return trial


def test_the_generator_knows_no_detector() -> None:
    """What was tuned on a detector cannot judge it."""
    for path in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [one.name for one in node.names] if isinstance(node, ast.Import) else []
            assert not [name for name in names if name.startswith(FORBIDDEN)], path.name


@pytest.mark.parametrize("plant", TROUBLES, ids=lambda plant: plant.__name__)
def test_what_is_planted_lies_within_the_span(plant: Plant) -> None:
    trial = make_trial(plant, 3, 8)
    for planted in trial.planted:
        assert HOUR < planted.begins < planted.ends < trial.machine.steps


@pytest.mark.parametrize("plant", [one for one in TROUBLES if one.__name__.startswith("leak")])
def test_a_leak_ends_in_a_kill_at_its_limit(plant: Plant) -> None:
    trial = build(plant)
    leak = trial.planted[0]
    life = next(one for one in trial.machine.lives if one.work.name == NAME and one.end == leak.ends)
    assert life.is_killed
    assert life.got["anon"][-1] > 0.97 * life.work.memory_limit
    assert life.got["anon"][: leak.begins - life.start].max() < 0.7 * life.work.memory_limit


def test_counters_never_go_back_and_kills_are_events() -> None:
    trial = build(trouble.leak_fast)
    counters = [place for place, metric in enumerate(TABLES["container"].metrics) if metric.kind == "counter"]
    before: dict[tuple[str, ...], np.ndarray] = {}
    kinds = []
    for _, frame in Frames(trial.machine):
        kinds += [one.kind for one in frame.events if dict(one.labels)["container"] == NAME]
        block = next(one for one in frame.blocks if one.table.name == "container")
        for entity, row in zip(block.entities, block.values):
            now = row[counters]
            assert not np.any(now < before.get(entity.ids, now))
            before[entity.ids] = now
    assert [kind for kind in kinds if kind in ENDS] == [OOM_EXIT]


def test_one_seed_is_one_node() -> None:
    first, second = make_healthy(5, 0.2, 10).machine, make_healthy(5, 0.2, 10).machine
    assert [life.pod for life in first.lives] == [life.pod for life in second.lives]
    assert all(np.array_equal(one.anon, other.anon) for one, other in zip(first.lives, second.lives))


def test_periods_of_a_sleeping_container_are_not_counted() -> None:
    """The kernel's timer stops with the last task that can run."""
    trial = build(trouble.throttled_bursts)
    life = next(one for one in trial.machine.lives if one.work.name == NAME)
    column = TABLES["container"].columns["cgroup.v2.cpu.stat.nr_periods"]
    last = list(Frames(trial.machine))[-1][1]
    block = next(one for one in last.blocks if one.table.name == "container")
    row = [entity.ids for entity in block.entities].index((life.container_id,))
    assert block.values[row, column] == pytest.approx(life.awake * 100 * trial.machine.steps, rel=0.01)
