"""
Records what this machine really does, in the codec of the log: the input of the archive's figures.

    python -m bench.recording OUT [--seconds 600] [--containers 24]

Real cgroups with real processes: most of them wake ten times a second and do
little, as services do; some compute, some write files, some allocate. On a
machine that has containers of its own, --containers 0 records those.
"""

import argparse
import os
import subprocess
import sys
import uuid
from contextlib import suppress
from pathlib import Path

from nodescope.base.codec import Encoder
from nodescope.base.frame import Frame
from nodescope.base.settings_load import load_settings
from nodescope.wiring import build_parts

CONTROLLERS = ("memory", "cpu", "cpuacct", "pids", "blkio", "unified")
# One line of Python for each kind of service.
WORKLOADS = {
    "idle": "import time\nwhile True: time.sleep(5)",
    "service": "import time,random\nwhile True:\n sum(range(random.randint(100, 20000)))\n time.sleep(0.1)",
    "cache": "import time,random\nkept=[]\nwhile True:\n kept.append(bytes(random.randint(1000, 200000)))\n"
    " kept=kept[-400:]\n time.sleep(0.25)",
    "writer": "import time,os,tempfile\nfile=tempfile.TemporaryFile()\nwhile True:\n os.write(file.fileno(), bytes(8192))\n"
    " file.tell() > 2**24 and file.truncate(0)\n time.sleep(0.5)",
    "batch": "import time,random\nwhile True:\n time.sleep(random.expovariate(1/20))\n sum(range(5_000_000))",
}
# Of ten containers of a cluster, most serve and few compute.
MIX = ("idle", "idle", "service", "service", "service", "service", "cache", "writer", "batch", "idle")


class Yard:
    """Containers made of cgroups and processes; gone when it closes."""

    def __init__(self, count: int) -> None:
        self.folders: list[Path] = []
        self.processes: list[subprocess.Popen[bytes]] = []
        for number in range(count):
            self._start(MIX[number % len(MIX)])

    def _start(self, kind: str) -> None:
        name = f"kubepods/burstable/pod{uuid.uuid4()}/{os.urandom(32).hex()}"
        process = subprocess.Popen([sys.executable, "-S", "-c", WORKLOADS[kind]])
        self.processes.append(process)
        for controller in CONTROLLERS:
            folder = Path("/sys/fs/cgroup") / controller / name
            with suppress(OSError):
                folder.mkdir(parents=True)
                self.folders.append(folder)
                (folder / "cgroup.procs").write_text(str(process.pid))

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        for folder in self.folders:
            with suppress(OSError):
                folder.rmdir()
                folder.parent.rmdir()
        for controller in CONTROLLERS:
            for name in ("kubepods/burstable", "kubepods"):
                with suppress(OSError):
                    (Path("/sys/fs/cgroup") / controller / name).rmdir()


class Recorder:
    """A sink that appends frames to a file."""

    def __init__(self, out: Path) -> None:
        self._encoder = Encoder()
        self._file = out.open("wb")
        self._file.write(self._encoder.hello(run="recording", node="recorded"))

    def accept(self, frame: Frame) -> None:
        self._file.write(self._encoder.encode(frame))

    def close(self) -> None:
        self._file.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--containers", type=int, default=24)
    options = parser.parse_args()
    yard = Yard(options.containers)
    parts = build_parts(load_settings({}, {}, {}))
    recorder = Recorder(options.out)
    parts.sampler._sinks.append(recorder)  # noqa: SLF001
    parts.sampler.start()
    parts.sampler.stopping.wait(options.seconds)
    parts.sampler.stop()
    recorder.close()
    yard.close()


if __name__ == "__main__":
    main()
