"""Checks as lines: `ok - sentence` or `not ok - sentence: what was seen`."""

import time
from collections.abc import Callable


class Report:
    def __init__(self) -> None:
        self.failed = 0

    def check(self, sentence: str, fact: object, seen: object = "") -> None:
        self.failed += not fact
        print(f"ok - {sentence}" if fact else f"not ok - {sentence}: {seen}", flush=True)

    def note(self, sentence: str) -> None:
        print(f"# {time.monotonic():.1f} s {sentence}", flush=True)


def wait_until(is_true: Callable[[], object], seconds: float) -> bool:
    """Patience instead of speed: a busy host makes the guest many times slower."""
    deadline = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True
