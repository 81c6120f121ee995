"""The bench's C programs, built once per version of their source."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from tests.integration.peers.binaries import cache_folder


def compiled(name: str) -> Path:
    """The program made from bench/<name>.c by the machine's compiler."""
    source = Path(__file__).with_name(f"{name}.c")
    binary = cache_folder() / hashlib.sha256(source.read_bytes()).hexdigest()[:16] / name
    if not binary.exists():
        compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
        if compiler is None:
            raise FileNotFoundError(f"bench/{name}.c wants a C compiler and there is none: install gcc")
        binary.parent.mkdir(parents=True, exist_ok=True)
        # The name appears when the file is whole: two runs may build at once.
        partial = binary.with_suffix(f".{os.getpid()}")
        subprocess.run([compiler, "-O2", "-Wall", "-Wextra", "-o", str(partial), str(source)], check=True)
        partial.replace(binary)
    return binary
