"""
What `make test` says last: how many tests were skipped, and for which missing part.

    python -m tests.skips artifacts/skipped        one line; the file has one reason a line

Each run of pytest adds its reasons to the file that SKIPPED_TESTS_FILE names.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path


def clean_reason(text: str) -> str:
    """`Skipped: no promtool: apt-get install prometheus` is `no promtool`: the remedy was said at the test."""
    plain = " ".join(text.removeprefix("Skipped: ").split())
    return re.split(r"[:;,(]\s", plain, maxsplit=1)[0].strip()


def render_skips(reasons: Iterable[str]) -> str:
    counts = Counter(map(clean_reason, reasons))
    if not counts:
        return "all tests were run, none was skipped"
    parts = ", ".join(f"{count} ({reason})" for reason, count in counts.most_common())
    return f"skipped {counts.total()} tests for what this machine lacks: {parts}"


if __name__ == "__main__":
    file = Path(sys.argv[1])
    print(render_skips(file.read_text().splitlines() if file.exists() else ()))
