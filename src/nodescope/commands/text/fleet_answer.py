"""The answer of a fleet for a terminal: a headline, a ranked table, and what was not looked at."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from operator import itemgetter
from statistics import median_high
from typing import Any

from nodescope.base.quantity import render_quantity, render_slope
from nodescope.base.text import clean_text
from nodescope.base.time_range import render_time, render_time_of_day
from nodescope.commands.text.terminal import paint, render_table
from nodescope.use.fleet.answer import FleetAnswer, GroupTest, is_common
from nodescope.use.fleet.compare import FleetPair
from nodescope.use.fleet.group import Group, Spread

FAULTS_MOST = 20


def render_answer(answer: FleetAnswer, limit: int) -> str:
    if answer.question == "changes":
        body = render_changes(answer, limit)
    elif answer.question in ("top", "summary"):
        body = render_top(answer, limit)
    elif answer.question == "leaks":
        body = render_leaks(answer, limit)
    else:
        body = render_findings(answer, limit)
    return f"{paint(headline(answer), 'bold')}\n{body}{render_rest(answer)}"


def headline(answer: FleetAnswer) -> str:
    looked = (
        f"{answer.series:,} series of {answer.nodes:,} nodes looked at"
        f" ({answer.samples:,} samples, {answer.units:,} units of work)"
    )
    if answer.question in ("top", "summary"):
        return f"{looked}."
    left = len(answer.rows) - len(answer.kept)
    left_words = f"; {left} more are no more than chance among so many" if left else ""
    found = (
        f"{len(answer.kept)} findings, of which {answer.false_share:.0%} may be false"
        if answer.kept
        else "nothing found"
    )
    return f"{looked}; {found}{left_words}."


def spread_words(
    spread: Spread | None, unit: str, render: Callable[[float, str], str] = render_quantity
) -> str:
    if spread is None:
        return "-"
    middle, low, high = (render(value, unit) for value in (spread.middle, spread.low, spread.high))
    return middle if spread.low == spread.high else f"{middle} ({low} to {high})"


def unit_of(group: Group) -> str:
    return str(group.rows[0]["unit"])


def of_words(group: Group) -> str:
    return f"{group.series} of {group.looked_at}"


def render_leaks(answer: FleetAnswer, limit: int) -> str:
    if not answer.groups:
        return "No leak.\n"
    rows = [leak_row(group) for group in answer.groups[:limit]]
    return render_table([answer.by, "leaking", "nodes", "growth", "first at its limit"], rows)


def leak_row(group: Group) -> list[str]:
    ends = [
        (row["to"] + row["time_to_limit_seconds"], f"{row['node']} {row['series']}")
        for row in group.rows
        if row.get("time_to_limit_seconds") is not None
    ]
    first_at, who = min(ends, key=itemgetter(0), default=(0.0, ""))
    soonest = f"{who} at {render_time(first_at)}" if who else "-"
    pace = spread_words(group.spread("slope_per_second"), unit_of(group), render_slope)
    return [group.name, of_words(group), str(group.nodes), pace, soonest]


def render_changes(answer: FleetAnswer, limit: int) -> str:
    kept = [one for one in answer.group_tests if is_common(one, answer.false_share)]
    if not kept:
        return f"Nothing changed together at {render_time(answer.at or 0.0)}.\n"
    rows = [change_row(one) for one in kept[:limit]]
    return render_table(["by", "what", "metric", "changed", "nodes", "at", "from, to"], rows)


def change_row(one: GroupTest) -> list[str]:
    group = one.group
    unit = unit_of(group)
    at = group.spread("at")
    before, after = group.spread("before"), group.spread("after")
    text = f"{spread_words(before, unit)} to {spread_words(after, unit)}"
    olds = sorted({row["image_before"] for row in group.rows if row["image_before"] != row["image"]})
    if one.by == "image" and olds:
        text += f"; was {', '.join(olds)}"
    return [
        one.by,
        group.name,
        group.metric,
        of_words(group),
        str(group.nodes),
        render_time(at.middle) if at else "-",
        text,
    ]


def render_top(answer: FleetAnswer, limit: int) -> str:
    head = [answer.by, "metric", "series", "nodes", "over the span", "mean while there", "peak", "mostly"]
    return render_table(head, [top_row(group) for group in answer.groups[:limit]])


def top_row(group: Group) -> list[str]:
    unit = unit_of(group)
    days = len({row["day"] for row in group.rows})
    return [
        group.name,
        group.metric,
        str(group.looked_at),
        str(group.nodes),
        render_quantity(group.over_span(), unit),
        spread_words(group.spread("magnitude"), unit),
        render_quantity(peak.high, unit) if (peak := group.spread("max")) else "-",
        f"{busy_words(group)}{f' on {days} days' if days > 1 else ''}",
    ]


def busy_words(group: Group) -> str:
    """The time of day in which nine tenths of it happened, over the busiest half of the series."""
    busy = [row for row in group.rows if row.get("busy_from") is not None]
    if not busy:
        return "-"
    busiest = sorted(busy, key=lambda row: -(row["magnitude"] or 0.0))[: max(1, len(busy) // 2)]
    first, last = (median_high(row[name] for row in busiest) for name in ("busy_from", "busy_to"))
    return f"{render_time_of_day(first)} to {render_time_of_day(last)} UTC"


def render_findings(answer: FleetAnswer, limit: int) -> str:
    if not answer.groups:
        return ""
    rows = [finding_row(group) for group in answer.groups[:limit]]
    return render_table([answer.by, "metric", "found in", "nodes", "magnitude", "for example"], rows)


def finding_row(group: Group) -> list[str]:
    best = max(group.rows, key=lambda row: (row["confidence"], abs(row["magnitude"] or 0.0)))
    size = spread_words(group.spread("magnitude"), unit_of(group))
    example = f"{best['node']} {best['series']}: {best['sentence']}"
    return [group.name, group.metric, of_words(group), str(group.nodes), size, example]


def render_pairs(answer: FleetAnswer, pairs: Sequence[FleetPair], limit: int) -> str:
    rows = []
    for pair in pairs[:limit]:
        change = "-" if pair.change is None else f"{pair.change:+.0%}"
        rows.append(
            [
                pair.name,
                pair.metric,
                f"{pair.first_series}, {pair.second_series}",
                spread_words(pair.first, pair.unit),
                spread_words(pair.second, pair.unit),
                f"{change}{'' if pair.is_apart else ' (spreads touch)'}",
            ]
        )
    table = render_table([answer.by, "metric", "series A, B", "A", "B", "change"], rows)
    return f"{paint(headline(answer), 'bold')}\n{table}{render_rest(answer)}"


def render_rest(answer: FleetAnswer) -> str:
    lines = []
    if answer.short:
        lines.append(f"{answer.short:,} series have too few samples to say anything.")
    lines += [f"{metric} was not collected anywhere." for metric in answer.not_collected]
    for fault in answer.faults[:FAULTS_MOST]:
        lines.append(paint(clean_text(f"not looked at: {fault.where}: {fault.reason}", 4096), "yellow"))
    if len(answer.faults) > FAULTS_MOST:
        lines.append(f"and {len(answer.faults) - FAULTS_MOST} more (--json has all)")
    return "".join(f"{line}\n" for line in lines)


def count_series(group: Group) -> dict[str, Any]:
    return {name: getattr(group, name) for name in ("name", "metric", "series", "looked_at")}


def summarize(answer: FleetAnswer, pairs: Sequence[FleetPair] | None) -> dict[str, Any]:
    """All but the findings themselves, as JSON has it."""
    content: dict[str, Any] = {
        "question": answer.question if pairs is None else "compare",
        "version": 1,
        "nodes": answer.nodes,
        "units": answer.units,
        "series_looked_at": answer.series,
        "series_too_short": answer.short,
        "samples": answer.samples,
        "false_share": answer.false_share,
        "kept": len(answer.kept),
        "at": answer.at,
        "by": answer.by,
        "fetched_bytes": answer.fetched_bytes,
        "not_collected": answer.not_collected,
        "not_looked_at": [asdict(fault) for fault in answer.faults],
        "groups": [
            {
                **count_series(group),
                "nodes": group.nodes,
                "images": group.images(),
                "magnitude": asdict(spread) if (spread := group.spread("magnitude")) else None,
            }
            for group in answer.groups
        ],
    }
    if answer.group_tests:
        content["together"] = [
            {
                "by": one.by,
                **count_series(one.group),
                "chance": one.chance,
                "chance_adjusted": one.adjusted,
                "kept": is_common(one, answer.false_share),
            }
            for one in answer.group_tests
        ]
    if pairs is not None:
        content["pairs"] = [{**asdict(pair), "change": pair.change} for pair in pairs]
    return content
