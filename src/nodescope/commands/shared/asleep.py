"""
Sleeps until there is work, then becomes the program that it is given: some 5 MiB meanwhile.

    python -I -S asleep.py PACE LONGEST FOLDER SUFFIX PROGRAM WORD...

Run as a file, without site packages, and importing nearly nothing: this is all that
is left of a consolidator between two passes. It looks every PACE seconds, and
wakes for a file of that suffix in the folder; for what needs no new file, such as
retention, after LONGEST seconds whatever there is.
"""

import os
import select
import signal
import sys

INTERRUPTED = 130
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def has_work(folder: str, suffix: str) -> bool:
    """Also where the folder cannot be read: the program has the words for it."""
    try:
        return any(name.endswith(suffix) for name in os.listdir(folder))
    except OSError:
        return True


def leave(*_: object) -> None:
    """Without a handler of its own the first process of a container would not hear a stop."""
    os._exit(0)


def count_pauses(pace_seconds: float, longest_seconds: float) -> int:
    return max(1, round(longest_seconds / pace_seconds))


def main(words: list[str]) -> int:
    pace, longest, folder, suffix, *program = words
    signal.signal(signal.SIGTERM, leave)
    # What came meanwhile was held back by the program before this one, and by this one for the next.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    try:
        for _ in range(count_pauses(float(pace), float(longest))):
            select.select([], [], [], float(pace))
            if has_work(folder, suffix):
                break
    except KeyboardInterrupt:
        return INTERRUPTED
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    return os.execv(program[0], program)  # noqa: S606 - our own program


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
