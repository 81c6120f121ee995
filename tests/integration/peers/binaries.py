"""
The peers we compare ourselves with, built once from pinned Go modules.

Each folder beside this file holds a go.mod and a go.sum; the program lands in
`${XDG_CACHE_HOME:-~/.cache}/nodescope-tools/<hash of its sources>/`, so a new
version is a new build and an old one is never taken for it.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Literal, get_args

Peer = Literal["node_exporter", "process_exporter", "cadvisor"]

HERE = Path(__file__).parent
# "." is a main of our own; the others are named by the module's tool line.
PACKAGES: dict[Peer, str] = {
    "node_exporter": "github.com/prometheus/node_exporter",
    "process_exporter": "github.com/ncabatoff/process-exporter/cmd/process-exporter",
    "cadvisor": ".",
}
PEERS: tuple[Peer, ...] = get_args(Peer)

# All three from nothing took 60 s on two cores; a slow network adds to that.
BUILD_SECONDS = 900


class PeerMissing(Exception):
    """The peer is neither built nor can it be built here."""


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "nodescope-tools"


def source_hash(folder: Path) -> str:
    digest = hashlib.sha256()
    for name in ("go.mod", "go.sum", "main.go"):
        if (folder / name).exists():
            digest.update((folder / name).read_bytes())
    return digest.hexdigest()[:16]


def peer_version(name: Peer) -> str:
    """The version that go.mod pins, for tables."""
    module = (
        "github.com/google/cadvisor/lib" if name == "cadvisor" else "/".join(PACKAGES[name].split("/")[:3])
    )
    for line in (HERE / name / "go.mod").read_text().splitlines():
        words = line.removeprefix("require ").split()
        if words[:1] == [module]:
            return words[1]
    raise PeerMissing(f"{name}/go.mod does not require {module}")


def peer_binary(name: Peer) -> Path:
    """The program of a peer; builds it when this version is not there yet."""
    binary = cache_folder() / source_hash(HERE / name) / name
    if not binary.exists():
        _build(name, binary)
    return binary


def _build(name: Peer, binary: Path) -> None:
    go = shutil.which("go")
    if go is None:
        raise PeerMissing(f"{name} is not built and there is no Go: install golang and run this again")
    print(
        f"building {name} {peer_version(name)} from its Go module (once, about a minute)",
        file=sys.stderr,
        flush=True,
    )
    binary.parent.mkdir(parents=True, exist_ok=True)
    # The name appears when the file is whole: two runs may build at once.
    partial = binary.with_suffix(f".{os.getpid()}")
    settings = {
        "CGO_ENABLED": "0",
        "GOTOOLCHAIN": "local",
        "GOFLAGS": "-mod=readonly -trimpath -buildvcs=false",
    }
    command = ["nice", go, "build", "-ldflags=-s -w", "-o", str(partial), PACKAGES[name]]
    done = subprocess.run(
        command,
        cwd=HERE / name,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise PeerMissing(f"{name} could not be built: {done.stderr.strip()[-800:]}")
    partial.replace(binary)
