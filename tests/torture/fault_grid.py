"""
Every file operation of agent, converter, consolidator and copier x every fault: python -m tests.torture.fault_grid [SCALE].

Scale 1 is every cell, some ten thousand; a smaller one is that share of them.
What a cell does is told in faults/grid.py; this starts as many walkers as there
are cores, with the shim preloaded, and adds up what they found.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.torture.faults.shim import build_shim, find_missing
from tests.torture.result import TortureRow

# Fast, and it can be filled without harm: cells are some hundred KiB.
MEMORY = Path("/dev/shm")  # noqa: S108
WANTED = "0"


@dataclass
class GridTally:
    """What all walkers found."""

    cells: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    unmet: int = 0
    found: dict[str, list[str]] = field(default_factory=lambda: {"lost": [], "doubled": [], "stuck": []})

    def add(self, said: dict[str, object]) -> None:
        self.cells.update(said["cells"])  # type: ignore[call-overload]
        # Each walker lists the same operations.
        self.calls = Counter(said["calls"])  # type: ignore[call-overload]
        self.unmet += int(str(said["unmet"]))
        for name, lines in self.found.items():
            lines.extend(said[name])  # type: ignore[arg-type]


def start_walker(shim: Path, place: str, share: float, number: int, count: int) -> subprocess.Popen[bytes]:
    words = ["--share", str(share), "--part", str(number), "--parts", str(count)]
    environment = {**os.environ, "LD_PRELOAD": str(shim), "TMPDIR": place}
    command = [sys.executable, "-m", "tests.torture.faults.grid", *words]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)


def walk(share: float, walkers: int) -> GridTally:
    tally = GridTally()
    place = str(MEMORY) if os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="nodescope-grid-", dir=place) as text:
        shim = build_shim(Path(text))
        started = [start_walker(shim, text, share, number, walkers) for number in range(walkers)]
        for one in started:
            said, _ = one.communicate()
            if one.returncode:
                raise RuntimeError(f"a walker ended with code {one.returncode}")
            tally.add(json.loads(said))
    return tally


def run(scale: float = 1.0, walkers: int = os.cpu_count() or 1) -> list[TortureRow]:
    missing = find_missing()
    if missing:
        return [TortureRow("fault grid", "rows lost", "not run", WANTED, met=False, remark=missing)]
    return render(walk(scale, walkers))


def render(tally: GridTally) -> list[TortureRow]:
    cells = ", ".join(f"{number} {name}" for name, number in tally.cells.items())
    calls = ", ".join(f"{number} {kind}" for kind, number in tally.calls.most_common())
    test = f"fault grid, {tally.cells.total()} cells"
    return [
        judge(test, "cells with rows lost", tally.found["lost"], f"cells: {cells}"),
        judge(test, "cells with rows twice, or wrong", tally.found["doubled"], f"operations: {calls}"),
        judge(test, "cells that hung, stood still or left something over", tally.found["stuck"]),
        TortureRow(test, "faults whose operation did not come", str(tally.unmet), WANTED, not tally.unmet),
    ]


def judge(test: str, figure: str, found: list[str], remark: str = "") -> TortureRow:
    remarks = "; ".join(filter(None, [*found[:5], remark]))
    return TortureRow(test, figure, str(len(found)), WANTED, not found, remarks)


if __name__ == "__main__":
    for one in run(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0):
        print(one.render())
