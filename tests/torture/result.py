"""What a torture test found: one row a figure."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TortureRow:
    test: str
    figure: str
    found: str
    wanted: str
    met: bool
    remark: str = ""

    def render(self) -> str:
        verdict = "ok" if self.met else "NOT MET"
        return f"{self.test} | {self.figure} | {self.found} | {self.wanted} | {verdict} | {self.remark}"


def render_table(rows: Sequence[TortureRow]) -> str:
    """Markdown, for the page that shows the figures."""
    lines = ["| test | figure | found | wanted | |", "|---|---|---|---|---|"]
    lines += [
        f"| {row.test} | {row.figure} | {row.found} | {row.wanted} | {'ok' if row.met else 'NOT MET'} |"
        for row in rows
    ]
    return "\n".join(lines)


def at_most(test: str, figure: str, value: float, most: float, remark: str = "") -> TortureRow:
    return TortureRow(test, figure, f"{value:.6g}", f"{most:g}", value <= most, remark)
