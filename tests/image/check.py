"""
The image's container on this machine, as the chart runs it: read-only root, no privilege,
the named capabilities; and what each withheld permission makes absent.

    tests/image/run          builds the image first

Real cgroups with a process of another user stand for a pod. podman and runc are
installed when they are missing. No network of its own: the page is asked for
inside, with the image's curl.
"""

import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory

from tests.cgroups import Cgroups, container_id
from tests.image import storage
from tests.image.engine import install_missing

from nodescope.base.errors import NodescopeError

IMAGE = "localhost/nodescope"
NAME = "nodescope-image-check"
# What each permission buys, as docs/security.md has it.
PSS = {f"container_memory_pss_{part}bytes" for part in ("", "anon_", "file_", "shmem_")}
NETWORK = {
    f"container_network_{way}_{what}_total"
    for way in ("receive", "transmit")
    for what in ("bytes", "packets", "errors", "packets_dropped")
}
# Counters of the pod's own TCP need the host's process numbers, and no capability.
POD_TCP = "container_network_tcp_", "container_network_udp_"
READY_SECONDS = 90
# Every source has had its turn by then.
SLOW_SECONDS = 35


def podman(*words: str, check: bool = True) -> str:
    done = storage.run("podman", "--runtime", "runc", "--cgroup-manager", "cgroupfs", *words)
    if check and done.returncode:
        raise NodescopeError(f"podman {words[0]}: {done.stderr.strip()[-400:]}")
    return done.stdout


@contextmanager
def running(data: str, *more: str) -> Iterator[None]:
    podman("rm", "-f", NAME, check=False)
    limits = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1000:1000"]
    mounts = ["-v", "/proc:/host/proc:ro", "-v", "/sys:/host/sys:ro", "-v", f"{data}:/data"]
    guard = ["--network=none", "--read-only", "--cap-drop=all", "--security-opt=no-new-privileges"]
    agent = ["agent", "--root=/host", "--data=/data", "--listen=0.0.0.0:9100", "--no-kubernetes"]
    podman(
        *("run", "-d", "--pull=never", "--name", NAME, "--user=0", *limits, *mounts, *guard, *more),
        *(IMAGE, *agent),
    )
    try:
        yield
    finally:
        podman("rm", "-f", NAME, check=False)


def fetch(path: str) -> str:
    return podman("exec", NAME, "curl", "-sS", f"http://127.0.0.1:9100{path}", check=False)


def wait_for_names(wanted: set[str], container: str) -> set[str]:
    """
    The metric names on the page, once the wanted ones are there or time is up.

    Of containers, those of the given one: the agent may look into its own in any case.
    """
    names: set[str] = set()
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        lines = fetch("/metrics").splitlines()
        mine = [line for line in lines if not line.startswith("container_memory_pss") or container in line]
        names = {found[0] for line in mine if (found := re.match(r"\w+", line))}
        if wanted <= names:
            return names
        time.sleep(1)
    return names


def verify(what: str, *, good: bool, told: object = "") -> bool:
    print(f"{'ok    ' if good else 'FAILED'} {what}" + (f": {told}" if told and not good else ""))
    return good


def check(data: str, container: str) -> bool:
    base = {"node_cpu_seconds_total", "container_memory_usage_bytes", "container_processes"}
    results = []
    with running(data, "--pid=host", "--cap-add=SYS_PTRACE"):
        full = wait_for_names(base | PSS | NETWORK, container)
        results.append(verify("serves node and containers", good=base <= full, told=sorted(base - full)))
        results.append(verify("serves proportional memory", good=full >= PSS, told=sorted(PSS - full)))
        results.append(verify("serves pods' network", good=full >= NETWORK, told=sorted(NETWORK - full)))
        inside = podman(
            "inspect", NAME, "--format", "{{.HostConfig.Privileged}} {{.HostConfig.ReadonlyRootfs}}"
        )
        results.append(
            verify("not privileged, root read-only", good=inside.split() == ["false", "true"], told=inside)
        )
        results.append(
            verify("probes answer", good='"live": true' in fetch("/healthz").replace('":t', '": t'))
        )
        results += check_page()
        results.append(check_health())
    with running(data, "--pid=host"):
        results.append(verify_lost("SYS_PTRACE", full, PSS | NETWORK, container))
        results.append(verify("/status says why", good="CAP_SYS_PTRACE" in fetch("/status")))
    with running(data, "--cap-add=SYS_PTRACE"):
        tcp = {name for name in full if name.startswith(POD_TCP)}
        results.append(verify_lost("hostPID", full, PSS | NETWORK | tcp, container))
    return all(results)


def check_health() -> bool:
    """
    The command's own exit code; an image without a check fails here as well.

    As engines do, it is asked a few times: on a busy machine to start it alone may take its 5 s.
    """
    deadline = time.monotonic() + READY_SECONDS
    while (health := storage.run("podman", "healthcheck", "run", NAME)).returncode:
        if time.monotonic() > deadline:
            break
        time.sleep(1)
    told = f"{health.stdout}{health.stderr}"
    return verify("HEALTHCHECK passes", good=health.returncode == 0, told=told)


def check_page() -> list[bool]:
    """A viewer beside the agent: the page with all its files, and what its buttons ask for."""
    viewer = ("nodescope", "viewer", "/data", "--agent", "http://127.0.0.1:9100", "--probe-listen=")
    podman("exec", "-d", NAME, *viewer)
    deadline = time.monotonic() + READY_SECONDS
    while "ok" not in ask_viewer("/api/health") and time.monotonic() < deadline:
        time.sleep(1)
    page = ask_viewer("/")
    files = re.findall(r'(?:src|href)="\./?([^"]+)"', page)
    sizes = {name: len(ask_viewer(f"/{name}")) for name in files}
    results = [
        verify("serves the page", good='<div id="app"' in page or "<script" in page, told=page[:200]),
        verify(
            "with all its files",
            good=len(files) > 1 and all(size > 100 for size in sizes.values()),
            told=sizes,
        ),
    ]
    for kind in ("html", "csv", "parquet"):
        # What was sent is not text for each of them.
        told = ask_viewer(
            f"/api/export?format={kind}&metric=cpu.load_1m",
            "-o",
            "/dev/null",
            "-w",
            "%{http_code} %{size_download}",
        )
        code, _, size = told.partition(" ")
        results.append(verify(f"exports {kind}", good=code == "200" and int(size) > 1000, told=told))
    return results


def ask_viewer(path: str, *more: str) -> str:
    return podman("exec", NAME, "curl", "-sS", *more, f"http://127.0.0.1:8050{path}", check=False)


def verify_lost(permission: str, full: set[str], documented: set[str], container: str) -> bool:
    """Exactly the documented names are gone, once the slow sources have had their turn."""
    wait_for_names({"node_cpu_seconds_total", "container_memory_usage_bytes"}, container)
    time.sleep(SLOW_SECONDS)
    lost = full - wait_for_names({"container_memory_usage_bytes"}, container)
    lost -= own(lost)
    told = {"too much": sorted(lost - documented), "too little": sorted(documented - lost)}
    return verify(
        f"without {permission} exactly the documented metrics are absent", good=lost == documented, told=told
    )


def own(names: set[str]) -> set[str]:
    """Names that come and go by themselves: counters of things that did not happen in this run."""
    return {name for name in names if name.startswith(("nodescope_", "api_", "pcm_"))}


def main() -> int:
    install_missing()
    with Cgroups() as cgroups, TemporaryDirectory() as data:
        identifier = container_id()
        container = cgroups.container(identifier=identifier)
        # Another user's process: reading its smaps needs the capability. It has a network of its own: that
        # of a pod on the host's is not counted.
        network = "ip link add eth0 type veth peer name eth1"
        user = "exec setpriv --reuid=65534 --regid=65534 --clear-groups sleep 600"
        container.spawn(["unshare", "--net", "sh", "-c", f"{network} && {user}"])
        good = check(data, identifier)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
