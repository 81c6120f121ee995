"""Finding and running a vendor's own program: only where it is needed, never for long."""

import os
import shutil
import subprocess

from nodescope.base.errors import ParseError

FOLDERS = ("/opt/rocm/bin", "/usr/local/bin", "/usr/bin", "/usr/lib/wsl/lib")
ANSWER_SECONDS = 20.0
# Eight GPUs with every key are some hundred KB; more than this is somebody's mistake.
ANSWER_CHARACTERS = 4 * 2**20


def find_tool(name: str) -> str | None:
    return shutil.which(name) or next(
        (path for folder in FOLDERS if (path := shutil.which(name, path=folder))), None
    )


def run_tool(command: list[str]) -> tuple[str, str]:
    """What it printed on stdout and stderr; the exit code says nothing. ParseError when it does not end."""
    environment = {**os.environ, "LC_ALL": "C", "NO_COLOR": "1"}
    try:
        done = subprocess.run(  # noqa: S603 - the vendor's own tool, found in PATH
            command,
            capture_output=True,
            check=False,
            timeout=ANSWER_SECONDS,
            env=environment,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired as error:
        raise ParseError(f"{command[0]}: no answer within {ANSWER_SECONDS:.0f} s") from error
    except OSError as error:
        raise ParseError(f"{command[0]}: {error.strerror}") from error
    out, err = (part.decode("utf-8", "replace")[:ANSWER_CHARACTERS] for part in (done.stdout, done.stderr))
    return out, err
