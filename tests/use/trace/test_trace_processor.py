"""A span as a trace, opened by Perfetto's own trace processor."""

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from tests.use.trace.perfetto_engine import Engine, perfetto_engine
from tests.use.trace.test_span_trace import ReadTrace, read_trace
from tests.web.browsing import running_chromium

from nodescope.cli import main
from nodescope.use.trace.trace_file import TraceFile

pytestmark = pytest.mark.real

# What the importer could not make sense of. Counts of what went well are there, too ('info').
COMPLAINTS = "select name, value from stats where severity != 'info' and value > 0"
COUNTERS = "select t.name, c.ts, c.value from counter c join counter_track t on t.id = c.track_id"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("trace")
    words = ["demo", "--data", str(folder / "demo"), "--hours", "1", "--containers", "6", "--no-serve"]
    assert main(words) == 0
    out = folder / "t.pftrace"
    assert main(["export", str(folder / "demo"), "--out", str(out)]) == 0
    return out.read_bytes()


@pytest.fixture(scope="module")
def engine(browser: Browser, written: bytes) -> Iterator[Engine]:
    with perfetto_engine(browser, written) as engine:
        yield engine


def test_nothing_is_lost_or_refused(engine: Engine) -> None:
    assert engine.rows(COMPLAINTS) == []


def test_every_sample_is_there_with_its_time_and_value(engine: Engine, written: bytes) -> None:
    trace = read_trace(written)
    ours = sorted(
        (trace.names[track], at, value) for track, points in trace.counters.items() for at, value in points
    )
    theirs = sorted((row["name"], row["ts"], row["value"]) for row in engine.rows(COUNTERS))
    assert len(ours) > 10_000
    assert theirs == ours


def test_slices_and_events_lie_on_the_tracks_of_their_containers(engine: Engine, written: bytes) -> None:
    rows = engine.rows(
        "select s.name, s.ts, s.dur, t.name as track from slice s join track t on t.id = s.track_id"
    )
    found = sorted((row["track"], row["name"], row["ts"], row["ts"] + row["dur"]) for row in rows)
    assert found == sorted(list_slices(read_trace(written)))
    assert {"running", "throttled", "killed for memory"} <= {row["name"] for row in rows}


def list_slices(trace: ReadTrace) -> Iterator[tuple[str, str, int, int]]:
    for track, slices in trace.slices.items():
        yield from ((trace.names[track], name, start, end) for start, end, name in slices)
    yield from ((trace.names[track], name, at, at) for track, at, name, _ in trace.marks)


def test_the_guide_s_question_has_an_answer(engine: Engine) -> None:
    guide = (Path(__file__).parents[3] / "docs" / "guides" / "trace.md").read_text()
    query = guide.split("processor.query(", 1)[1].split('"', 2)[1]
    rows = engine.rows(query)
    assert len(rows) > 1000
    assert set(rows[0]) == {"ts", "value"}


def test_a_training_trace_in_the_same_archive_has_the_same_axis(browser: Browser, written: bytes) -> None:
    trace = read_trace(written)
    at = min(at for points in trace.counters.values() for at, _ in points)
    step = {"name": "train_step", "ph": "X", "ts": at / 1000 + 60e6, "dur": 5e5, "pid": 1, "tid": 1}
    both = io.BytesIO()
    with zipfile.ZipFile(both, "w") as archive:
        archive.writestr("trace.pftrace", written)
        archive.writestr("training.json", json.dumps({"traceEvents": [step]}))
    with perfetto_engine(browser, both.getvalue()) as engine:
        assert engine.rows(COMPLAINTS) == []
        (row,) = engine.rows("select ts, dur from slice where name = 'train_step'")
        assert abs(row["ts"] - at - 60_000_000_000) < 1_000_000
        assert row["dur"] == 500_000_000
        near = f"{COUNTERS} where c.ts between {row['ts'] - 10**9} and {row['ts'] + 10**9}"
        assert engine.rows(near)


def test_names_of_others_stay_text(browser: Browser) -> None:
    hostile = "a'); drop table slice; --\n<script>\udcff"
    file = io.BytesIO()
    trace = TraceFile(file)
    trace.begin()
    process = trace.add_track(hostile, trace.add_track("node n"), pid=42)
    trace.count(trace.add_track("cpu", process, unit="cores"), 5, 0.5)
    trace.span(process, 1, 9, hostile, {"x": hostile})
    with perfetto_engine(browser, file.getvalue()) as engine:
        assert engine.rows(COMPLAINTS) == []
        assert [row["name"] for row in engine.rows("select name from slice")] == [
            hostile.replace("\udcff", "?")
        ]
        assert engine.rows("select pid from process where pid = 42")
