"""Which metric and which study answer a question in plain words?"""

import re
from collections.abc import Iterable, Mapping

from nodescope.base.text import clean_text
from nodescope.use.answers.metrics import MetricRow
from nodescope.use.answers.questions import Understood, understand

# The list of tools imports this module, too: its names are looked up when a question comes.
from nodescope.use.mcp import tools
from nodescope.use.mcp.nodes.backend import Backend
from nodescope.use.mcp.nodes.fleet import Fleet, Replies
from nodescope.use.mcp.protocol.answer import NextCall, ToolAnswer, ToolFinding
from nodescope.use.mcp.protocol.argument import Argument, Values
from nodescope.use.mcp.protocol.tool import Tool
from nodescope.use.mcp.tools.shared.metric_name import COUNTED_SCOPES
from nodescope.use.studies import STUDIES

MOST = 5
# Words people use that stand in no metric's name or meaning.
MEANT = {
    "cpu": "cpu processor core cores busy load compute hot slow",
    "cpu_throttled": "throttle throttled throttling quota limited held slow latency",
    "cpu_limit_share": "quota limit request granted headroom",
    "pressure_cpu": "pressure psi wait waits waiting stall stalled contention starved noisy neighbour",
    "memory": "memory ram mem usage leak leaking grow growing bytes footprint",
    "memory_working_set": "working set evict evicted kubelet",
    "memory_limit_share": "limit oom kill killed full headroom near out short",
    "memory_anon": "heap anonymous rss leak leaking allocated",
    "memory_file": "cache page pagecache file",
    "memory_peak": "peak highest most maximum",
    "pressure_memory": "pressure psi reclaim thrash thrashing swap stall short",
    "pressure_io": "pressure psi disk io wait iowait stall",
    "oom_kills": "oom killed kill kills died crash crashed",
    "disk_read": "disk io read reads storage",
    "disk_write": "disk io write writes storage",
    "network_receive": "network traffic receive received ingress download",
    "network_transmit": "network traffic send sent transmit egress upload",
    "tcp_retransmits": "network tcp retransmit retransmits retransmission loss lost packets again",
    "tcp_retransmit_share": "network tcp retransmit loss lost packets share rate",
    "tcp_resets": "network tcp reset resets broken connections",
    "tcp_refused": "network tcp refused listen overflow overflows backlog queue syn dropped connections",
    "tcp_connections": "network tcp connections established sockets open",
    "threads": "threads pids processes fork",
    "processes": "processes fork",
    "gpu_utilization": "gpu accelerator training cuda idle busy used compute",
    "gpu_memory": "gpu vram memory",
    "gpu_power": "gpu power watt energy",
}
INTENTS = {
    "periodicity": "period periodic periodically repeat repeats repeating spike spikes every cron cycle regular regularly",
    "trend": "leak leaking grow growing growth increase increasing rise rising trend run out full fill limit decrease falling",
    "changepoint": "when change changed changes step jump jumped since deploy deployment release rollout shift drop dropped",
    "anomaly": "unusual anomaly anomalous abnormal odd strange weird normal",
    "correlation": "together correlate correlated correlation related because cause caused same",
}
STOP_WORDS = "a an and are be by does did do for has have how i in is it its many much of on or the this to was what which who why with"
STOP = frozenset(STOP_WORDS.split())


def words_of(text: str) -> set[str]:
    words = set(re.findall(r"[a-z0-9]+", text.lower())) - STOP
    return words | {word[:-1] for word in words if word.endswith("s") and len(word) > 3}


def score(row: MetricRow, question: set[str]) -> float:
    """A word in the name counts most, then what people call it, then the meaning."""
    name = words_of(row.name.replace("_", " ").replace(".", " "))
    meant = words_of(MEANT.get(row.name, ""))
    meaning = words_of(row.help)
    total = 3.0 * len(question & name) + 2.0 * len(question & meant) + 1.0 * len(question & meaning)
    return total * (1.5 if row.is_plain else 1.0)


def choose_study(question: set[str]) -> str:
    hits = {name: len(question & set(words.split())) for name, words in INTENTS.items()}
    best = max(hits, key=hits.__getitem__)
    return best if hits[best] else "summary"


def rank(rows: Iterable[MetricRow], question: set[str]) -> list[MetricRow]:
    scored = [(score(row, question), row) for row in rows]
    kept = [(points, row) for points, row in scored if points > 0]
    kept.sort(key=lambda one: (-one[0], not one[1].is_plain, len(one[1].name), one[1].name))
    return [row for _, row in kept[:MOST]]


def read_words(backend: Backend) -> tuple[list[MetricRow], set[str]]:
    """What a question may be about: metrics, and the names of containers."""
    lives = backend.read_lives(None)
    return backend.read_metrics(), {
        name for life in lives for name in (life.container_name, life.pod) if name
    }


async def run(fleet: Fleet, values: Values) -> ToolAnswer:
    replies = await fleet.ask_all(None, read_words)
    rows = {row.name: row for metrics, _ in replies.answers.values() for row in metrics}
    names = {name for _, found in replies.answers.values() for name in found}
    understood = understand(values["question"], tools.TOOLS, names)
    question = words_of(values["question"])
    best = rank(rows.values(), question)
    if understood and understood.metric in rows:
        first = rows[understood.metric]
        best = [first, *(row for row in best if row != first)][:MOST]
    study = str(understood.arguments.get("study") or "") if understood else ""
    study = study or choose_study(question)
    if understood:
        return answer_understood(understood, best, study, rows, replies)
    if not best:
        headline = f"No metric among {len(rows)} fits these words; name what is short: cpu, memory, disk, network, gpu."
        looked_at = f"names and meanings of {len(rows)} metrics"
        all_metrics = NextCall("list_metrics", {}, "all metrics")
        return ToolAnswer(
            headline, "none", looked_at=looked_at, nodes_away=replies.missing, next_call=all_metrics
        )
    return ToolAnswer(
        headline=f'Ask {best[0].name} with the study {study}: "{STUDIES[study].question}"',
        findings=tuple(render_row(row) for row in best),
        looked_at=f"names and meanings of {len(rows)} metrics of {len(replies.answers)} nodes, by words",
        not_looked_at=("values: this tool only chooses what to ask",),
        nodes_away=replies.missing,
        next_call=suggest(best[0], study),
    )


def answer_understood(
    understood: Understood,
    best: list[MetricRow],
    study: str,
    rows: Mapping[str, MetricRow],
    replies: Replies[tuple[list[MetricRow], set[str]]],
) -> ToolAnswer:
    """A question that the table of questions has: the call that answers it."""
    call = NextCall(understood.tool, understood.arguments, understood.why)
    asked = f"Ask {understood.metric} with the study {study}" if understood.metric else f"Ask {call.tool}"
    gaps = ["values: this tool only chooses what to ask"]
    if understood.missing:
        gaps.insert(0, f"{understood.missing} would answer this better; this server does not have it")
    if understood.mistyped:
        gaps.insert(
            0,
            f'"{clean_text(understood.mistyped, 80)}": no container is called so; the nearest name was taken',
        )
    return ToolAnswer(
        headline=f"{asked}: {understood.why} ({call.tool}).",
        findings=tuple(render_row(row) for row in best),
        looked_at=f"the table of questions; names and meanings of {len(rows)} metrics of {len(replies.answers)} nodes",
        not_looked_at=tuple(gaps),
        nodes_away=replies.missing,
        next_call=call,
    )


def render_row(row: MetricRow) -> ToolFinding:
    where = "" if row.scope in ("container", "") else f" Measured per {row.scope}."
    return ToolFinding(f"{row.name}: {row.help}{where}", "metric", metric=row.name, unit=row.unit or None)


def suggest(row: MetricRow, study: str) -> NextCall:
    if row.scope not in ("container", "", *COUNTED_SCOPES):
        why = "this metric is not of containers; what else there is"
        return NextCall("list_metrics", {"search": row.scope}, why)
    why = f"who has the most; then analyze_container with study={study}"
    if row.scope in COUNTED_SCOPES:
        why = f"each {row.scope} by it; it is not of containers"
    elif study == "summary":
        why = "who has the most of it"
    return NextCall("top_containers", {"by": row.name}, why)


TOOL = Tool(
    "find_metrics",
    "Find metrics",
    "Which metric and study answer a question in plain words.",
    (Argument("question", "in plain words", required=True),),
    run,
)
