"""
A tenant who makes cgroups as he likes, with the rights of his own user: in a child process.

    with Tenant(bases, uid, victims, seed) as tenant:
        tenant.work(2000)          # random operations, at most so many seconds
        tenant.nest(5000)          # one folder in the other

`bases` are folders that belong to `uid`, one in each hierarchy. Leaving the block removes everything below them.
"""

import contextlib
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

# What kubelet, docker and podman call their folders.
TREES = (
    "kubepods",
    "kubepods/burstable",
    "kubepods.slice",
    "kubelet/kubepods",
    "kubelet.slice/kubelet-kubepods.slice",
    "docker",
    "system.slice",
    "machine.slice",
    "user.slice",
    ".",
)


class Tenant:
    """Everything is done by forked children that gave up their rights."""

    def __init__(self, bases: Sequence[Path], uid: int, victims: Sequence[str], seed: int = 0) -> None:
        self._bases = list(bases)
        self._uid = uid
        self._victims = list(victims)
        self._random = random.Random(seed)
        for base in self._bases:
            for path in (base, *base.iterdir()):
                os.chown(path, uid, uid)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for base in self._bases:
            empty_folder(base)

    def work(self, operations: int, seconds: float = 60.0) -> int:
        """Random operations; how many were done in the time."""
        seed = self._random.random()
        return self._run(lambda: self._work(random.Random(seed), operations, seconds))

    def nest(self, depth: int, name: str = "a") -> int:
        """
        One folder in the other; the least depth that was reached.

        In the first hierarchy, whose folders the agent walks, and in v2: the kernel
        takes a minute for 5,000 levels of one.
        """
        bases = {self._bases[0], self._bases[-1]}
        return self._run(lambda: min(nest_folders(base, depth, name) for base in bases))

    def claim(self, path: str) -> int:
        """A folder below the base in every hierarchy, as a real runtime makes it."""
        return self._run(lambda: sum(make_folders(base, path) for base in self._bases))

    def _run(self, action: Callable[[], int]) -> int:
        """What the action gives, done by a child without any rights of ours."""
        receiver, sender = os.pipe()
        child = os.fork()
        if child == 0:
            answer = -1
            try:
                os.setgroups([])
                os.setgid(self._uid)
                os.setuid(self._uid)
                answer = action()
            finally:
                os.write(sender, str(answer).encode())
                os._exit(0)
        os.close(sender)
        os.waitpid(child, 0)
        with os.fdopen(receiver) as answered:
            return int(answered.read() or -1)

    def _work(self, chance: random.Random, operations: int, seconds: float) -> int:
        deadline = time.monotonic() + seconds
        made: list[str] = []
        for number in range(operations):
            if time.monotonic() > deadline:
                return number
            if made and chance.random() < 0.45:
                path = made.pop(chance.randrange(len(made)))
                self._remove(path)
            else:
                path = self._name(chance)
                made.append(path)
                for base in self._bases:
                    make_folders(base, path)
        return operations

    def _name(self, chance: random.Random) -> str:
        """A container's path: of a victim as it stands, of its id elsewhere, of nobody, or no container's."""
        victim = chance.choice(self._victims)
        identifier, pod = victim.rpartition("/")[2], victim.split("/")[-2]
        tree = chance.choice(TREES)
        stranger = f"{chance.getrandbits(256):064x}"
        return chance.choice(
            [
                victim,
                f"{tree}/{pod}/{identifier}",
                f"{tree}/{pod}/{stranger}",
                f"{tree}/{identifier}",
                f"{tree}/docker-{identifier}.scope",
                f"{tree}/pod{stranger[:32]}/{stranger}",
                f"{tree}/{stranger}/kubepods/{pod}/{identifier}",
                "/".join("x" * chance.randint(1, 6) for _ in range(chance.randint(1, 30))),
                f"{tree}/{chance.choice(['é' * 60, 'a b', chr(27) + '[31m', '..%2f..', '=', ':'])}",
            ]
        )

    def _remove(self, path: str) -> None:
        for base in self._bases:
            folder = base / path
            while folder != base:
                try:
                    folder.rmdir()
                except OSError:
                    break
                folder = folder.parent


def make_folders(base: Path, path: str) -> bool:
    """Like mkdir -p; a name that the kernel refuses is no success."""
    try:
        (base / path).mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return True


def nest_folders(base: Path, depth: int, name: str) -> int:
    """By going down: the whole path is longer than the kernel takes."""
    os.chdir(base)
    for number in range(depth):
        try:
            os.mkdir(name)
            os.chdir(name)
        except OSError:
            return number
    return depth


def empty_folder(base: Path) -> None:
    """Removes all below a folder, however deep; without recursion and without long paths."""
    home = os.open(".", os.O_RDONLY)
    try:
        os.chdir(base)
        # Names of the folders we stand in, from the base down.
        below: list[str] = []
        while True:
            inner = next(list_folders(), None)
            if inner is not None:
                os.chdir(inner)
                below.append(inner)
            elif below:
                os.chdir("..")
                with contextlib.suppress(FileNotFoundError):
                    os.rmdir(below.pop())
            else:
                return
    finally:
        os.fchdir(home)
        os.close(home)


def list_folders() -> Iterator[str]:
    with os.scandir(".") as entries:
        yield from (entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
