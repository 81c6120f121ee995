"""Anybody's CSV goes in, text or one JSON line per file comes out, and errors are one clear line."""

import io
import json
import math
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import pytest

from nodescope.cli import main
from nodescope.use.studies import STUDIES, Finding, StudyAnswer
from nodescope.use.studies.csv_series import SeriesRefused, read_series


def written(folder: Path, text: str, name: str = "load.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def step(folder: Path, name: str = "load.csv") -> Path:
    random = np.random.default_rng(1)
    rows = [
        f"{1_700_000_000 + i},{(1 if i < 200 else 3) + 0.1 * random.standard_normal()}" for i in range(400)
    ]
    return written(folder, "time,value\n" + "\n".join(rows) + "\n", name)


def ran(name: str, *files: Path, as_json: bool = False) -> tuple[int, str, str]:
    words = ["study", name, *map(str, files), *(["--json"] if as_json else [])]
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        code = main(words)
    return code, out.getvalue(), err.getvalue()


def test_seconds_and_iso_times_and_missing_values_are_read(tmp_path: Path) -> None:
    text = "time,value\n0,1.5\n1970-01-01T00:00:01Z,\n1970-01-01 00:00:02,2\n1970-01-01T01:00:03+01:00,nan\n"
    series = read_series(written(tmp_path, text))
    assert series.times_at.tolist() == [0, 1, 2, 3]
    assert series.values[[0, 2]].tolist() == [1.5, 2.0]
    assert math.isnan(series.values[1])
    assert math.isnan(series.values[3])
    assert series.metric == "load"


def test_other_columns_and_orders_and_no_header_are_fine(tmp_path: Path) -> None:
    assert read_series(written(tmp_path, "value,host,timestamp\n7,a,3\n")).times_at.tolist() == [3]
    assert read_series(written(tmp_path, "3,7\n4,8\n")).values.tolist() == [7, 8]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "empty; a CSV file with columns time,value is expected"),
        ("tine,value\n1,2\n", 'line 1: no column "tine"; did you mean "time"?'),
        ("time,value\n1,2\nyesterday,3\n", "line 3: 'yesterday' is no time; seconds or ISO 8601"),
        ("time,value\n1,two\n", "line 2: 'two' is no number; leave the value empty where it is missing"),
        ("time,value\n1\n", "line 2: expected time,value, got '1'"),
    ],
)
def test_a_file_that_is_no_series_is_refused_in_one_line(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(SeriesRefused) as refusal:
        read_series(written(tmp_path, text))
    assert problem in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_json_has_one_line_per_file_as_the_contract_has_it(tmp_path: Path) -> None:
    code, out, _ = ran("changepoint", step(tmp_path, "a.csv"), step(tmp_path, "b.csv"), as_json=True)
    answers = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [answer["series"]["metric"] for answer in answers] == ["a", "b"]
    answer = answers[0]
    assert (answer["study"], answer["version"], answer["samples"], answer["status"]) == (
        "changepoint",
        1,
        400,
        "found",
    )
    assert answer["reason"] is None
    finding = answer["findings"][0]
    assert finding["at"] == finding["from"] == finding["to"] == 1_700_000_200.0
    assert {"kind", "confidence", "magnitude", "unit", "before", "after", "sentence", "evidence"} <= set(
        finding
    )


def test_text_is_the_sentence_then_the_plot_then_the_evidence(tmp_path: Path) -> None:
    code, out, err = ran("changepoint", step(tmp_path))
    assert (code, err) == (0, "")
    assert out.index("Load rose from") < out.index("^") < out.index("gain nats")
    assert "\x1b" not in out


def test_colour_is_for_terminals_that_want_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    def shown(no_colour: str) -> str:
        monkeypatch.setenv("NO_COLOR", no_colour)
        with redirect_stdout(Terminal()) as out:
            assert main(["study", "summary", str(step(tmp_path))]) == 0
        return out.getvalue()

    assert "\x1b[1m" in shown("")
    assert "\x1b" not in shown("1")


def test_a_wrong_study_names_the_nearest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "changepiont", str(step(tmp_path))]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith('nodescope study: no study "changepiont"; did you mean "changepoint"? (accepted: ')
    assert err.count("\n") == 1


def test_a_refused_file_does_not_stop_the_others(tmp_path: Path) -> None:
    code, out, err = ran("summary", tmp_path / "gone.csv", step(tmp_path), as_json=True)
    assert (code, len(out.splitlines()), err.count("\n")) == (1, 1, 1)
    assert err.endswith("gone.csv: no such file\n")


def test_correlation_compares_each_file_with_the_others(tmp_path: Path) -> None:
    _, out, _ = ran("correlation", step(tmp_path, "a.csv"), step(tmp_path, "b.csv"), as_json=True)
    assert [json.loads(line)["findings"][0]["other"] for line in out.splitlines()] == ["b", "a"]


def test_control_characters_never_reach_the_terminal(tmp_path: Path) -> None:
    _, out, _ = ran("summary", step(tmp_path, "a\x1b[31mb.csv"))
    assert "\x1b" not in out


def test_the_registry_is_the_folder_of_studies() -> None:
    for name, study in STUDIES.items():
        assert (study.name, study.run.__module__) == (name, f"nodescope.use.studies.{name}")


def test_what_is_not_a_number_is_none() -> None:
    """In the finding itself, so that who reads it here and who reads its JSON have the same."""
    nan, inf = float("nan"), float("inf")
    finding = Finding(
        "trend",
        0.0,
        1.0,
        0.5,
        nan,
        "",
        "x",
        before=-inf,
        after=0.0,
        measures={"high": inf},
        evidence={"z": nan},
    )
    assert (finding.magnitude, finding.before, finding.after) == (None, None, 0.0)
    assert (finding.measures, finding.evidence) == ({"high": None}, {"z": None})
    assert (finding.to_json()["magnitude"], finding.to_json()["high"]) == (None, None)


def test_shares_have_four_decimals_unless_wanted_exact() -> None:
    finding = Finding("trend", 0.0, 1.0, 0.123456, 1.23456789, "", "x")
    answer = StudyAnswer("trend", {}, 0.0, 1.0, 9, 0.98765432, "found", "x", findings=(finding,))
    rounded, exact = answer.to_json(), answer.to_json(exact=True)
    assert (rounded["missing_share"], exact["missing_share"]) == (0.9877, 0.98765432)
    assert rounded["findings"] == [{**finding.to_json(exact=True), "confidence": 0.1235}]
    assert exact["findings"] == [{**finding.to_json(), "confidence": 0.123456}]
