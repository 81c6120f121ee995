"""
The fault suite in one command: every trial, one after the other, and the table of what it found.

    python -m tests.torture [--scale SHARE] [TRIAL ...]

Scale 1 is the whole of it: about an hour on two cores. It needs root, gcc, and a machine that does nothing
else: a tick that is missed because others took the CPU is counted as missed. Each row is printed when it is
known, and all of them as one table in the end. Exit code 1 when a figure is not met.
"""

import argparse
import sys
import time
from collections.abc import Callable

from tests.torture import (
    agent_day,
    archive_day,
    bit_flips,
    cgroup_fuzzer,
    clock_steps,
    connections,
    fault_grid,
    kills,
    many_containers,
    pauses,
    power_cuts,
    short_lives,
)
from tests.torture.result import TortureRow, render_table

TRIALS: dict[str, Callable[[float], list[TortureRow]]] = {
    "bit_flips": bit_flips.run,
    "fault_grid": fault_grid.run,
    "kills": kills.run,
    "power_cuts": power_cuts.run,
    "clock_steps": clock_steps.run,
    "pauses": pauses.run,
    "short_lives": short_lives.run,
    "connections": connections.run,
    "cgroup_fuzzer": cgroup_fuzzer.run,
    "many_containers": many_containers.run,
    "agent_day": agent_day.run,
    "archive_day": archive_day.run,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description="The fault suite.")
    parser.add_argument(
        "trials", nargs="*", metavar="TRIAL", help=f"of {', '.join(TRIALS)}; all unless given"
    )
    parser.add_argument("--scale", type=float, default=1.0, help="share of the whole; 1 unless given")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.trials if name not in TRIALS]
    if unknown:
        parser.error(f"no trial {unknown[0]!r}; there are: {', '.join(TRIALS)}")
    rows: list[TortureRow] = []
    for number, name in enumerate(arguments.trials or TRIALS, 1):
        rows += run_trial(name, number, len(arguments.trials or TRIALS), arguments.scale)
    failed = [row for row in rows if not row.met]
    print(f"\n{render_table(rows)}\n\n{len(rows) - len(failed)} of {len(rows)} figures met")
    return 1 if failed else 0


def run_trial(name: str, number: int, count: int, scale: float) -> list[TortureRow]:
    print(f"{number} of {count}: {name}, scale {scale:g}", file=sys.stderr, flush=True)
    start = time.monotonic()
    rows = TRIALS[name](scale)
    for row in rows:
        print(row.render(), flush=True)
    print(f"{name} took {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    return rows


if __name__ == "__main__":
    sys.exit(main())
