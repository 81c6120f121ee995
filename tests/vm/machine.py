"""
`tests/vm/run`: build the disks, boot, print every check, judge the run.

The guest has two serial ports: the kernel's console, and one on which
`guest/init` prints the checks as they come and, last, `result <exit code>`.
qemu exits 0 even after a kernel panic, so only that line means success.
Files come back on a third disk that the guest uses as a tape: a plain tar.
"""

import argparse
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.nodes.captured import write_difference
from tests.vm import bundle
from tests.vm.parts import PartMissing, find_qemu, read_parts
from tests.vm.root import build_project, build_root

CHECKOUT = Path(__file__).resolve().parents[2]
# A run takes 70 s on a quiet machine with two cores; 150 s were seen on a busy one.
TIMEOUT_SECONDS = 300
TAPE_BYTES = 32 << 20

# Each with its option for qemu; the guest sees them as /dev/nvme0n1, n2, ...
Disks = list[tuple[Path, str]]


def render_command(qemu: str, kernel: Path, disks: Disks, work: Path) -> list[str]:
    # -cpu max: numpy's wheels need SSE4.2 and more, which qemu64 lacks.
    # tcg by name: no KVM is expected, and probing for it hangs on some hosts.
    command = f"""{qemu} -M q35 -accel tcg,thread=multi -cpu max -smp 2 -m 1024
        -nodefaults -no-user-config -display none -no-reboot -device nvme,id=nvme,serial=vm""".split()
    command += ["-kernel", str(kernel)]
    command += ["-append", "root=/dev/nvme0n1 rootfstype=ext4 rw init=/init console=ttyS0 panic=-1 quiet"]
    for number, (disk, option) in enumerate(disks, start=1):
        command += ["-drive", f"file={disk},format=raw,if=none,id=disk{number},{option}"]
        command += ["-device", f"nvme-ns,bus=nvme,drive=disk{number},nsid={number}"]
    for port in ("console.log", "result.txt"):
        command += ["-serial", f"file:{work / port}"]
    return command


def build_disks(parts: Path, scratch: Path, tape: Path, *, image: bool) -> Disks:
    """Root, project and tape; with the image's root file system as the fourth."""
    disks: Disks = [(build_root(parts), "snapshot=on")]
    if image:
        name = bundle.build_image()
        (scratch / "project").mkdir()
        bundle.write_bundle(name, scratch / "project" / "bundle")
        bundle.write_image_disk(name, scratch / "image.img")
    with tape.open("wb") as file:
        file.truncate(TAPE_BYTES)
    disks += [(build_project(CHECKOUT, scratch), "cache=unsafe"), (tape, "cache=unsafe")]
    return [*disks, (scratch / "image.img", "snapshot=on")] if image else disks


def follow(path: Path, process: subprocess.Popen[bytes], deadline_seconds: float) -> Iterator[str]:
    """Whole lines of a growing file until its writer ends, or is ended."""
    seen = 0
    started = time.monotonic()
    while True:
        ended = process.poll() is not None
        text = path.read_bytes()[seen:] if path.exists() else b""
        whole = text[: text.rfind(b"\n") + 1]
        seen += len(whole)
        yield from (line.strip() for line in whole.decode(errors="replace").splitlines())
        if ended:
            return
        if time.monotonic() - started > deadline_seconds:
            process.kill()
            process.wait()
        time.sleep(0.2)


def boot(command: list[str], work: Path) -> tuple[int, int, str | None]:
    """Checks passed, checks failed, and the result line's word (None: it never came)."""
    passed = failed = 0
    result = None
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
        try:
            for line in follow(work / "result.txt", process, TIMEOUT_SECONDS):
                if line.startswith("result "):
                    result = line.split()[1]
                    continue
                passed += line.startswith("ok - ")
                failed += line.startswith("not ok - ")
                print(line, flush=True)
        finally:
            process.kill()
    return passed, failed, result


def unpack(tape: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    with tarfile.open(tape) as archive:
        members = [one for one in archive if one.name.startswith("./node/")]
        for member in members:
            member.name = member.name.removeprefix("./node/")
        archive.extractall(target, members, filter="data")
    write_difference(target)
    print(f"# captured {sum(one.isfile() for one in members)} files into {target}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests/vm/run", description=__doc__.split("\n\n")[0])
    parser.add_argument("--capture", type=Path, metavar="DIR", help="save the guest as a fixture node in DIR")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep console, result lines and tape in DIR")
    parser.add_argument(
        "--image", action="store_true", help="the agent from the image, as the DaemonSet runs it"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="nodescope-vm-") as scratch:
        work = options.keep or Path(scratch)
        work.mkdir(parents=True, exist_ok=True)
        started = time.monotonic()
        try:
            qemu, parts = find_qemu(), read_parts()
            disks = build_disks(parts, Path(scratch), work / "result.tar", image=options.image)
        except PartMissing as missing:
            print(f"test-vm: {missing}", file=sys.stderr)
            return 1
        built = time.monotonic()
        (work / "result.txt").unlink(missing_ok=True)
        passed, failed, result = boot(render_command(qemu, parts / "vmlinuz", disks, work), work)
        print(f"# disks {built - started:.1f} s, virtual machine {time.monotonic() - built:.1f} s")
        if result != "0":
            failed += 1
            print(f"not ok - the scenario ran to its end (result line: {result or 'none'})")
            print("\n".join((work / "console.log").read_text(errors="replace").splitlines()[-30:]))
        if options.capture and result is not None:
            unpack(work / "result.tar", options.capture)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
