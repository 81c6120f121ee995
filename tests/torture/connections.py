"""
Hostile connections against a real agent with TLS: python -m tests.torture.connections [SCALE [SECONDS]].

Scale 1 is ten thousand connections for ten minutes. They are silent, send their
hello or their request byte by byte, stop in the middle of the handshake, or ask
and do not read. Meanwhile probes are asked and a scraper scrapes, each from an
address of its own. Another one scrapes from an address that the attackers use, too:
it has no promise, and what became of it is told.
"""

import http.client
import json
import os
import resource
import shutil
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.integration.agents import NODESCOPE, clean_environment, free_port, stop, wait_for
from tests.support import NODES
from tests.torture.hostile import make_context
from tests.torture.result import TortureRow

NODE = "cgroup2-cgroupfs"
CONTAINERS = 200
CONNECTIONS = 10_000
SECONDS = 600.0
# New ones a second, once all are there.
PACE = 1000.0
# Before the crowd comes: the agent's memory settles.
CALM_SECONDS = 12.0
# After it: what is given back.
AFTER_SECONDS = 15.0
MEGABYTE = 2**20
SCRAPE_SECONDS = 1.0
PROBE_SECONDS = 3.0
# As the crowd asks them.
ASKED = ("/metrics", "/live?since=x-1", "/status")
SCRAPER = "127.0.9.1"
PROBER = "127.0.9.2"
# One of the attackers' addresses (hostile.py).
SHARED = "127.0.1.7"


@dataclass
class Measured:
    """What was seen from outside."""

    scrapes: list[float] = field(default_factory=list)
    shared: list[float] = field(default_factory=list)
    """From an address that attacks, too."""
    probes: list[float] = field(default_factory=list)
    """Seconds each; infinite where there was no good answer."""
    resident: list[int] = field(default_factory=list)


def ask(connection: http.client.HTTPConnection, path: str, errors: Counter[str]) -> float:
    """Seconds until a good answer was there, infinite without one; why, is counted."""
    began = time.monotonic()
    try:
        connection.request("GET", path, headers={"Host": "localhost"})
        answer = connection.getresponse()
        answer.read()
    except (OSError, http.client.HTTPException) as error:
        errors[f"{type(error).__name__} after {time.monotonic() - began:.1f} s"] += 1
        return float("inf")
    finally:
        connection.close()
    if answer.status != 200:
        errors[f"status {answer.status} after {time.monotonic() - began:.1f} s"] += 1
        return float("inf")
    return time.monotonic() - began


def make_key(folder: Path) -> tuple[str, str]:
    """A certificate for localhost, signed by itself."""
    names = ("-keyout", "key.pem", "-out", "cert.pem", "-days", "2", "-subj", "/CN=localhost")
    kind = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    subprocess.run(["openssl", "req", "-x509", *kind, *names], cwd=folder, check=True, capture_output=True)
    return str(folder / "cert.pem"), str(folder / "key.pem")


def make_node(folder: Path) -> Path:
    """A fixture node with one of its containers two hundred times."""
    root = Path(shutil.copytree(NODES / NODE / "t0", folder, symlinks=True))
    one = next(path for path in root.glob("sys/fs/cgroup/kubepods*/**/pod*/*") if len(path.name) == 64)
    for number in range(CONTAINERS):
        shutil.copytree(one, one.with_name(f"{number:064x}"))
    return root


@dataclass
class Target:
    """The agent under attack."""

    process: subprocess.Popen[bytes]
    port: int
    probe_port: int
    log: Path
    context: ssl.SSLContext
    errors: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """By the address that asked."""

    def scrape(self, path: str = "/metrics", source: str = SCRAPER) -> float:
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self.port, timeout=30, source_address=(source, 0), context=self.context
        )
        return ask(connection, path, self.errors[source])

    def probe(self, path: str) -> float:
        source = (PROBER, 0)
        connection = http.client.HTTPConnection(
            "127.0.0.1", self.probe_port, timeout=10, source_address=source
        )
        return ask(connection, path, self.errors[PROBER])

    def read_status(self) -> dict[str, dict[str, float]]:
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=30, context=self.context)
        connection.request("GET", "/status", headers={"Host": "localhost"})
        content: dict[str, dict[str, float]] = json.loads(connection.getresponse().read())
        connection.close()
        return content

    def resident_bytes(self) -> int:
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * resource.getpagesize()


@contextmanager
def running_target() -> Iterator[Target]:
    port, probe_port = free_port(), free_port()
    with tempfile.TemporaryDirectory(prefix="nodescope-torture-") as name:
        folder = Path(name)
        certificate, key = make_key(folder)
        listeners = ["--port", str(port), "--probe-listen", f"127.0.0.1:{probe_port}"]
        # Its own node: what else happens on this machine must not change the agent's memory.
        node = ["--root", str(make_node(folder / "node")), "--ring", "30s"]
        log = folder / "log"
        with log.open("wb") as sink:
            process = subprocess.Popen(
                [*NODESCOPE, "agent", *listeners, *node, "--tls-cert", certificate, "--tls-key", key],
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                env={"XDG_STATE_HOME": name, **clean_environment()},
            )
        target = Target(process, port, probe_port, log, make_context())
        try:
            wait_for(lambda: target.probe("/readyz") < 60, "an agent that is ready", 60)
            yield target
        finally:
            stop(process)


def keep_asking(target: Target, measured: Measured, ended: threading.Event) -> list[threading.Thread]:
    def repeat(act: Callable[[], None], pause_seconds: float) -> None:
        while not ended.wait(pause_seconds):
            act()

    def probe() -> None:
        measured.probes += [target.probe("/healthz"), target.probe("/readyz")]

    acts: list[tuple[Callable[[], None], float]] = [
        (probe, 1.0),
        (lambda: measured.scrapes.append(target.scrape()), 1.0),
        (lambda: measured.shared.append(target.scrape(source=SHARED)), 1.0),
        (lambda: measured.resident.append(target.resident_bytes()), 0.2),
    ]
    threads = [threading.Thread(target=repeat, args=act) for act in acts]
    for thread in threads:
        thread.start()
    return threads


def warm_up(target: Target) -> None:
    """A used agent: every answer that the crowd asks for was made before, several at a time."""

    def ask_all() -> None:
        for _ in range(5):
            for path in ASKED:
                target.scrape(path)

    threads = [threading.Thread(target=ask_all) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def render_times(seconds: list[float]) -> str:
    answered = sorted(one for one in seconds if one < float("inf"))
    if not answered:
        return f"0 of {len(seconds)} answered"
    middle, most = answered[len(answered) // 2], answered[-1]
    return f"{len(answered)} of {len(seconds)} answered, {middle:.3f} s in the middle, {most:.3f} s at most"


def attack(target: Target, count: int, seconds: float) -> dict[str, object]:
    words = [str(target.port), str(count), str(seconds), str(PACE), "tls"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.torture.hostile", *words],
        capture_output=True,
        text=True,
        check=True,
        timeout=seconds + 120,
        env=dict(os.environ),
    )
    found: dict[str, object] = json.loads(done.stdout)
    return found


def run(scale: float = 1.0, seconds: float | None = None) -> list[TortureRow]:
    """Scale 1: ten thousand connections for ten minutes; at least a hundred for ten seconds."""
    count, seconds = max(100, round(CONNECTIONS * scale)), seconds or max(10.0, SECONDS * scale)
    measured, calm, ended = Measured(), Measured(), threading.Event()
    with running_target() as target:
        calm_end = threading.Event()
        warm_up(target)
        threads = keep_asking(target, calm, calm_end)
        time.sleep(CALM_SECONDS)
        calm_end.set()
        for thread in threads:
            thread.join()
        before = target.read_status()
        threads = keep_asking(target, measured, ended)
        crowd = attack(target, count, seconds)
        ended.set()
        for thread in threads:
            thread.join()
        time.sleep(AFTER_SECONDS)
        left = target.resident_bytes() - max(calm.resident)
        after = target.read_status()
        log_bytes = target.log.stat().st_size
    grown = max(measured.resident) - max(calm.resident)
    good = sum(one <= PROBE_SECONDS for one in measured.probes)
    missed = after["ticks"]["missed"] - before["ticks"]["missed"]
    taken = after["ticks"]["taken"] - before["ticks"]["taken"]
    slowest = max(measured.scrapes)
    test = f"{count:,} hostile connections for {seconds:.0f} s"
    remark = f"{crowd}; closed: {after['connections']['closed']}"
    return [
        TortureRow(test, "memory", f"{grown / MEGABYTE:+.1f} MiB", "+20 MiB", grown <= 20 * MEGABYTE, remark),
        TortureRow(
            test, "memory afterwards", f"{left / MEGABYTE:+.1f} MiB", "+20 MiB", left <= 20 * MEGABYTE
        ),
        TortureRow(
            test, "probes", f"{good} of {len(measured.probes)}", "100 %", good == len(measured.probes) > 0
        ),
        TortureRow(
            test,
            "slowest scrape",
            f"{slowest:.3f} s of {len(measured.scrapes)}",
            "1 s",
            slowest <= SCRAPE_SECONDS,
            f"{render_times(measured.scrapes)}; refused: {dict(target.errors[SCRAPER])}; "
            f"from an attacker's address: {render_times(measured.shared)}",
        ),
        TortureRow(test, "log", f"{log_bytes / 1000:.0f} KB", "1 MB", log_bytes < 1_000_000),
        TortureRow(test, "ticks missed", f"{missed:.0f} of {taken:.0f}", "0", missed == 0),
    ]


if __name__ == "__main__":
    given = [float(word) for word in sys.argv[1:]]
    for row in run(*given):
        sys.stdout.write(f"{row.render()}\n")
