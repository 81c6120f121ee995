"""Metrics that other programs leave as files: taken whole or refused with a reason."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families

from nodescope.base.errors import ParseError
from nodescope.publish.textfile import (
    MOST_BYTES,
    MOST_FILES,
    STALE_SECONDS,
    TextfileAnswer,
    TextfileFolder,
    merge_families,
)
from nodescope.serve.prometheus_parse import MOST_SERIES, parse_text
from nodescope.serve.prometheus_text import render_families

NOW = 1_700_000_000.0
GOOD = """# HELP backup_age_seconds How old the backup is.
# TYPE backup_age_seconds gauge
backup_age_seconds{disk="a \\"b\\" \\\\ c\\nd"} 12.5
backup_age_seconds{disk="x"} +Inf
# TYPE runs counter
runs 3
# TYPE took_seconds histogram
took_seconds_bucket{le="1"} 1
took_seconds_bucket{le="+Inf"} 2
took_seconds_sum 3
took_seconds_count 2
"""


def write(folder: Path, name: str, text: str, at: float = NOW) -> Path:
    path = folder / name
    path.write_text(text)
    os.utime(path, (at, at))
    return path


def read(folder: Path, taken: frozenset[str] = frozenset()) -> TextfileAnswer:
    return TextfileFolder(str(folder)).read(taken, NOW)


def own(answer: TextfileAnswer) -> str:
    return render_families(answer.own_families(), openmetrics=False)


def test_a_good_file_is_published_and_parses(tmp_path: Path) -> None:
    write(tmp_path, "backup.prom", GOOD)
    write(tmp_path, "notes.txt", "no metrics")
    answer = read(tmp_path)
    found = {
        family.name: family for family in text_string_to_metric_families(answer.render(openmetrics=False))
    }
    assert set(found) == {"backup_age_seconds", "runs", "took_seconds"}
    labels = [sample.labels for sample in found["backup_age_seconds"].samples]
    assert {"disk": "x"} in labels
    assert "node_textfile_scrape_error 0" in own(answer)
    assert f'node_textfile_mtime_seconds{{file="{tmp_path}/backup.prom"}} {NOW:.0f}' in own(answer)
    opened = list(openmetrics_families(answer.render(openmetrics=True) + "# EOF\n"))  # type: ignore[no-untyped-call]
    assert {family.name for family in opened} == {"backup_age_seconds", "runs", "took_seconds"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a b c d\n", "expected name"),
        ("x 1 1700000000000\n", "timestamp"),
        ("x one\n", "expected a number"),
        ('x{a="1",a="2"} 1\n', "repeated label"),
        ('x{a="1} 1\n', "wrong or repeated label"),
        ("x 1\nx 2\n", "stands twice"),
        ("node_load1 1\n", "publishes itself"),
    ],
)
def test_a_wrong_file_is_refused_whole_with_its_reason(tmp_path: Path, text: str, why: str) -> None:
    write(tmp_path, "wrong.prom", "fine 1\n" + text)
    write(tmp_path, "zz.prom", "other 1\n")
    answer = read(tmp_path, frozenset({"node_load1"}))
    assert why in answer.errors["wrong.prom"]
    assert set(answer.families) == {"other"}
    assert "node_textfile_scrape_error 1" in own(answer)
    assert 'nodescope_textfile_files{state="refused"} 1' in own(answer)


def test_two_files_may_share_a_name_but_not_a_type_or_a_series(tmp_path: Path) -> None:
    write(tmp_path, "a.prom", '# TYPE x gauge\nx{f="a"} 1\n')
    write(tmp_path, "b.prom", '# TYPE x gauge\nx{f="b"} 2\n')
    write(tmp_path, "c.prom", "# TYPE x counter\nx 3\n")
    write(tmp_path, "d.prom", '# TYPE x gauge\nx{f="a"} 4\n')
    answer = read(tmp_path)
    assert sorted(answer.errors) == ["c.prom", "d.prom"]
    assert answer.render(openmetrics=False).count("# TYPE x gauge") == 1
    assert len(answer.families["x"].samples) == 2


def test_sizes_are_bounded(tmp_path: Path) -> None:
    write(tmp_path, "large.prom", "# " + "x" * MOST_BYTES)
    write(tmp_path, "many.prom", "".join(f'x{{n="{number}"}} 1\n' for number in range(MOST_SERIES + 1)))
    answer = read(tmp_path)
    assert "bytes, at most" in answer.errors["large.prom"]
    assert "more than" in answer.errors["many.prom"]
    for number in range(MOST_FILES):
        write(tmp_path, f"f{number}.prom", f"f{number} 1\n")
    assert f"the first {MOST_FILES} are read" in read(tmp_path).errors[""]


def test_a_stale_file_is_published_and_counted(tmp_path: Path) -> None:
    write(tmp_path, "old.prom", "x 1\n", NOW - STALE_SECONDS - 1)
    answer = read(tmp_path)
    assert "x" in answer.families
    assert 'nodescope_textfile_files{state="stale"} 1' in own(answer)


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    answer = read(tmp_path / "none")
    assert "cannot be listed" in answer.errors[""]
    assert "node_textfile_scrape_error 1" in own(answer)


def test_a_file_is_read_again_when_it_changed(tmp_path: Path) -> None:
    folder = TextfileFolder(str(tmp_path))
    path = write(tmp_path, "a.prom", "x 1\n")
    assert folder.read(frozenset(), NOW).families["x"].samples[0][2] == 1
    write(tmp_path, "a.prom", "x 2\n", NOW + 1)
    assert folder.read(frozenset(), NOW).families["x"].samples[0][2] == 2
    path.unlink()
    assert not folder.read(frozenset(), NOW).families


@given(st.text())
def test_any_text_gives_an_exposition_that_parses_or_a_reason(text: str) -> None:
    """forall texts: parse_text raises ParseError, or what is rendered can be parsed."""
    try:
        families = parse_text(text)
    except ParseError:
        return
    merged: dict[str, object] = {}
    merge_families(merged, families)  # type: ignore[arg-type]
    rendered = TextfileAnswer(merged, {}, {}, 0).render(openmetrics=False)  # type: ignore[arg-type]
    list(text_string_to_metric_families(rendered))
