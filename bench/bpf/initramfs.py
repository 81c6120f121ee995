"""
What the virtual machine of `bench/bpf/run` needs: a kernel unpacked, a root with one program.

    python -m bench.bpf.initramfs unpack VMLINUZ OUT     the ELF inside, which has the types (BTF)
    python -m bench.bpf.initramfs pack PROGRAM OUT       an initramfs whose first process is the program
"""

import gzip
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

# How a kernel may be compressed: the first bytes, and what unpacks it.
PACKERS = {
    b"\x02\x21\x4c\x18": "lz4",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x1f\x8b\x08": "gzip",
}
FOLDERS = ("proc", "sys", "dev")


def unpack(source: Path) -> bytes:
    data = source.read_bytes()
    for magic, program in PACKERS.items():
        for place in find_all(data, magic):
            # What follows the packed kernel makes the program complain; what it wrote counts.
            done = subprocess.run([program, "-dc"], input=data[place:], capture_output=True, check=False)
            if done.stdout.startswith(b"\x7fELF"):
                return done.stdout
    raise SystemExit(f"{source}: no kernel packed by {', '.join(PACKERS.values())} in it")


def find_all(data: bytes, magic: bytes) -> Iterator[int]:
    place = data.find(magic)
    while place >= 0:
        yield place
        place = data.find(magic, place + 1)


def pack(program: Path) -> bytes:
    """A cpio archive in the kernel's own form (Documentation/driver-api/early-userspace/buffer-format.rst)."""
    numbers = count(1)
    entries = [render(next(numbers), name, 0o040755, b"") for name in FOLDERS]
    entries.append(render(next(numbers), "dev/console", 0o020622, b"", (5, 1)))
    entries.append(render(next(numbers), "init", 0o100755, program.read_bytes()))
    return gzip.compress(b"".join([*entries, render(0, "TRAILER!!!", 0, b"")]))


def render(number: int, name: str, mode: int, data: bytes, device: tuple[int, int] = (0, 0)) -> bytes:
    text = name.encode() + b"\0"
    fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(text), 0)
    head = b"070701" + b"".join(b"%08X" % value for value in fields) + text
    return head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4)


if __name__ == "__main__":
    action, source, target = sys.argv[1:]
    Path(target).write_bytes(unpack(Path(source)) if action == "unpack" else pack(Path(source)))
