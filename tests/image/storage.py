"""buildah and podman with the store that tests/image/build keeps its images in."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = '. tests/image/store && exec "$0" "${store[@]}" "$@"'


def run(program: str, *words: str) -> "subprocess.CompletedProcess[str]":
    command = ["bash", "-c", SCRIPT, program, *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
