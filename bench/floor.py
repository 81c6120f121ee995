"""floor.c as a companion: one round of each kind whenever it is asked."""

import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.compiled import compiled


class Floor:
    """Keeps the files open between rounds, as the sampler does."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths
        self.files = len(paths)
        self.kept: list[float] = []
        self.opened: list[float] = []
        self.bytes = 0

    def __enter__(self) -> Self:
        with tempfile.NamedTemporaryFile("w", suffix=".list", delete=False) as self._list:
            self._list.write("\n".join(self._paths))
        self._process = subprocess.Popen(
            [compiled("floor"), "-f", self._list.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def round(self) -> None:
        match = self._ask("", r"kept (\S+) opened (\S+) bytes (\d+)\n")
        self.kept.append(float(match[1]))
        self.opened.append(float(match[2]))
        self.bytes = int(match[3])

    def turn(self, files: Sequence[int]) -> float:
        """CPU seconds of reading these files, by their numbers from 1; a negative one is opened for it."""
        return float(self._ask(" ".join(map(str, files)), r"turn (\S+) bytes \d+\n")[1])

    def _ask(self, line: str, answer: str) -> re.Match[str]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        said = self._process.stdout.readline()
        match = re.fullmatch(answer, said)
        if match is None:
            raise RuntimeError(f"floor said {said!r} and left with {self._process.poll()}")
        return match

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()
        Path(self._list.name).unlink()
