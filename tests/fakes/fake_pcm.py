"""
A pcm for tests and demos: replays any CSV the way pcm writes it.

    pcm --replay FILE [--stamp now] [--speed 10] [--loop] [--fault KIND@ROW[:VALUE]]... 1 -csv -f

Lines go out newline first: header, then a line feed and a row, so the newest
row is never terminated. Without -f output is held back in blocks of 4 KiB, as
the C library does on a pipe. SIGTERM ends it with status 0; SIGCONT makes it
write `DEBUG: caught signal to continue execution.` into the CSV.

    --replay FILE     what to write; without it two sockets and four cores are made up
    --stamp now       rows carry the present time instead of the file's
    --speed N         N rows per interval instead of one; 0 means as fast as the reader takes them
    --rows N          end after N rows, with status 0
    --loop            start over at the end of the file instead of ending
    --pretend N       the version it claims to be, such as 202302
    --say TEXT        printed on stderr first
    --fault stall@5:3     before row 5, wait 3 seconds
            torn@5        half of row 5, then the next
            double@5      row 5 twice
            debug@5       a DEBUG line behind row 5
            blank@5       an empty line behind row 5
            exit@5:1      end before row 5 with status 1
            kill@5:9      signal 9 to itself before row 5
"""

import argparse
import itertools
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

BLOCK_BYTES = 4096
DEBUG = b"DEBUG: caught signal to continue execution."
BASIC = ("IPC", "AFREQ", "L3MISS", "L2MISS", "L3HIT")
COUNTS = ("INST", "ACYC", "TIME(ticks)")
STATES = ("C0res%", "C1res%", "C3res%", "C6res%", "C7res%")
MADE_UP = {
    "IPC": "1.50",
    "AFREQ": "1.25",
    "L3MISS": "0.40",
    "L2MISS": "2.00",
    "L3HIT": "0.80",
    "INST": "3000.00",
    "ACYC": "2000.00",
    "TIME(ticks)": "2400.00",
    "READ": "1.25",
    "WRITE": "0.75",
    "TEMP": "45",
    "L3OCC": "  2048",
    "C0res%": "25.00",
    "C1res%": "70.00",
    "C3res%": "0.00",
    "C6res%": "4.00",
    "C7res%": "1.00",
    "Proc Energy (Joules)": "40.00",
    "DRAM Energy (Joules)": "8.00",
    "SKT0": "20.00",
    "SKT1": "20.00",
}


def list_columns() -> list[tuple[str, str]]:
    """Group and metric of every column: the system, two sockets, eight cores."""
    energies = ("Proc Energy (Joules)", "DRAM Energy (Joules)")
    pairs = [("System", metric) for metric in ("Date", "Time", *BASIC, "READ", "WRITE", *COUNTS)]
    pairs += [("System Core C-States", state) for state in STATES]
    pairs += [("System", energy) for energy in energies]
    for socket in range(2):
        pairs += [(f"Socket {socket}", one) for one in (*BASIC, "L3OCC", "READ", "WRITE", "TEMP", *COUNTS)]
    for socket in range(2):
        pairs += [(f"SKT{socket} Core C-State", state) for state in STATES]
    pairs += [(energy, f"SKT{socket}") for energy in energies for socket in range(2)]
    for core in range(8):
        group = f"Core{core} (Socket {core // 4})"
        pairs += [(group, metric) for metric in (*BASIC, "L3OCC", *STATES, "TEMP", *COUNTS)]
    return pairs


def make_up_lines() -> tuple[list[bytes], list[bytes]]:
    """A header and one row of a machine with two sockets and eight cores."""
    pairs = list_columns()
    header = [",".join(names).encode() + b"," for names in zip(*pairs)]
    cells = [MADE_UP[metric] for _, metric in pairs[2:]]
    return header, [("2026-01-01,00:00:00.000," + ",".join(cells) + ",").encode()]


def read_lines(path: Path) -> tuple[list[bytes], list[bytes]]:
    """Header lines and the rest; the header ends with the line that names Date, or is the first."""
    lines = path.read_bytes().split(b"\n")
    if lines and not lines[-1]:
        lines.pop()
    end = next((n for n, line in enumerate(lines[:10]) if line.startswith((b"Date,", b"Date;"))), 0) + 1
    return lines[:end], lines[end:]


def stamp(row: bytes) -> bytes:
    separator = b";" if row.count(b";") > row.count(b",") else b","
    rest = row.split(separator, 2)
    if len(rest) < 3 or not rest[0][:4].isdigit():
        return row
    now = datetime.now(UTC).astimezone()
    when = now.strftime("%Y-%m-%d"), f"{now:%H:%M:%S}.{now.microsecond // 1000:03d}"
    return separator.join([when[0].encode(), when[1].encode(), rest[2]])


class Output:
    """Bytes to stdout, flushed at every row or in blocks, as the C library would."""

    def __init__(self, *, flushes: bool) -> None:
        self._flushes = flushes
        self._held = b""

    def write(self, data: bytes) -> None:
        self._held += data
        whole = len(self._held) if self._flushes else len(self._held) // BLOCK_BYTES * BLOCK_BYTES
        self._put(self._held[:whole])
        self._held = self._held[whole:]

    def end(self) -> None:
        self._put(self._held)
        self._held = b""

    @staticmethod
    def _put(data: bytes) -> None:
        while data:
            data = data[os.write(1, data) :]


def parse_fault(text: str) -> tuple[str, int, float]:
    kind, _, where = text.partition("@")
    row, _, value = where.partition(":")
    return kind, int(row), float(value or 0)


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="pcm", allow_abbrev=False)
    parser.add_argument("--replay", type=Path)
    parser.add_argument("--stamp", choices=("now", "keep"), default="keep")
    parser.add_argument("--speed", type=float, default=1.0)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--loop", action="store_true")
    parser.add_argument("--pretend", default="202302")
    parser.add_argument("--say", default="")
    parser.add_argument("--fault", action="append", default=[], type=parse_fault)
    parser.add_argument("--version", action="store_true")
    known, rest = parser.parse_known_args(arguments)
    known.delay, known.flushes = 1.0, False
    for word in rest:
        if word == "-f" and int(known.pretend) >= 202211:
            known.flushes = True
        elif word.replace(".", "", 1).isdigit():
            known.delay = float(word)
        elif word not in ("-csv", "-nc", "-ns", "-nsys"):
            sys.stdout.write("\n Usage: \n pcm --help | [delay] [options]\n")
            sys.stderr.write('WARNING: unknown command-line option: "-". Ignoring it.\n')
            raise SystemExit(1)
    return known


def list_rows(options: argparse.Namespace, rows: list[bytes]) -> Iterator[bytes]:
    endless = itertools.chain.from_iterable(itertools.repeat(rows)) if options.loop else iter(rows)
    return itertools.islice(endless, options.rows) if options.rows else endless


def misbehave(kind: str, value: float, row: bytes, output: Output) -> bytes:
    """What goes wrong at a row; what is left of the row to write."""
    if kind == "stall":
        time.sleep(value)
    elif kind == "exit":
        output.end()
        raise SystemExit(int(value))
    elif kind == "kill":
        os.kill(os.getpid(), int(value))
    behind: dict[str, Callable[[], bytes]] = {
        "torn": lambda: row[: len(row) // 2],
        "double": lambda: row + b"\n" + row,
        "debug": lambda: row + b"\n" + DEBUG,
        "blank": lambda: row + b"\n",
    }
    return behind.get(kind, lambda: row)()


def main(arguments: list[str]) -> int:
    options = parse_arguments(arguments)
    if options.version:
        sys.stdout.write(f"version:  ({options.pretend}-1)\n")
        return 0
    output = Output(flushes=options.flushes)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGINT, lambda *_: sys.exit(0))
    signal.signal(signal.SIGCONT, lambda *_: output.write(DEBUG + b"\n"))
    sys.stderr.write(f"\n Intel(r) Performance Counter Monitor  ({options.pretend}-1)\n{options.say}\n")
    sys.stderr.flush()
    header, rows = read_lines(options.replay) if options.replay else make_up_lines()
    output.write(b"\n".join(header))
    started = time.monotonic()
    for number, line in enumerate(list_rows(options, rows), 1):
        if options.speed > 0:
            time.sleep(max(0.0, started + number * options.delay / options.speed - time.monotonic()))
        row = stamp(line) if options.stamp == "now" else line
        for kind, at, value in options.fault:
            if at == number:
                row = misbehave(kind, value, row, output)
                # pcm sleeps between rows and does not catch up after a stall.
                started += value if kind == "stall" else 0.0
        output.write(b"\n" + row)
    output.end()
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
