"""nodescope service: nodescope as a service of systemd on a plain server."""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from nodescope.base.errors import NodescopeError, SettingsRejected

EXAMPLE = """example:
  sudo nodescope service install                        agent, viewer and consolidator, now and after every boot
  sudo nodescope service install --port 8060            flags of `nodescope up` are passed on
  nodescope service status
  sudo nodescope service remove                         the archive in /var/lib/nodescope stays
"""
UNIT = Path(__file__).with_name("nodescope.service")
NAME = "nodescope.service"
PLACE = Path("etc/systemd/system") / NAME
ARCHIVE = "/var/lib/nodescope"
# Only where systemd is the first process.
RUNNING = Path("run/systemd/system")
START = "ExecStart=/usr/local/bin/nodescope up"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    parser.add_argument("action", choices=("install", "remove", "status"), help="what to do")
    parser.add_argument(
        "--prefix",
        type=Path,
        default=Path("/"),
        metavar="DIR",
        help="another root than /, such as that of an image being built; nothing is started then",
    )
    parser.add_argument("flags", nargs=argparse.REMAINDER, help="of `nodescope up`, for install")


def run(options: argparse.Namespace) -> int:
    if options.flags and options.action != "install":
        raise SettingsRejected(f"{options.action} takes no flags: {shlex.join(options.flags)}")
    actions = {"install": install, "remove": remove, "status": tell_status}
    return actions[options.action](options.prefix, options.flags)


def install(prefix: Path, flags: Sequence[str]) -> int:
    need_root(prefix, "install")
    place = prefix / PLACE
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(render_unit(UNIT.read_text(), find_program(), flags))
    sys.stdout.write(f"wrote {place}\n")
    if not is_running(prefix):
        sys.stdout.write(
            "systemd does not run here; it is started at the next boot after: systemctl enable nodescope\n"
        )
        return 0
    call_systemd("daemon-reload")
    call_systemd("enable", "--now", NAME)
    sys.stdout.write(
        "started; `nodescope service status` says how it is, `journalctl -u nodescope` what it printed\n"
    )
    return 0


def remove(prefix: Path, flags: Sequence[str]) -> int:
    del flags
    need_root(prefix, "remove")
    place = prefix / PLACE
    if not place.exists():
        raise NodescopeError(f"{place} is not there: nothing to remove")
    if is_running(prefix):
        call_systemd("disable", "--now", NAME)
    place.unlink()
    if is_running(prefix):
        call_systemd("daemon-reload")
    sys.stdout.write(f"removed {place}; the archive stays in {ARCHIVE}, and is yours to remove\n")
    return 0


def tell_status(prefix: Path, flags: Sequence[str]) -> int:
    """Exit code 0 while it runs, 1 otherwise."""
    del flags
    place = prefix / PLACE
    if not place.exists():
        raise NodescopeError(f"not installed: {place} is not there; sudo nodescope service install")
    if not is_running(prefix):
        raise NodescopeError(f"{place} is there, and systemd does not run here")
    shown = subprocess.run(  # noqa: S603 - our own words
        ["systemctl", "show", NAME, "--property=ActiveState,SubState,UnitFileState,StatusText,NRestarts"],  # noqa: S607 - the system's own
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    facts = dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)
    sys.stdout.write(
        f"{facts.get('ActiveState', 'unknown')} ({facts.get('SubState', '')}), "
        f"{facts.get('UnitFileState', '')}, restarted {facts.get('NRestarts', '0')} times"
        f"{'; ' + facts['StatusText'] if facts.get('StatusText') else ''}\n"
    )
    return 0 if facts.get("ActiveState") == "active" else 1


def find_program() -> str:
    """This very nodescope: as it was called, or beside the interpreter that runs it."""
    beside = Path(sys.executable).with_name("nodescope")
    return str(beside if beside.exists() else shutil.which("nodescope") or f"{sys.executable} -m nodescope")


def render_unit(text: str, program: str, flags: Sequence[str]) -> str:
    """The shipped unit with this program and these flags of `up`."""
    first, rest = text.split(START)
    begun, newline, end = rest.partition("\n")
    words = shlex.join(flags)
    unit = f"{first}ExecStart={program} up{begun}{' ' + words if words else ''}{newline}{end}"
    if any(word == "--host" or word.startswith("--host=") for word in flags):
        unit = "".join(line for line in unit.splitlines(keepends=True) if not line.startswith("IPAddress"))
    return unit


def is_running(prefix: Path) -> bool:
    return prefix == Path("/") and (prefix / RUNNING).is_dir()


def need_root(prefix: Path, action: str) -> None:
    if prefix == Path("/") and os.geteuid():
        raise NodescopeError(f"only root may {action} a service: sudo nodescope service {action}")


def call_systemd(*words: str) -> None:
    done = subprocess.run(["systemctl", *words], capture_output=True, text=True, check=False)  # noqa: S603, S607 - the system's own
    if done.returncode:
        raise NodescopeError(f"systemctl {' '.join(words)}: {done.stderr.strip() or 'failed'}")
