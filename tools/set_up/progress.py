"""What set-up says while it works."""

import sys
import threading

MIB = 2**20
# Smaller files are counted and not named.
NAMED_MEBIBYTES = 1.0
NAMES = 3


def say(text: str) -> None:
    sys.stderr.write(f"nodescope set-up: {text}\n")
    sys.stderr.flush()


def give_up(text: str) -> SystemExit:
    """To be raised: the line is said, and set-up ends."""
    say(text)
    return SystemExit(1)


class Progress:
    """What is being fetched, and how much is left: one line that changes, or lines where there is no terminal."""

    def __init__(self) -> None:
        self.is_terminal = sys.stderr.isatty()
        self.open: dict[str, float] = {}
        self.known = self.done = 0.0
        self._lock = threading.Lock()

    def begin(self, name: str, mebibytes: float) -> None:
        """Once for each file; an attempt that is repeated does not count."""
        with self._lock:
            if name in self.open:
                return
            self.open[name] = mebibytes
            self.known += mebibytes
            if mebibytes >= NAMED_MEBIBYTES:
                self.show(f"fetching {name} ({mebibytes:.0f} MiB)")

    def end(self, name: str) -> None:
        with self._lock:
            mebibytes = self.open.pop(name, 0.0)
            self.done += mebibytes
            if mebibytes >= NAMED_MEBIBYTES or not self.open:
                self.show(f"{self.done:.0f} of {self.known:.0f} MiB fetched{self.name_rest()}")

    def name_rest(self) -> str:
        """The largest of what is to come."""
        rest = sorted(self.open, key=lambda name: -self.open[name])
        more = ", ..." if len(rest) > NAMES else ""
        return f"; {', '.join(rest[:NAMES])}{more} to come" if rest else ""

    def show(self, text: str) -> None:
        if self.is_terminal:
            sys.stderr.write(f"\r\x1b[K  {text[:100]}" + ("" if self.open else "\n"))
        else:
            sys.stderr.write(f"  {text}\n")
        sys.stderr.flush()
