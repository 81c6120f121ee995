"""Core frequencies."""

from pathlib import Path

import numpy as np
import pytest
from tests.collect.hardware import make_context, value, write_files

from nodescope.base.errors import SourceAbsent, SourceFailed
from nodescope.collect.sources.cpufreq import CpufreqSource


def write_core(folder: Path, core: int, kilohertz: object) -> None:
    files = {"scaling_cur_freq": kilohertz, "cpuinfo_min_freq": 400000, "cpuinfo_max_freq": 4200000}
    base = f"sys/devices/system/cpu/cpu{core}/cpufreq"
    write_files(folder, {f"{base}/{file}": content for file, content in files.items()})


def test_every_core_has_its_frequency_in_order_of_numbers(tmp_path: Path) -> None:
    """Cpu10 comes after cpu9; cores without the folder are left out."""
    for core in (10, 9, 0):
        write_core(tmp_path, core, 2_000_000 + core)
    (tmp_path / "sys/devices/system/cpu/cpu1").mkdir()
    source = CpufreqSource(make_context(tmp_path))
    (block,) = source.parse(source.read(), 0)
    assert [entity.ids for entity in block.entities] == [("0",), ("9",), ("10",)]
    assert value(block, "cpufreq.scaling_cur_freq", 2) == 2_000_010
    assert value(block, "cpufreq.cpuinfo_max_freq") == 4200000


def test_an_unknown_frequency_is_missing(tmp_path: Path) -> None:
    """Some drivers write <unknown> for a core that sleeps."""
    write_core(tmp_path, 0, "<unknown>")
    write_core(tmp_path, 1, 800000)
    source = CpufreqSource(make_context(tmp_path))
    (block,) = source.parse(source.read(), 0)
    assert np.isnan(value(block, "cpufreq.scaling_cur_freq"))


def test_no_frequency_at_all_is_failed(tmp_path: Path) -> None:
    write_core(tmp_path, 0, "<unknown>")
    source = CpufreqSource(make_context(tmp_path))
    with pytest.raises(SourceFailed):
        source.read()


def test_no_driver_is_absent(tmp_path: Path) -> None:
    with pytest.raises(SourceAbsent, match="virtual machine"):
        CpufreqSource(make_context(tmp_path))
