"""
`make test` as a new user on a bare machine: an ordinary user without compiler, Go, Node, browser or root.

    python -m tests.bare.whole [--suite trixie] [--output FILE]

It must end with 0, and its last line counts the skipped tests by what is missing. Some forty minutes.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from tests.bare.machine import HOME, BareMachine
from tests.bare.trial import check_bare, give_sources

# Tests talk to servers of their own; a proxy is for what comes from elsewhere.
DIRECT = "env -u HTTPS_PROXY -u https_proxy -u HTTP_PROXY -u http_proxy"
COMMAND = f"git clone -q /given/source.git {HOME}/nodescope && cd {HOME}/nodescope && {DIRECT} make test"


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description="make test on a bare machine")
    parser.add_argument("--suite", default="bookworm")
    parser.add_argument("--output", type=Path, help="a file for all that is printed")
    options = parser.parse_args(words)
    with BareMachine(options.suite) as machine:
        check_bare(machine)
        give_sources(machine)
        output = options.output or machine.work / "output"
        with output.open("wb") as sink:
            code = wait(machine, machine.start(COMMAND, sink))
        lines = output.read_text(errors="replace").splitlines()
    print("\n".join(lines[-20:]))
    return code


def wait(machine: BareMachine, process: "subprocess.Popen[bytes]") -> int:
    try:
        return process.wait()
    finally:
        machine.end(process)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
