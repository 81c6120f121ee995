"""A day of PCM at full speed: memory stays where it was."""

import gc
import os
from pathlib import Path

import pytest
from tests.collect.hardware import make_pcm, value

from nodescope.base.frame import OK, Frame
from nodescope.collect.sources.pcm.process import PcmProcess
from nodescope.collect.sources.pcm.source import group_rows
from nodescope.hold.ring import Ring

FAKE = Path(__file__).parents[1] / "fakes" / "pcm"
MEBIBYTE = 2**20


def write_day(path: Path, rows: int) -> None:
    """A row a second from midnight on, a bad cell every minute."""
    cores = 8
    groups = ["System"] * 6 + [f"Core{core} (Socket 0)" for core in range(cores) for _ in range(4)]
    metrics = [
        "Date",
        "Time",
        "INST",
        "ACYC",
        "READ",
        "WRITE",
        *["IPC", "L3MISS", "L2MISS", "C0res%"] * cores,
    ]
    with path.open("w") as file:
        file.write(",".join(groups) + ",\n" + ",".join(metrics) + ",")
        for second in range(rows):
            at = f"{second // 3600 % 24:02d}:{second // 60 % 60:02d}:{second % 60:02d}.000"
            read = "18446744073.71" if second % 60 == 30 else "1.80"
            cells = ["1.20", "0.01", "0.15", "25.00"] * cores
            file.write(
                f"\n2025-07-{19 + second // 86400:02d},{at},60.00,64.00,{read},0.20,{','.join(cells)},"
            )


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def replay(path: Path, rows: int, tmp_path: Path) -> tuple[int, float, float, float]:
    """Through a pipe, the parser, the account and the ring; growth of memory behind the first tenth."""
    source = make_pcm()
    ring = Ring(120.0, 64 * MEBIBYTE, 1.0)
    process = PcmProcess([str(FAKE), "--replay", str(path), "--speed", "0", "1", "-csv", "-f"], 1.0)
    seen = sequence = settled = 0
    newest = None
    while isinstance(found := process.read(), list):
        seen += len(found)
        for block in source.parse({"tables": group_rows(found)}, seen * 1_000_000_000):
            sequence += 1
            ring.accept(Frame(sequence, block.mono_ns, block.mono_ns, (block,), {"pcm": OK}))
            newest = block if block.table.name == "pcm" else newest
        if not settled and seen > rows // 10:
            gc.collect()
            settled = resident_bytes()
    process.stop()
    gc.collect()
    assert newest is not None
    return (
        resident_bytes() - settled,
        value(newest, "pcm.covered"),
        value(newest, "pcm.memory_read"),
        value(newest, "pcm.cells.wrapped"),
    )


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(3_600, marks=pytest.mark.real, id="an hour"),
        pytest.param(86_400, marks=pytest.mark.soak, id="a day"),
    ],
)
def test_a_long_replay_keeps_memory_flat_and_every_row(tmp_path: Path, rows: int) -> None:
    """Every second is covered but the first, every bad cell counted, and nothing is kept but the ring."""
    path = tmp_path / "day.csv"
    write_day(path, rows)
    grown, covered, read, wrapped = replay(path, rows, tmp_path)
    assert grown < 16 * MEBIBYTE
    assert covered == pytest.approx(rows - 1)
    bad = len([second for second in range(rows) if second % 60 == 30])
    assert wrapped == bad
    assert read == pytest.approx((rows - 1 - bad) * 1.8e9)
