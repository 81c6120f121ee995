"""
Docker's words on a machine without Docker: podman and podman-compose behind the name `docker`.

    with TemporaryDirectory() as folder:
        prepare(Path(folder))
        subprocess.run(["bash", "-c", "docker run ..."], env=make_environment(Path(folder)))

Images are those of tests/image/build. No registry is asked: `docker build` takes the base that
debootstrap made. Containers that publish ports need a network whose links and rules end with it:
run all of it behind APART.
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
# A network and mounts of its own; whatever podman adds to them is gone with the process.
APART = ("unshare", "--net", "--mount")
PACKAGES = {"podman": "podman", "runc": "runc", "netavark": "netavark aardvark-dns iptables"}
LENT = ("/etc/ssl/certs", "/usr/share/ca-certificates", "/usr/local/share/ca-certificates", "/etc/pip.conf")
# What podman may do here: limits no higher than this process's own.
CONTAINERS = """[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
network_backend = "netavark"
network_config_dir = "{folder}/networks"
"""
STORAGE = """[storage]
driver = "{driver}"
graphroot = "{where}/{driver}"
runroot = "{where}/run-{driver}"
"""
DOCKER = """#!/bin/sh
case "$1" in
  compose) shift; PYTHONPATH={folder}/compose exec {folder}/compose/bin/podman-compose "$@" ;;
  build) shift; exec podman build --isolation chroot --network host --pull=never --format docker --timestamp 0 \\
    --layers --build-arg BASE=localhost/nodescope-base {lent} "$@" ;;
  *) exec podman "$@" ;;
esac
"""


def install_missing() -> None:
    places = f"{os.environ['PATH']}:/usr/sbin:/usr/lib/podman"
    for program, packages in PACKAGES.items():
        if not any(Path(place, program).exists() for place in places.split(":")):
            subprocess.run([str(ROOT / "tools/apt-install"), *packages.split()], check=True)


def prepare(folder: Path) -> None:
    """Programs and settings; all that podman writes beside images is in the folder."""
    uv = [str(ROOT / ".venv/bin/uv"), "pip", "install", "--quiet", "--python", sys.executable]
    subprocess.run([*uv, "--target", str(folder / "compose"), "podman-compose"], check=True)
    where, driver = read_store()
    (folder / "bin").mkdir()
    (folder / "containers.conf").write_text(CONTAINERS.format(folder=folder))
    (folder / "storage.conf").write_text(STORAGE.format(where=where, driver=driver))
    lent = " ".join(f"--volume {path}:{path}:ro" for path in LENT if Path(path).exists())
    docker = folder / "bin/docker"
    docker.write_text(DOCKER.format(folder=folder, lent=lent))
    docker.chmod(0o755)


def make_environment(folder: Path) -> dict[str, str]:
    """With `docker` first on its PATH."""
    return {
        **os.environ,
        "PATH": f"{folder}/bin:{os.environ['PATH']}:/usr/sbin",
        "CONTAINERS_CONF": str(folder / "containers.conf"),
        "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
    }


def read_store() -> tuple[str, str]:
    """Where tests/image/build keeps its images, and how."""
    told = subprocess.run(
        ["bash", "-c", '. tests/image/store && echo "$where" "$driver"'],
        cwd=ROOT,
        check=True,
        text=True,
        stdout=subprocess.PIPE,
    ).stdout
    where, driver = told.split()
    return where, driver
