"""A process that runs its program anew keeps what it was told to keep, and no signal is lost."""

import json
import os
import subprocess
import sys

import pytest

from nodescope.commands.shared.exec_anew import KEPT, take_kept

FIRST = """
import os, signal, socket, sys
from nodescope.commands.shared.exec_anew import exec_anew, hold_signals
listener = socket.create_server(("127.0.0.1", 0))
leaked = os.open(os.devnull, os.O_RDONLY)
os.set_inheritable(leaked, True)
hold_signals()
os.kill(os.getpid(), signal.SIGTERM)
exec_anew([sys.executable, "-c", os.environ["SECOND"]], {"listener": listener.fileno(), "leaked": leaked},
          [listener.fileno()])
"""
SECOND = """
import os, signal, sys
from nodescope.commands.shared.exec_anew import hear_signals, take_kept
from nodescope.serve.server import adopt_socket
kept = take_kept()
heard = []
signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
hear_signals()
listener = adopt_socket(kept["listener"])
is_open = os.path.exists(f"/dev/fd/{kept['leaked']}")
print(kept["pid"] == os.getpid(), heard == [signal.SIGTERM], listener.getsockname()[0], is_open,
      os.get_inheritable(listener.fileno()), "NODESCOPE_KEPT" in os.environ)
"""


def test_sockets_and_signals_reach_the_next_program_and_nothing_else() -> None:
    """Descriptors that a library leaves open for children would pile up with every rest."""
    said = subprocess.run(
        [sys.executable, "-c", FIRST],
        env={**os.environ, "SECOND": SECOND},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout.split() == ["True", "True", "127.0.0.1", "False", "False", "False"]


@pytest.mark.parametrize(
    "text", ["", "no JSON", "[1]", "7", json.dumps({"pid": 1, "page": 3}), json.dumps({"page": 3})]
)
def test_what_another_process_left_is_not_taken(text: str) -> None:
    """The environment may come from a parent that rests itself."""
    environment = {KEPT: text}
    assert take_kept(environment) == {}
    assert KEPT not in environment
