"""`nodescope study` on an archive: the planted stories are what it tells."""

import json
from pathlib import Path
from typing import Any

import pytest

from nodescope.cli import main


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    arguments = ["--data", str(folder), "--hours", "1", "--containers", "8", "--seed", "11", "--no-serve"]
    assert main(["demo", *arguments]) == 0
    return folder


def planted(demo: Path, kind: str) -> dict[str, Any]:
    stories = json.loads((demo / "truth.json").read_text())["planted"]
    return next(story for story in stories if story["kind"] == kind)


def ask(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["study", *words, "--json"]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[0])
    return answer


def test_the_planted_leak_is_found_with_its_slope_and_real_limit(
    demo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The slope within 5 % of what was planted; the limit is the container's own, read from the archive."""
    leak = planted(demo, "leak")
    answer = ask(capsys, "trend", str(demo), "--container", leak["container_ids"][0], "--metric", "memory")
    (finding,) = answer["findings"]
    assert answer["status"] == "found"
    assert finding["slope_per_second"] == pytest.approx(leak["slope_per_second"], rel=0.05)
    assert finding["limit"] == leak["limit"]
    assert answer["series"]["container"].startswith(leak["pod"])


def test_a_wrong_metric_or_container_names_the_nearest(
    demo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["study", "trend", str(demo), "--metric", "memori"]) == 1
    assert 'did you mean "memory"?' in capsys.readouterr().err
    assert main(["study", "trend", str(demo), "--metric", "memory", "--container", "nobody"]) == 1
    assert "nobody" in capsys.readouterr().err


def test_a_folder_without_a_metric_is_wrong_usage(demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "trend", str(demo)]) == 2
    assert "--metric" in capsys.readouterr().err


def test_a_csv_file_takes_no_container(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.csv"
    file.write_text("time,value\n1,2\n")
    assert main(["study", "trend", str(file), "--container", "x"]) == 2
    assert "data folder" in capsys.readouterr().err


def test_several_metrics_of_a_container_are_looked_at_together(
    demo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    leak = planted(demo, "leak")["container_ids"][0]
    answer = ask(capsys, "anomaly", str(demo), "--container", leak, "--metric", "cpu,memory")
    assert answer["series"]["metric"] == "cpu, memory"
    assert "together" in answer["sentence"]
    every = ask(capsys, "anomaly", str(demo), "--container", leak, "--metric", "all")
    assert "cpu" in every["series"]["metric"]
    assert every["series"]["metric"].count(",") >= 2


def test_one_of_several_metrics_that_does_not_exist_is_refused(
    demo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["study", "anomaly", str(demo), "--metric", "cpu,memori"]) == 1
    assert 'did you mean "memory"?' in capsys.readouterr().err
