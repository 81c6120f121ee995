"""From parts to an answer: groups with a spread, what stands out, and the table as a file."""

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from nodescope.base.errors import RequestRejected
from nodescope.cli import main
from nodescope.keep.demo.archive import write_node
from nodescope.keep.demo.story import DemoRequest
from nodescope.read.files.file_survey import SurveyFault, survey_roots
from nodescope.use.fleet.answer import FleetAnswer, build_answer, is_common
from nodescope.use.fleet.compare import compare
from nodescope.use.fleet.findings_file import write_findings
from nodescope.use.fleet.unit import Job, Unit, UnitAnswer, split_by_day
from nodescope.use.fleet.worker import run_unit
from nodescope.use.fleet.workload import Owner

Key = tuple[str, str, str]
"""Namespace, workload, image."""
API: Key = ("shop", "shop/api", "api:2")
CRON: Key = ("batch", "batch/cron", "cron:1")


def unit(node: str) -> Unit:
    return Unit(node, "2026-03-01", "memory", 0, 3_600_000, ())


def row(node: str, key: Key, chance: float = 1e-9, **more: Any) -> dict[str, Any]:
    namespace, workload, image = key
    return {
        "node": node,
        "day": "2026-03-01",
        "metric": "memory",
        "namespace": namespace,
        "workload": workload,
        "image": image,
        "image_before": "api:1",
        "pod": "p",
        "container": "c",
        "container_id": f"{node}-{workload}",
        "series": "p/c",
        "study": "changepoint",
        "kind": "changepoint",
        "chance": chance,
        "confidence": 0.9,
        "magnitude": 100.0,
        "unit": "bytes",
        "before": 1.0,
        "after": 101.0,
        "from": 1800.0,
        "to": 1800.0,
        "at": 1800.0,
        "samples": 3600,
        "missing_share": 0.0,
        "sentence": "Memory rose.",
        "evidence": {},
        **more,
    }


def part(number: int, rows: list[dict[str, Any]], elsewhere: dict[Key, int] | None = None) -> UnitAnswer:
    node = f"n{number}"
    api, cron = Owner(node, *API), Owner(node, *CRON)
    made = UnitAnswer(unit(node), rows, Counter({api: 1, cron: 1}))
    made.elsewhere = Counter({Owner(node, *key): count for key, count in (elsewhere or {}).items()})
    made.seconds_elsewhere = {api: 3360.0, cron: 3360.0}
    return made


def changes(parts: list[UnitAnswer]) -> FleetAnswer:
    return build_answer(parts, [], Job("changes", 1_800_000, 120_000), "workload", 0.05)


def test_what_changed_together_stands_out_and_habit_does_not() -> None:
    """The API on all nodes; the cron job, too, but it does so every five minutes."""
    parts = [
        part(number, [row(f"n{number}", API), row(f"n{number}", CRON)], {CRON: 22}) for number in range(8)
    ]
    answer = changes(parts)
    together = [one for one in answer.group_tests if is_common(one, 0.05)]
    assert {(one.by, one.group.name) for one in together if one.by in ("workload", "image")} == {
        ("workload", "shop/api"),
        ("image", "api:2"),
    }
    assert {one["workload"] for one in answer.kept} == {"shop/api"}


def test_one_change_somewhere_is_chance() -> None:
    parts = [part(number, [], {CRON: 1, API: 1}) for number in range(7)]
    answer = changes([*parts, part(7, [row("n7", API)], {API: 1})])
    assert answer.kept == []
    assert len(answer.rows) == 1


def test_replicas_that_agree_are_kept_where_one_alone_would_not_be() -> None:
    """Weak evidence eight times in one workload, and once elsewhere."""
    weak = [part(number, [row(f"n{number}", API, chance=0.03)]) for number in range(8)]
    more = [part(number, []) for number in range(8, 200)]
    for one in more:
        one.looked = Counter({Owner(one.unit.node, *CRON): 1})
    lonely = part(500, [row("n500", CRON, chance=0.03)])
    answer = build_answer([*weak, *more, lonely], [], Job("periodicity"), "workload", 0.05)
    assert {one["workload"] for one in answer.kept} == {"shop/api"}
    assert len(answer.kept) == 8
    assert [(group.name, group.series, group.nodes) for group in answer.groups] == [("shop/api", 8, 8)]


def test_faults_are_told_once() -> None:
    fault = SurveyFault("n1", "a file is damaged")
    parts = [part(1, [])]
    parts[0].faults = [fault, fault]
    assert build_answer(parts, [fault], Job("trend"), "workload", 0.05).faults == [fault]


def test_two_sides_are_compared_by_their_middle() -> None:
    rows = [row(f"n{number}", API, side="A", magnitude=10.0 + number) for number in range(3)]
    rows += [row(f"n{number}", API, side="B", magnitude=20.0 + number) for number in range(3)]
    rows += [row("n1", CRON, side="A", magnitude=5.0)]
    pairs = compare(rows, "workload")
    assert (pairs[0].name, pairs[0].is_apart) == ("shop/api", True)
    assert pairs[0].change == pytest.approx(21 / 11 - 1)
    assert (pairs[1].second, pairs[1].change) == (None, None)


def test_the_table_is_the_same_in_every_format(tmp_path: Path) -> None:
    answer = changes([part(number, [row(f"n{number}", API, period_seconds=3.0)]) for number in range(4)])
    for ending in ("parquet", "csv", "json"):
        write_findings(tmp_path / f"out.{ending}", answer.rows, {"question": "changes"})
    table = pq.read_table(tmp_path / "out.parquet").to_pylist()
    with (tmp_path / "out.csv").open() as file:
        lines = list(csv.DictReader(file))
    content = json.loads((tmp_path / "out.json").read_text())
    assert [one["node"] for one in table] == [one["node"] for one in lines]
    assert [one["node"] for one in table] == [one["node"] for one in content["findings"]]
    assert json.loads(table[0]["measures"])["period_seconds"] == 3.0
    with pytest.raises(RequestRejected, match=r"\.parquet, \.csv, \.json"):
        write_findings(tmp_path / "out.xlsx", answer.rows, {})


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["leeks", "DATA"], 2, 'did you mean "leaks"'),
        (["trend", "DATA"], 2, "--metric is needed"),
        (["changes", "DATA"], 2, "--at is needed"),
        (["compare", "DATA"], 2, "two archives A B"),
        (["leaks", "DATA", "--by", "imag"], 2, 'did you mean "image"'),
        (["leaks", "DATA", "--workers", "0"], 2, "1 or more"),
        (["leaks", "DATA", "--false-share", "1.5"], 2, "between 0 and 1"),
        (["leaks", "DATA", "--out", "x.xlsx"], 1, "accepted endings"),
        (["leaks", "DATA"], 1, "there is no data here yet"),
        (["leaks", "/no/such/folder"], 1, "/no/such/folder: no such file or folder"),
        (["leaks", "http://x/y"], 1, "accepted: s3://"),
    ],
)
def test_wrong_words_get_one_clear_line(
    words: list[str], code: int, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fleet", *(str(tmp_path) if word == "DATA" else word for word in words)]) == code
    err = capsys.readouterr().err
    assert told in err
    assert len(err.splitlines()) == 1


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three minutes of two containers."""
    path = tmp_path_factory.mktemp("node")
    write_node(DemoRequest(path, 0.05, 2, 1, 1_772_366_400_000, "demo-1"), "0", lambda _: None)
    return path


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["trend", "--metric", "memry"], 'no metric "memry"; did you mean "memory"?'),
        (["leaks", "--memory", "lots"], "--memory lots is not accepted; accepted: 512MiB"),
        (["leaks", "--from", "yesterday"], "'yesterday' is not a time; accepted: "),
        (["changes", "--at", "25:00"], "25:00 is no time of day; accepted: 00:00 to 23:59:59"),
    ],
)
def test_what_only_the_data_can_refuse_is_one_clear_line_too(
    words: list[str], told: str, node: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fleet", words[0], str(node), *words[1:]]) in (1, 2)
    err = capsys.readouterr().err
    assert told in err
    assert len(err.splitlines()) == 1


def test_three_minutes_are_too_short_to_leak(node: Path) -> None:
    """Counted as such, neither found nor cleared."""
    units = split_by_day(survey_roots([str(node)]), ["memory_anon"], None, None)
    (part,) = (run_unit(one, Job("leaks")) for one in units)
    assert part.rows == []
    assert part.looked.total() == 0
    assert part.short >= 2
