"""One node, or several beside each other: CPU, memory, pressure, disks, network, hardware counters."""

from tools.dashboards.panel import NODE, RATE, THIRD, Board, build_board, lines, number, row

GOOD_BELOW = ((None, "green"), (0.8, "orange"), (0.95, "red"))
REAL = 'device!~"lo|veth.*|cali.*|cni.*|docker.*|br-.*|flannel.*|lxc.*"'


def rate(name: str, more: str = "") -> str:
    return f"rate({name}{{{NODE}{more}}}[{RATE}])"


def ratio(over: str, under: str) -> str:
    return f"sum by (node) ({rate(over)}) / sum by (node) ({rate(under)})"


def build() -> Board:
    board = build_board("nodescope-node", "nodescope / Node", "What the nodes themselves do.")
    add_overview(board)
    add_cpu(board)
    add_memory(board)
    add_traffic(board)
    add_processes(board)
    add_counters(board)
    return board


def add_overview(board: Board) -> None:
    board.with_row(row("At a glance"))
    board.with_panel(
        number(
            "Health, lowest",
            "none",
            f"min(node_health_score{{{NODE}}})",
            (None, "red"),
            (3, "orange"),
            (6, "green"),
            about="0 to 10: CPU, memory headroom, pressure and GPUs in one figure.",
        )
    )
    board.with_panel(number("CPU", "percentunit", f"avg(node_cpu_utilization_ratio{{{NODE}}})", *GOOD_BELOW))
    memory = f"1 - sum(node_memory_available_bytes{{{NODE}}}) / sum(node_memory_total_bytes{{{NODE}}})"
    board.with_panel(number("Memory", "percentunit", memory, *GOOD_BELOW))
    board.with_panel(number("Memory pressure", "percent", f"max(node_memory_pressure_avg10{{{NODE}}})"))
    board.with_panel(number("CPU pressure", "percent", f"max(node_cpu_pressure_avg10{{{NODE}}})"))
    board.with_panel(number("Up for", "s", f"min(time() - node_boot_time_seconds{{{NODE}}})"))


def add_cpu(board: Board) -> None:
    board.with_row(row("CPU"))
    busy = rate("node_cpu_seconds_total", ',mode!="idle"')
    modes = f"avg by (node, mode) ({busy})"
    board.with_panel(lines("CPU time by mode", "percentunit", (modes, "{{node}} {{mode}}"), stacked=True))
    board.with_panel(
        lines(
            "Load and cores",
            "none",
            (f"node_load1{{{NODE}}}", "{{node}} 1 min"),
            (f"node_load5{{{NODE}}}", "{{node}} 5 min"),
            (f'count by (node) (node_cpu_seconds_total{{{NODE},mode="idle"}})', "{{node}} cores"),
        )
    )
    board.with_panel(
        lines(
            "Share of time in which tasks waited",
            "percentunit",
            *(
                (rate(f"node_pressure_{what}_waiting_seconds_total"), f"{{{{node}}}} {what}")
                for what in ("cpu", "memory", "io")
            ),
            about="Pressure stall information, from the totals: exact over any span.",
        )
    )
    board.with_panel(
        lines(
            "Switches and forks",
            "cps",
            (rate("node_context_switches_total"), "{{node}} context switches"),
            (rate("node_forks_total"), "{{node}} forks"),
        )
    )


def add_memory(board: Board) -> None:
    board.with_row(row("Memory"))
    total, available = f"node_memory_total_bytes{{{NODE}}}", f"node_memory_available_bytes{{{NODE}}}"
    board.with_panel(
        lines(
            "Memory",
            "bytes",
            (f"{total} - {available}", "{{node}} used"),
            (f"node_memory_Cached_bytes{{{NODE}}}", "{{node}} page cache"),
            (total, "{{node}} total"),
            span=THIRD,
        )
    )
    swap = f"node_memory_SwapTotal_bytes{{{NODE}}} - node_memory_SwapFree_bytes{{{NODE}}}"
    board.with_panel(lines("Swap in use", "bytes", (swap, "{{node}}"), span=THIRD))
    board.with_panel(
        lines(
            "Major faults and OOM kills",
            "cps",
            (rate("node_vmstat_pgmajfault"), "{{node}} major faults"),
            (rate("node_vmstat_oom_kill"), "{{node}} OOM kills"),
            span=THIRD,
        )
    )


def add_traffic(board: Board) -> None:
    board.with_row(row("Disks and network"))
    board.with_panel(
        lines(
            "Disk traffic",
            "Bps",
            (rate("node_disk_read_bytes_total"), "{{node}} {{device}} read"),
            (rate("node_disk_written_bytes_total"), "{{node}} {{device}} written"),
        )
    )
    busy = rate("node_disk_io_time_seconds_total")
    board.with_panel(lines("Disks busy", "percentunit", (busy, "{{node}} {{device}}")))
    board.with_panel(
        lines(
            "Network traffic",
            "Bps",
            (rate("node_network_receive_bytes_total", f",{REAL}"), "{{node}} {{device}} received"),
            (rate("node_network_transmit_bytes_total", f",{REAL}"), "{{node}} {{device}} sent"),
        )
    )
    used = f"1 - node_filesystem_avail_bytes{{{NODE}}} / (node_filesystem_size_bytes{{{NODE}}} > 0)"
    board.with_panel(lines("File systems", "percentunit", (used, "{{node}} {{mountpoint}}")))


def add_processes(board: Board) -> None:
    board.with_row(row("Processes"))
    busy = f"topk(10, {rate('cpu_process_cpu_seconds_total')})"
    board.with_panel(lines("CPU: the busiest", "none", (busy, "{{node}} {{name}} {{pid}}"), about="Cores."))
    large = f"topk(10, cpu_process_rss_bytes{{{NODE}}})"
    board.with_panel(lines("Memory: the largest", "bytes", (large, "{{node}} {{name}} {{pid}}")))


def add_counters(board: Board) -> None:
    board.with_row(row("Hardware counters"))
    ipc = ratio("pcm_instructions_total", "pcm_cycles_total")
    perf = ratio("perf_instructions_total", "perf_cycles_total")
    board.with_panel(
        lines("Instructions per cycle", "none", (f"{ipc} or {perf}", "{{node}}"), about="PCM, else perf.")
    )
    moved = (
        f"sum by (node) ({rate('pcm_memory_read_bytes_total')})"
        f" + sum by (node) ({rate('pcm_memory_written_bytes_total')})"
        f" or sum by (node) ({rate('resctrl_memory_bytes_total')})"
    )
    board.with_panel(
        lines("Memory bandwidth", "Bps", (moved, "{{node}}"), about="PCM, else resctrl: read and written.")
    )
    missed = (
        f"sum by (node) ({rate('pcm_l3_misses_total')}) or sum by (node) ({rate('perf_cache_misses_total')})"
    )
    board.with_panel(lines("Last-level cache misses", "cps", (missed, "{{node}}")))
    power = (
        f"sum by (node) ({rate('pcm_energy_joules_total')})"
        f" or sum by (node) ({rate('node_rapl_package_joules_total')})"
    )
    board.with_panel(lines("Power of the processors", "watt", (power, "{{node}}"), about="PCM, else RAPL."))
