"""GPU series are kept like everything else: a real agent writes them, and they are read back."""

import csv
from collections import defaultdict
from pathlib import Path

import pytest
from tests.fakes.gpu_archive import GPUS, write_archive
from tests.fakes.nvml.library import H100
from tests.integration.agents import run_nodescope

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("gpus") / "data"
    # GPUs are asked once a second: more than enough for five answers on a busy machine.
    write_archive(data, seconds=12, interval="0.5s", rotation_seconds=2)
    return data


def export(archive: Path, *metrics: str) -> dict[str, dict[str, list[float]]]:
    """metric -> GPU -> values."""
    out = archive.parent / "out.csv"
    chosen = [word for metric in metrics for word in ("--metric", metric)]
    done = run_nodescope("export", str(archive), "--out", str(out), *chosen)
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with out.open() as lines:
        for row in csv.DictReader(lines):
            if row["value"]:
                found[row["metric"]][row["l_gpu"]].append(float(row["value"]))
    return found


def test_what_the_gpus_said_is_in_the_archive(archive: Path) -> None:
    """Eight GPUs by their uuid, in base units, at every tick, moving as they moved."""
    found = export(archive, "gpu.utilization", "gpu.memory_total", "gpu.power", "gpu.temperature")
    for name in ("gpu.utilization", "gpu.memory_total", "gpu.power", "gpu.temperature"):
        assert len(found[name]) == GPUS, name
        assert all(uuid.startswith("GPU-0000000") for uuid in found[name])
        assert min(map(len, found[name].values())) >= 5
    assert {value for values in found["gpu.memory_total"].values() for value in values} == {
        float(str(H100["all.memory.total"]))
    }
    for uuid, loads in found["gpu.utilization"].items():
        assert len(set(loads)) > 1, f"{uuid} moved"
        assert all(0 <= load <= 100 for load in loads)
        # Power was said in the same breath as the load, in milliwatts.
        assert all(90 <= power <= 651 for power in found["gpu.power"][uuid])


def test_plain_names_are_derived_on_read(archive: Path) -> None:
    """gpu_utilization is a ratio of what was kept in percent."""
    raw = export(archive, "gpu.utilization")["gpu.utilization"]
    plain = export(archive, "gpu_utilization", "gpu_memory", "gpu_power")
    assert {len(gpus) for gpus in plain.values()} == {GPUS}
    for uuid, loads in plain["gpu_utilization"].items():
        assert sorted(loads) == pytest.approx(sorted(load / 100 for load in raw[uuid]))
