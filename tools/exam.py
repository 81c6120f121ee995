"""
Asks the MCP server about nodes with stories, and scores its answers.

    python -m tools.exam [--seeds 1,2,3] [--stories a,b] [--small] [--json] [--notes FOLDER]

Every story is written as a real archive and asked through the official client.
An answer is right, wrong, or none ("cannot tell" is not wrong). With --notes
each answer that is not right gets a page with the exact call and answer.
"""

import os

# numpy reads it when it is loaded. Matrices here are small: threads of BLAS would wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.stories.catalogue import STORIES
from tests.stories.exam import Outcome, Tally, run_exam, tally

BAR = 30


def main() -> int:
    arguments = _parser().parse_args()
    names = arguments.stories.split(",") if arguments.stories else list(STORIES)
    unknown = [name for name in names if name not in STORIES]
    if unknown:
        print(f"no story {', '.join(unknown)}; there are {', '.join(STORIES)}", file=sys.stderr)
        return 2
    seeds = [int(word) for word in arguments.seeds.split(",")]
    outcomes = run_exam([STORIES[name] for name in names], seeds, show_progress, is_small=arguments.small)
    if arguments.notes:
        write_notes(arguments.notes, outcomes)
    if arguments.json:
        print(json.dumps([outcome.plain() for outcome in outcomes], indent=1))
    else:
        print(render(outcomes))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.exam", description=__doc__.split("\n\n")[0])
    parser.add_argument("--seeds", default="1,2,3", help="numbers, separated by commas; 1,2,3 unless given")
    parser.add_argument("--stories", default="", help="names, separated by commas; all unless given")
    parser.add_argument("--small", action="store_true", help="nodes of some fourteen containers")
    parser.add_argument("--json", action="store_true", help="one row for each question instead of tables")
    parser.add_argument("--notes", type=Path, help="a folder for one page a story with what was not right")
    return parser


def show_progress(done: int, all_of: int, name: str) -> None:
    filled = round(BAR * done / max(1, all_of))
    bar = "#" * filled + "." * (BAR - filled)
    print(f"\r[{bar}] {done}/{all_of} {name:<40}", end="" if done < all_of else "\n", file=sys.stderr)


def render(outcomes: Sequence[Outcome]) -> str:
    parts = [
        render_table("story", tally(outcomes, lambda one: one.story)),
        render_table("class", [*tally(outcomes, lambda one: one.kind), *tally(outcomes, lambda _: "all")]),
        render_incidents(outcomes),
        render_breaches(outcomes),
    ]
    return "\n\n".join(parts)


def render_table(head: str, rows: Sequence[Tally]) -> str:
    lines = [
        f"{head:<28} {'asked':>5} {'right':>7} {'wrong':>7} {'none':>7} {'calls':>6} {'tokens':>7} {'most':>6}"
    ]
    for row in rows:
        mean = sum(row.tokens) / max(1, len(row.tokens))
        shares = (row.right, row.wrong, row.silent)
        cells = " ".join(f"{share / max(1, row.asked):>7.1%}" for share in shares)
        lines.append(
            f"{row.name:<28} {row.asked:>5} {cells} {row.calls / max(1, row.asked):>6.2f} "
            f"{mean:>7.0f} {max(row.tokens, default=0):>6}"
        )
    return "\n".join(lines)


def render_incidents(outcomes: Sequence[Outcome]) -> str:
    """How often the true cause is first, and among the first three; how often one is invented."""
    ranked = [one.verdict.rank for one in outcomes if one.verdict.rank is not None]
    quiet = [one for one in outcomes if one.kind == "quiet hours"]
    invented = sum(one.verdict.grade == "wrong" for one in quiet)
    first, three = sum(rank == 1 for rank in ranked), sum(1 <= rank <= 3 for rank in ranked)
    lines = [f"incidents: {len(ranked)}; quiet hours: {len(quiet)}"]
    if ranked:
        lines.append(
            f"the true cause first: {first / len(ranked):.1%}; of the first three: {three / len(ranked):.1%}"
        )
    sure = [one.verdict for one in outcomes if one.verdict.confidence is not None]
    for low, high in ((0, 0.5), (0.5, 0.8), (0.8, 0.95), (0.95, 1.01)):
        inside = [one for one in sure if low <= (one.confidence or 0) < high]
        if inside:
            right = sum(one.rank == 1 for one in inside)
            lines.append(f"confidence {low} to {min(high, 1)}: {len(inside)} told, the true cause in {right}")
    if quiet:
        lines.append(f"quiet hours with an invented incident: {invented / len(quiet):.1%}")
    return "\n".join(lines)


def render_breaches(outcomes: Sequence[Outcome]) -> str:
    """Promises of every answer: how many answers broke each, and the first of them."""
    answers = sum(len(one.answers) for one in outcomes)
    by_rule: dict[str, list[str]] = {}
    for outcome in outcomes:
        for breach in outcome.breaches:
            by_rule.setdefault(breach.rule, []).append(f"{outcome.story} {outcome.seed}: {breach.what}")
    lines = [f"answers: {answers}"]
    for rule, many in sorted(by_rule.items()):
        lines += [f"broken, {rule}: {len(many)}", f"  {many[0][:300]}"]
    return "\n".join(lines)


def write_notes(folder: Path, outcomes: Sequence[Outcome]) -> None:
    """One page a story; of one that is all right the page goes."""
    folder.mkdir(parents=True, exist_ok=True)
    by_story: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        by_story.setdefault(outcome.story, []).append(outcome)
    for story, many in by_story.items():
        path = folder / f"{story}.md"
        bad = [one for one in many if one.verdict.grade != "right"]
        if bad:
            path.write_text(
                "\n".join([f"# {story}: {len(many) - len(bad)} of {len(many)} right", *map(note, bad)])
            )
        else:
            path.unlink(missing_ok=True)


def note(outcome: Outcome) -> str:
    lines = [
        f"\n## seed {outcome.seed}: {outcome.verdict.grade}",
        f"Asked: {outcome.words}",
        outcome.verdict.why,
    ]
    for answer in outcome.answers:
        lines += [
            f"\n`{answer.tool}` {json.dumps(answer.arguments)}\n",
            f"```\n{answer.text}\n```",
            f"```json\n{json.dumps(answer.content, indent=1, ensure_ascii=False)}\n```",
        ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
