"""`nodescope containers`: who is in a data folder, with those that no row tells of."""

import argparse
import json
from pathlib import Path

import pytest
from tests.keep.frames import SECOND_NS, START_NS, A, frame_at, write_log

from nodescope.base.entity import Entity
from nodescope.base.frame import Event
from nodescope.collect.sources.container.facts import TOO_SHORT
from nodescope.commands import containers
from nodescope.keep.convert import convert_all
from nodescope.keep.demo.archive import write_node
from nodescope.keep.demo.story import DemoRequest
from nodescope.keep.disk import Disk
from nodescope.keep.folder import DataFolder
from nodescope.read.files.catalog import read_catalog
from nodescope.read.query.events import read_events
from nodescope.use.answers.events import render_sentence

SHORT = Entity(
    "container",
    ("f" * 64, ""),
    (("namespace", "jobs"), ("pod", "crash-1"), ("container", "main"), ("image", ""), ("id", "/kubepods/x")),
    (("container_id", "f" * 64), ("qos", "BestEffort")),
)


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    """A runs; a container of another pod comes and goes between ticks 2 and 3."""
    facts: dict[str, float | str] = {"lifetime_seconds": 0.1, "last_look": "none", "unmeasured": TOO_SHORT}
    labels = (*SHORT.labels, *SHORT.details)
    at_ns = START_NS + 3 * SECOND_NS
    events = (
        Event("start", at_ns, "container", SHORT.ids, SHORT.labels),
        Event("exit", at_ns, "container", SHORT.ids, labels, facts),
        Event("exit", at_ns, "container", A.ids, A.labels, {"lifetime_seconds": 3.0}),
    )
    made = DataFolder(tmp_path)
    write_log(
        made, [frame_at(number, events=events if number == 3 else ()) for number in range(6)], segment=1
    )
    convert_all(Disk(), made)
    return made


def ask(folder: DataFolder, *, is_json: bool, lives: bool = False) -> int:
    return containers.run(argparse.Namespace(path=[folder.path], json=is_json, lives=lives))


def test_a_container_too_short_to_measure_is_listed_as_such(
    folder: DataFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(folder, is_json=False) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "crash-1" in line]
    assert line.split()[:4] == ["f" * 12, "jobs", "crash-1", "main"]
    assert "BestEffort" in line
    assert line.endswith("too short to measure")


def test_its_facts_are_in_the_json(folder: DataFolder, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert ask(folder, is_json=True) == 0
    listed = json.loads(capsysbinary.readouterr().out)
    (short,) = [one for one in listed if one.get("facts")]
    assert short["container_id"] == "f" * 64
    assert short["facts"]["lifetime_seconds"] == 0.1
    assert sum(one["container_id"] == A.ids[0] for one in listed) == 1


def test_the_sentence_of_its_end_says_so(folder: DataFolder) -> None:
    ends = read_events(read_catalog([folder.path]), kinds=["exit"])
    said = {one.subject.label("l_container_id"): render_sentence(one) for one in ends}
    assert said["f" * 64].endswith("after 0.1 s. It was too short to measure.")
    assert "too short" not in said[A.ids[0]]


def test_the_runs_of_one_container_are_one_line_with_its_restarts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The demo's crash loop; --lives has every run."""
    made = DataFolder(tmp_path / "demo")
    write_node(DemoRequest(made.path, 0.5, 8, 7, 1_770_000_000_000, "demo-1"), "0", lambda _: None)
    assert ask(made, is_json=False, lives=True) == 0
    runs = [line for line in capsys.readouterr().out.splitlines() if " migrator-" in line]
    assert ask(made, is_json=False) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if " migrator-" in line]
    assert len(runs) > 2
    assert line.split()[7] == str(len(runs) - 1)
    # From the first sample of the first run to the last one of the newest, whose id it has.
    assert line.split()[0] == runs[-1].split()[0]
    assert line.split()[8:10] == runs[0].split()[7:9]
    assert line.split()[-3:] == runs[-1].split()[-3:]


def test_a_file_that_was_cut_off_is_said_with_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its description is whole: the table alone would not show that anything is wrong."""
    folder = DataFolder(tmp_path)
    write_log(folder, [frame_at(number) for number in range(6)])
    convert_all(Disk(), folder)
    ask(folder, is_json=False)
    whole = capsys.readouterr()
    assert whole.err == ""
    (file,) = tmp_path.glob("dt=*/identifier=*/*.parquet")
    file.write_bytes(file.read_bytes()[:1000])
    for is_json in (False, True):
        assert ask(folder, is_json=is_json) == 0
        told = capsys.readouterr()
        (line,) = told.err.splitlines()
        assert line.startswith(f"nodescope: {file.name}: damaged: ")
        assert line.endswith(
            "the samples from 2026-03-01 11:59:00 UTC to 2026-03-01 11:59:05 UTC are missing"
        )
        assert is_json or told.out == whole.out
