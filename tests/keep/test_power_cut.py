"""A power cut costs at most what was not synced: the short form of tests/torture/power_cuts.py."""

import random
from pathlib import Path

from tests.keep.frames import archived_times
from tests.torture import power_cuts

from nodescope.keep.disk import Operation
from nodescope.keep.folder import DataFolder


def test_every_synced_tick_is_there_once_after_a_cut_anywhere(tmp_path: Path) -> None:
    tally = power_cuts.cut_everywhere(tmp_path, 0.5, segments=2)
    assert tally.cuts > 20
    assert (tally.lost, tally.twice) == ([], [])


def test_a_log_that_is_not_synced_would_be_noticed(tmp_path: Path) -> None:
    """The trial can fail: without its syncs, a log loses ticks that were promised."""
    trial = power_cuts.record(tmp_path / "source", segments=1)
    trial.operations[:] = [
        Operation("nothing", one.path) if one.kind == "sync" and one.path.suffix == ".open" else one
        for one in trial.operations
    ]
    tally, dice = power_cuts.PowerTally(), random.Random(1)
    length = trial.safe[power_cuts.SYNC_TICKS]
    for number in range(12):
        power_cuts.judge(trial, length, dice, tmp_path / str(number), tally)
    assert tally.lost
    assert not tally.twice


def test_a_torn_record_and_zeros_behind_it_are_not_read(tmp_path: Path) -> None:
    trial = power_cuts.record(tmp_path / "source", segments=1)
    length = max(trial.safe.values())
    log = b"".join(
        one.data for one in trial.operations[:length] if one.kind == "write" and one.path.suffix == ".open"
    )
    for number, cut in enumerate((len(log) - 1, len(log) - 30)):
        folder = DataFolder(tmp_path / str(number))
        folder.wal.mkdir(parents=True)
        (folder.wal / "run1-000001.open").write_bytes(log[:cut] + bytes(4096))
        power_cuts.recover(folder)
        times = archived_times(folder)
        assert times == list(range(len(times)))
        assert power_cuts.TICKS - 2 <= len(times) < power_cuts.TICKS
