"""nodescope itself: does it answer everywhere, does it keep up, what does it cost."""

from tools.dashboards.panel import NODE, RATE, THIRD, Board, build_board, lines, listing, number, row, states

SCRAPES = f"up{{{NODE}}}"


def rate(name: str, more: str = "") -> str:
    return f"rate({name}{{{NODE}{more}}}[{RATE}])"


def gauge(name: str) -> str:
    return f"{name}{{{NODE}}}"


def quantile(share: float, name: str, by: str = "node, le") -> str:
    return f"histogram_quantile({share}, sum by ({by}) ({rate(name + '_bucket')}))"


def build() -> Board:
    board = build_board("nodescope-itself", "nodescope / nodescope", "The agents themselves.")
    add_coverage(board)
    add_sampling(board)
    add_sources(board)
    add_cost(board)
    add_archive(board)
    return board


def add_coverage(board: Board) -> None:
    board.with_row(row("Coverage"))
    # Where kube-state-metrics is scraped it knows nodes without a pod of ours.
    coverage = 'sum(up{job="nodescope"}) / (count(kube_node_info) or count(up{job="nodescope"}))'
    board.with_panel(
        number(
            "Nodes covered",
            "percentunit",
            coverage,
            (None, "red"),
            (0.95, "orange"),
            (1, "green"),
            about="Agents that answer, as a share of the cluster's nodes.",
        )
    )
    answered = f"avg(avg_over_time({SCRAPES}[1h]))"
    board.with_panel(
        number(
            "Scrapes answered, 1 h", "percentunit", answered, (None, "red"), (0.99, "orange"), (1, "green")
        )
    )
    board.with_panel(number("Agents silent", "none", f"count({SCRAPES} == 0) or vector(0)"))
    board.with_panel(number("Newest sample, oldest", "s", f"max({gauge('metrics_newest_seconds')})"))
    errors = f"sum(increase(nodescope_source_errors_total{{{NODE}}}[1h]))"
    board.with_panel(number("Collection errors in 1 h", "none", errors, (None, "green"), (1, "orange")))
    board.with_panel(number("Alerts", "none", "count(ALERTS) or vector(0)", (None, "green"), (1, "orange")))
    board.with_panel(states("Agents that answer", (SCRAPES, "{{node}}")))
    board.with_panel(
        lines("Time of a scrape", "s", (gauge("scrape_duration_seconds"), "{{node}}"), span=THIRD)
    )
    board.with_panel(
        lines("Samples of a scrape", "none", (gauge("scrape_samples_scraped"), "{{node}}"), span=THIRD)
    )
    board.with_panel(
        listing("Versions", f"count by (version, python) ({gauge('nodescope_build_info')})", span=THIRD)
    )
    by = "alertname, alertstate, severity, node"
    board.with_panel(listing("Alerts", f"count by ({by}) (ALERTS)", "Value"))


def add_sampling(board: Board) -> None:
    board.with_row(row("Sampling"))
    board.with_panel(
        lines("Age of the newest sample", "s", (gauge("metrics_newest_seconds"), "{{node}}"), span=THIRD)
    )
    board.with_panel(
        lines(
            "Ticks",
            "cps",
            (rate("nodescope_ticks_total"), "{{node}} done"),
            (rate("nodescope_ticks_missed_total"), "{{node}} missed"),
            span=THIRD,
        )
    )
    late = quantile(0.99, "nodescope_tick_late_seconds")
    board.with_panel(lines("Ticks late by (p99)", "s", (late, "{{node}}"), span=THIRD))
    board.with_panel(lines("Series", "none", (gauge("nodescope_series"), "{{node}} {{scope}}"), stacked=True))
    # Counted at every tick: the rate is how many are left out.
    dropped = rate("nodescope_series_dropped_total")
    board.with_panel(lines("Left out", "none", (dropped, "{{node}} {{scope}}")))


def add_sources(board: Board) -> None:
    board.with_row(row("Sources"))
    board.with_panel(
        states(
            "Sources that deliver",
            (f"max by (source) ({gauge('nodescope_source_up')})", "{{source}}"),
            about="0 is absent or failed; `nodescope sources` says which, and why.",
        )
    )
    errors = rate("nodescope_source_errors_total")
    board.with_panel(lines("Collection errors", "cps", (errors, "{{node}} {{source}} {{reason}}")))
    cost = f"sum by (source) ({rate('nodescope_source_seconds_total')})"
    board.with_panel(lines("CPU by source", "percentunit", (cost, "{{source}}"), stacked=True))
    pcm = (
        (rate("pcm_errors_total"), "{{node}} pcm errors"),
        (rate("pcm_restarts_total"), "{{node}} pcm restarts"),
    )
    board.with_panel(lines("PCM", "cps", *pcm))
    cells = rate("pcm_cells_missing_total")
    board.with_panel(lines("PCM: cells without a measurement", "cps", (cells, "{{node}} {{reason}}")))


def add_cost(board: Board) -> None:
    board.with_row(row("Cost"))
    own = rate("nodescope_process_cpu_seconds_total")
    board.with_panel(lines("CPU of the agents", "percentunit", (own, "{{node}}"), span=THIRD))
    memory = (gauge("nodescope_process_resident_bytes"), "{{node}}")
    ring = (gauge("nodescope_ring_bytes"), "{{node}} ring")
    board.with_panel(lines("Memory of the agents", "bytes", memory, ring, span=THIRD))
    slow = quantile(0.95, "api_latency_seconds")
    board.with_panel(lines("Time of an answer (p95)", "s", (slow, "{{node}}"), span=THIRD))


def add_archive(board: Board) -> None:
    board.with_row(row("Archive"))
    board.with_panel(lines("Size", "bytes", (gauge("nodescope_archive_bytes"), "{{node}}"), span=THIRD))
    board.with_panel(
        lines("Log not in Parquet yet", "s", (gauge("nodescope_wal_age_seconds"), "{{node}}"), span=THIRD)
    )
    waiting = (gauge("nodescope_wal_segments"), "{{node}}")
    board.with_panel(lines("Segments that wait", "none", waiting, span=THIRD))
    rows = rate("nodescope_archive_rows_total")
    board.with_panel(lines("Rows written", "cps", (rows, "{{node}}"), span=THIRD))
    trouble = (
        (rate("nodescope_archive_frames_lost_total"), "{{node}} ticks lost"),
        (rate("nodescope_archive_failures_total"), "{{node}} failures"),
    )
    board.with_panel(lines("Trouble", "cps", *trouble, span=THIRD))
    board.with_panel(states("Paused", (gauge("nodescope_archive_paused"), "{{node}}"), span=THIRD))
