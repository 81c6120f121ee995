"""
Ports that a command is about to listen on: one clear line while nothing is started or installed yet.

    python -m nodescope.commands.shared.ports --port 8060      what `make run` looks at first

Standard library only: `make run` asks before it has installed anything.
"""

import argparse
import errno
import os
import socket
import sys
from collections.abc import Sequence

from nodescope.base.errors import SettingsRejected

LOCAL = "127.0.0.1"
VIEWER_PORT = 8050
AGENT_PORT = 9100
# A port above the usual one that nobody uses; more neighbours than this are no coincidence.
NEXT_PORTS = 50
# The flag of `nodescope up` for each port; the viewer has the plain one.
FLAGS = {"viewer": "--port", "agent": "--agent-port"}


def claim(host: str, port: int, flag: str = "--port") -> str:
    """HOST:PORT, once it is known to be free; port 0 becomes one that is."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
            # A port that another program has bound, and does not listen on yet, is found by this.
            listener.listen()
        except OSError as error:
            raise SettingsRejected(describe_failure(host, port, flag, error)) from error
        found = listener.getsockname()[1]
    return f"[{host}]:{found}" if ":" in host else f"{host}:{found}"


def describe_failure(host: str, port: int, flag: str, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"{host}:{port} is in use by another program; choose another with {flag}, or stop the other one"
        )
    reason = os.strerror(error.errno).lower() if error.errno else str(error)
    return f"cannot listen on {host}:{port}: {reason}"


def claim_next(host: str, port: int, flag: str, tries: int = NEXT_PORTS) -> str:
    """The port, or the next one that is free."""
    for candidate in range(port, port + tries):
        try:
            return claim(host, candidate, flag)
        except SettingsRejected as error:
            if not is_in_use(error):
                raise
    raise SettingsRejected(f"no port from {port} to {port + tries - 1} is free; choose one with {flag}")


def is_in_use(error: SettingsRejected) -> bool:
    return isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.EADDRINUSE


def add_ports(parser: argparse.ArgumentParser) -> None:
    """The two ports of `up`; None where the command may choose."""
    parser.add_argument(
        FLAGS["viewer"],
        dest="viewer_port",
        type=int,
        metavar="N",
        help=f"the viewer's port; {VIEWER_PORT} or the next that is free, unless given",
    )
    parser.add_argument(
        FLAGS["agent"],
        dest="agent_port",
        type=int,
        metavar="N",
        help=f"the agent's port; {AGENT_PORT} or the next that is free, unless given",
    )


def main(words: Sequence[str]) -> int:
    """Exit code 2 and one line where a port that was asked for is taken."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    add_ports(parser)
    parser.add_argument("--host", default=LOCAL)
    options, _ = parser.parse_known_args(words)
    asked = (
        (options.host, options.viewer_port, FLAGS["viewer"]),
        (LOCAL, options.agent_port, FLAGS["agent"]),
    )
    try:
        for host, port, flag in asked:
            if port is not None:
                claim(host, port, flag)
    except SettingsRejected as error:
        sys.stderr.write(f"nodescope up: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
