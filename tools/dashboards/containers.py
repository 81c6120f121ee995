"""Containers: who uses what, how near to the limit, and what it costs them."""

from tools.dashboards.panel import NODE, RATE, THIRD, Board, build_board, choice, lines, listing, number, row

CHOSEN = f'{NODE},namespace=~"$namespace",container=~"$container"'
LEGEND = "{{node}} {{namespace}}/{{pod}}/{{container}}"
MANY = 15


def top(expression: str) -> str:
    """By what a person knows a container by, the largest only: a node may have hundreds."""
    return f"topk({MANY}, sum by (node, namespace, pod, container, id) ({expression}))"


def rate(name: str) -> str:
    return f"rate({name}{{{CHOSEN}}}[{RATE}])"


def gauge(name: str) -> str:
    return f"{name}{{{CHOSEN}}}"


def build() -> Board:
    board = build_board("nodescope-containers", "nodescope / Containers", "What the containers do.")
    used = 'label_values(container_memory_usage_bytes{job="nodescope",node=~"$node"}, namespace)'
    board.with_variable(choice("namespace", "Namespace", used))
    named = used.replace('"$node"}, namespace', '"$node",namespace=~"$namespace"}, container')
    board.with_variable(choice("container", "Container", named))
    add_overview(board)
    add_cpu(board)
    add_memory(board)
    add_traffic(board)
    return board


def add_overview(board: Board) -> None:
    board.with_row(row("At a glance"))
    board.with_panel(number("Containers", "none", f"count({gauge('container_memory_usage_bytes')})"))
    board.with_panel(number("Cores in use", "none", f"sum({rate('container_cpu_usage_seconds_total')})"))
    board.with_panel(number("Working set", "bytes", f"sum({gauge('container_memory_working_set_bytes')})"))
    kills = f"sum(increase({gauge('container_oom_events_total')}[1h]))"
    board.with_panel(number("OOM kills in 1 h", "none", kills, (None, "green"), (1, "red")))
    near = (
        'count(container:memory_limit_share:ratio{node=~"$node",namespace=~"$namespace"} > 0.9) or vector(0)'
    )
    board.with_panel(number("Near the memory limit", "none", near, (None, "green"), (1, "orange")))
    exits = f"sum(increase(nodescope_container_exits_total{{{NODE}}}[1h]))"
    board.with_panel(number("Exits in 1 h", "none", exits))


def add_cpu(board: Board) -> None:
    board.with_row(row("CPU"))
    board.with_panel(
        lines("CPU", "none", (top(rate("container_cpu_usage_seconds_total")), LEGEND), about="Cores.")
    )
    limit = f"({gauge('container_spec_cpu_quota')} > 0) / {gauge('container_spec_cpu_period')}"
    share = f"sum without (cpu) ({rate('container_cpu_usage_seconds_total')}) / ({limit})"
    board.with_panel(lines("CPU as a share of the limit", "percentunit", (top(share), LEGEND)))
    periods = f"({rate('container_cpu_cfs_periods_total')} > 0)"
    held = f"{rate('container_cpu_cfs_throttled_periods_total')} / {periods}"
    board.with_panel(
        lines("Throttled", "percentunit", (top(held), LEGEND), about="Share of periods without quota left.")
    )
    waited = rate("container_pressure_cpu_waiting_seconds_total")
    board.with_panel(lines("Waiting for a CPU", "percentunit", (top(waited), LEGEND)))


def add_memory(board: Board) -> None:
    board.with_row(row("Memory"))
    working = gauge("container_memory_working_set_bytes")
    board.with_panel(lines("Working set", "bytes", (top(working), LEGEND)))
    limit = f"({gauge('container_spec_memory_limit_bytes')} > 0 < Inf)"
    board.with_panel(
        lines("Memory as a share of the limit", "percentunit", (top(f"{working} / {limit}"), LEGEND))
    )
    board.with_panel(
        lines("Anonymous memory", "bytes", (top(gauge("container_memory_rss")), LEGEND), span=THIRD)
    )
    board.with_panel(lines("Page cache", "bytes", (top(gauge("container_memory_cache")), LEGEND), span=THIRD))
    proportional = gauge("container_memory_pss_bytes")
    board.with_panel(
        lines(
            "Proportional memory",
            "bytes",
            (top(proportional), LEGEND),
            about="Shared pages divided by their users; asked less often.",
            span=THIRD,
        )
    )
    waited = rate("container_pressure_memory_waiting_seconds_total")
    board.with_panel(lines("Waiting for memory", "percentunit", (top(waited), LEGEND)))
    kills = f"topk({MANY}, {gauge('container_oom_events_total')})"
    board.with_panel(listing("OOM kills, since the container's start", kills, "image", span=12))


def add_traffic(board: Board) -> None:
    board.with_row(row("Disks, network, threads"))
    board.with_panel(
        lines("Read from disks", "Bps", (top(rate("container_fs_reads_bytes_total")), LEGEND), span=THIRD)
    )
    board.with_panel(
        lines("Written to disks", "Bps", (top(rate("container_fs_writes_bytes_total")), LEGEND), span=THIRD)
    )
    waited = rate("container_pressure_io_waiting_seconds_total")
    board.with_panel(lines("Waiting for disks", "percentunit", (top(waited), LEGEND), span=THIRD))
    for way, title in (("receive", "Received by pods"), ("transmit", "Sent by pods")):
        moved = (
            f"topk({MANY}, sum by (node, namespace, pod) (rate(container_network_{way}_bytes_total"
            f'{{{NODE},namespace=~"$namespace"}}[{RATE}])))'
        )
        board.with_panel(lines(title, "Bps", (moved, "{{node}} {{namespace}}/{{pod}}"), span=THIRD))
    board.with_panel(lines("Threads", "none", (top(gauge("container_threads")), LEGEND), span=THIRD))
