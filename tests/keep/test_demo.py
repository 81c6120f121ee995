"""The demo: deterministic, true to its truth, and within the kernel's own rules."""

import json
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nodescope.cli import main
from nodescope.keep.demo.archive import write_node
from nodescope.keep.demo.story import DemoRequest
from nodescope.read.files.catalog import read_catalog
from nodescope.read.files.rollups import choose, find_rollups
from nodescope.read.query.engine import Engine

END_MS = 1_772_366_400_000
Samples = dict[tuple[str, str], "np.ndarray[tuple[int], np.dtype[np.float64]]"]


def make(path: Path, seed: int = 7) -> DemoRequest:
    request = DemoRequest(path, 0.6, 9, seed, END_MS, "demo-1")
    write_node(request, "0", lambda _: None)
    return request


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demo")
    make(path)
    return path


@pytest.fixture(scope="module")
def samples(data: Path) -> Samples:
    """(metric, container) -> values in order of time; unlimited is infinite."""
    rows = duckdb.execute(
        f"SELECT metric_name, l_container_id, list(coalesce(value, 'inf'::DOUBLE) ORDER BY time) "
        f"FROM read_parquet('{data}/dt=*/*/*.parquet') WHERE l_scope = 'container' GROUP BY 1, 2"
    ).fetchall()
    return {(name.removeprefix("cgroup.v2."), one): np.array(values) for name, one, values in rows}


def test_its_files_have_checksums_of_pages_as_an_agent_s_have(data: Path) -> None:
    """A byte of a page that is another one is refused by any reader that looks."""
    for path in sorted(data.glob("dt=*/*/*.parquet")):
        changed = bytearray(path.read_bytes())
        column = pq.ParquetFile(path).metadata.row_group(0).column(0)
        changed[column.data_page_offset + column.total_compressed_size // 2] ^= 1
        file = pq.ParquetFile(pa.BufferReader(bytes(changed)), page_checksum_verification=True)
        with pytest.raises(OSError, match="CRC checksum"):
            file.read_row_group(0)


def containers(samples: Samples) -> set[str]:
    return {one for _, one in samples}


def test_usage_is_user_and_system(samples: Samples) -> None:
    for one in containers(samples):
        parts = samples["cpu.stat.user_usec", one] + samples["cpu.stat.system_usec", one]
        assert (samples["cpu.stat.usage_usec", one] == parts).all()


def test_memory_stays_within_its_limit(samples: Samples) -> None:
    for one in containers(samples):
        assert (samples["memory.current", one] <= samples["memory.max", one]).all()


def test_counters_never_fall_while_a_container_lives(samples: Samples) -> None:
    names = ("cpu.stat.usage_usec", "cpu.stat.user_usec", "io.stat.wbytes", "memory.events.oom_kill")
    for (name, _), values in samples.items():
        if name in names or name.startswith("cpu.stat."):
            assert (np.diff(values) >= 0).all()


def test_an_oom_kill_is_the_last_thing_a_container_does(samples: Samples) -> None:
    killed = [one for one in containers(samples) if samples["memory.events.oom_kill", one].any()]
    assert len(killed) == 1
    values = samples["memory.events.oom_kill", killed[0]]
    assert values[-1] == 1
    assert values[:-1].max() == 0
    assert samples["memory.current", killed[0]][-1] == samples["memory.max", killed[0]][-1]


def test_the_same_seed_makes_the_same_files(tmp_path: Path) -> None:
    for name, seed in (("one", 7), ("two", 7), ("three", 8)):
        make(tmp_path / name, seed)

    def content(name: str) -> dict[str, bytes]:
        root = tmp_path / name
        return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*.parquet"))}

    assert content("one") == content("two")
    assert content("one") != content("three")


def test_what_is_planted_is_found_where_truth_says(tmp_path: Path) -> None:
    """By the command, through the query interface: throttling, the cron job's spikes."""
    words = ["demo", "--no-serve", "--data", str(tmp_path / "d"), "--hours", "0.6", "--containers", "9"]
    assert main([*words, "--end", "2026-03-01T12:00:00Z"]) == 0
    truth = json.loads((tmp_path / "d" / "truth.json").read_text())
    planted = {one["kind"]: one for one in truth["planted"]}
    assert {"leak", "oom_kill", "throttling", "cron_spikes", "deploy_step", "crash_loop", "gpu_job"} == set(
        planted
    )
    # As studies print times, beside seconds for programs.
    assert planted["leak"]["when"].startswith("2026-03-01 11:24:00 UTC to 2026-03-01 ")
    assert planted["oom_kill"]["when"].endswith(" UTC")
    catalog, engine = read_catalog([tmp_path / "d"]), Engine()
    # Its hours have their minutes, as a consolidator leaves them.
    hours, rollups = choose(catalog.entries, find_rollups([tmp_path / "d"], 0, 2**42), 0, 2**42)
    assert rollups
    assert {entry.path.name.split("-")[0] for entry in hours} == {"metrics"}
    one = planted["throttling"]
    from_ms, to_ms = round(one["from"] * 1000) + 1000, round(one["to"] * 1000) - 1000
    inside = engine.query(catalog, "cpu_throttled", one["container_ids"], from_ms, to_ms)
    assert inside.lines[0].points.mean.mean() > 0.9
    cron = engine.query(catalog, "cpu", planted["cron_spikes"]["container_ids"])
    assert cron.lines[0].points.maximum.max() > 1.0
    gpu = engine.query(catalog, "gpu_utilization", None, from_ms, to_ms)
    assert gpu.lines[0].points.mean.mean() > 0.8


def test_a_folder_with_an_archive_is_not_written_over(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--no-serve", "--data", str(data)]) == 1
    assert "has an archive already" in capsys.readouterr().err


def test_the_commands_list_and_export(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["containers", str(data), "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert {"api", "cache", "trainer"} <= {one["container_name"] for one in listed}
    assert main(["metrics", str(data), "--json"]) == 0
    assert "cpu_throttled" in {one["name"] for one in json.loads(capsys.readouterr().out)}
    assert (
        main(
            [
                "export",
                str(data),
                "--out",
                str(tmp_path / "x.csv"),
                "--metric",
                "cpu",
                "--container",
                "api",
                "--from",
                "-1m",
            ]
        )
        == 0
    )
    assert len((tmp_path / "x.csv").read_text().splitlines()) == 62
    assert main(["export", str(data), "--out", str(tmp_path / "x.xls")]) == 1
    assert "accepted" in capsys.readouterr().err


def test_consolidate_says_what_it_would_do_and_does_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path)
    rows = read_catalog([tmp_path]).rows
    assert main(["consolidate", "--data", str(tmp_path), "--dry-run"]) == 0
    assert "files of" in capsys.readouterr().out
    copied = f"file://{tmp_path / 'copy'}"
    options = ["--once", "--no-retention", "--set-up-store", "--copy-to", copied]
    assert main(["consolidate", "--data", str(tmp_path), *options]) == 0
    catalog = read_catalog([tmp_path / "dt=2026-03-01"])
    assert [entry.path.name.split("-")[0] for entry in catalog.entries] == ["consolidated"]
    assert catalog.rows == rows
    assert read_catalog([tmp_path / "copy"]).rows == rows
