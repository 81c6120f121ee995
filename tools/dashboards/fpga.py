"""FPGAs and what the scheduler is told: usage, bitstreams, annotations, scores."""

from tools.dashboards.panel import NODE, RATE, THIRD, Board, build_board, lines, listing, number, row


def rate(name: str, more: str = "") -> str:
    return f"rate({name}{{{NODE}{more}}}[{RATE}])"


def build() -> Board:
    board = build_board("nodescope-fpga", "nodescope / FPGA and scheduling", "What a scheduler goes by.")
    add_usage(board)
    add_bitstreams(board)
    add_told(board)
    return board


def add_usage(board: Board) -> None:
    board.with_row(row("Usage"))
    usage = f"sum(fpga_recent_usage_seconds{{{NODE}}})"
    board.with_panel(number("Used, in the window", "s", usage))
    loading = f"sum(fpga_recent_reconfiguration_seconds{{{NODE}}})"
    board.with_panel(number("Loading, in the window", "s", loading))
    board.with_panel(number("Sessions in 1 h", "none", f"sum(increase(fpga_sessions_total{{{NODE}}}[1h]))"))
    loads = f"sum(increase(fpga_reconfigurations_total{{{NODE}}}[1h]))"
    board.with_panel(number("Bitstreams loaded in 1 h", "none", loads))
    late = f'sum(increase(fpga_events_total{{{NODE},timestamp!="window"}}[1h]))'
    board.with_panel(
        number("Reports with a wrong clock in 1 h", "none", late, (None, "green"), (1, "orange"), span=8)
    )
    board.with_panel(
        lines(
            "FPGAs in use",
            "none",
            (rate("fpga_usage_seconds_total"), "{{node}} at work"),
            (rate("fpga_reconfiguration_seconds_total"), "{{node}} loading"),
            about="Seconds per second: how many were busy at a time.",
        )
    )
    board.with_panel(
        lines(
            "In the scheduler's window",
            "s",
            (f"fpga_recent_usage_seconds{{{NODE}}}", "{{node}} used"),
            (f"fpga_recent_reconfiguration_seconds{{{NODE}}}", "{{node}} loading"),
        )
    )


def add_bitstreams(board: Board) -> None:
    board.with_row(row("Bitstreams"))
    board.with_panel(lines("Loads", "cps", (rate("fpga_reconfigurations_total"), "{{node}}"), span=THIRD))
    reports = rate("fpga_events_total")
    board.with_panel(lines("Reports", "cps", (reports, "{{node}} {{timestamp}}"), span=THIRD))
    board.with_panel(
        listing("Bitstreams loaded lately", f"fpga_bitstream_info{{{NODE}}}", "Value", span=THIRD)
    )


def add_told(board: Board) -> None:
    board.with_row(row("What the scheduler is told"))
    syncs = rate("nodescope_annotation_syncs_total")
    board.with_panel(lines("Annotation writes", "cps", (syncs, "{{node}} {{outcome}}"), span=THIRD))
    size = f"nodescope_annotation_bytes{{{NODE}}}"
    board.with_panel(lines("Size of the annotation", "bytes", (size, "{{node}}"), span=THIRD))
    board.with_panel(lines("Health score", "none", (f"node_health_score{{{NODE}}}", "{{node}}"), span=THIRD))
    board.with_panel(
        lines("CPU", "percentunit", (f"node_cpu_utilization_ratio{{{NODE}}}", "{{node}}"), span=THIRD)
    )
    memory = f"1 - node_memory_available_bytes{{{NODE}}} / node_memory_total_bytes{{{NODE}}}"
    board.with_panel(lines("Memory", "percentunit", (memory, "{{node}}"), span=THIRD))
    gpus = f"avg by (node) (gpu_utilization_percent{{{NODE}}})"
    board.with_panel(lines("GPUs", "percent", (gpus, "{{node}}"), span=THIRD))
