"""
A process that gives its memory back by running its own program from the beginning (execve).

Python and its libraries return little of what they loaded. A program that is
executed again has all of it back: the process keeps its id, its parent and its
place among the children of `up`, systemd or a container, and with them the
descriptors named here: listening sockets, in whose queue connections wait
meanwhile, and locks, which nobody else can take in between.
"""

import json
import os
import signal
import sys
from collections.abc import Collection, Mapping, MutableMapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

# What the program before this one hands on, as JSON; no setting.
KEPT = "NODESCOPE_KEPT"
DESCRIPTORS = Path("/dev/fd")
STANDARD = (0, 1, 2)
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def take_kept(environment: MutableMapping[str, str] = os.environ) -> dict[str, Any]:
    """What this process's earlier program handed on; empty in one that was just started."""
    try:
        kept = json.loads(environment.pop(KEPT, "{}"))
    except ValueError:
        return {}
    # A child that was given our environment is another process.
    return kept if isinstance(kept, dict) and kept.get("pid") == os.getpid() else {}


def hold_signals() -> None:
    """What comes from now on waits for the next program: a signal during execve would be lost with its handler."""
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)


def hear_signals() -> None:
    """Once the handlers are there, if there are any."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)


def find_own_words() -> list[str]:
    """The command line of this process, to be executed again."""
    return [sys.executable, *sys.orig_argv[1:]]


def exec_anew(words: Sequence[str], kept: Mapping[str, Any], descriptors: Collection[int]) -> NoReturn:
    """Runs the words in this process; of its descriptors, these and the standard ones stay open."""
    for name in os.listdir(DESCRIPTORS):
        # Some libraries open files without O_CLOEXEC: each rest would leave them open.
        with suppress(OSError):
            os.set_inheritable(int(name), int(name) in (*STANDARD, *descriptors))
    os.environ[KEPT] = json.dumps({"pid": os.getpid(), **kept})
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(words[0], list(words))  # noqa: S606 - our own program
