"""GPUs of both vendors: load, memory, heat, power, errors, and whose they are."""

from tools.dashboards.panel import (
    NODE,
    RATE,
    THIRD,
    Board,
    build_board,
    choice,
    lines,
    listing,
    number,
    row,
    states,
)

GPU = f'{NODE},gpu_index=~"$gpu"'
LEGEND = "{{node}} GPU {{gpu_index}}"


def gauge(name: str, more: str = "") -> str:
    return f"{name}{{{GPU}{more}}}"


def rate(name: str) -> str:
    return f"rate({name}{{{GPU}}}[{RATE}])"


def build() -> Board:
    board = build_board("nodescope-gpus", "nodescope / GPUs", "NVIDIA and AMD GPUs.")
    board.with_variable(
        choice("gpu", "GPU", 'label_values(gpu_up{job="nodescope",node=~"$node"}, gpu_index)')
    )
    add_overview(board)
    add_load(board)
    add_heat(board)
    add_users(board)
    add_errors(board)
    add_links(board)
    return board


def add_overview(board: Board) -> None:
    board.with_row(row("At a glance"))
    board.with_panel(number("GPUs", "none", f"count({gauge('gpu_up')})"))
    lost = f"count({gauge('gpu_up')} == 0) or vector(0)"
    board.with_panel(number("Lost", "none", lost, (None, "green"), (1, "red")))
    board.with_panel(number("Utilisation", "percent", f"avg({gauge('gpu_utilization_percent')})"))
    used = f"sum({gauge('gpu_memory_used_bytes')}) / sum({gauge('gpu_memory_total_bytes')})"
    board.with_panel(number("Memory", "percentunit", used))
    board.with_panel(number("Power", "watt", f"sum({gauge('gpu_power_draw_watts')})"))
    xids = f"sum(increase({gauge('gpu_xid_events_total')}[1h]))"
    board.with_panel(number("Driver errors in 1 h", "none", xids, (None, "green"), (1, "orange")))
    board.with_panel(listing("GPUs", gauge("gpu_info"), "Value"))


def add_load(board: Board) -> None:
    board.with_row(row("Load"))
    board.with_panel(
        lines(
            "Utilisation",
            "percent",
            (gauge("gpu_utilization_percent"), LEGEND),
            about="Time in which at least one kernel ran, not how full the GPU was.",
        )
    )
    board.with_panel(lines("Memory in use", "bytes", (gauge("gpu_memory_used_bytes"), LEGEND)))
    board.with_panel(
        lines("Memory in use, share", "percent", (gauge("gpu_memory_used_percent"), LEGEND), span=THIRD)
    )
    board.with_panel(lines("Memory busy", "percent", (gauge("gpu_memory_busy_percent"), LEGEND), span=THIRD))
    board.with_panel(
        lines(
            "Video encoder and decoder",
            "percent",
            (gauge("gpu_encoder_utilization_percent"), f"{LEGEND} encoder"),
            (gauge("gpu_decoder_utilization_percent"), f"{LEGEND} decoder"),
            span=THIRD,
        )
    )


def add_heat(board: Board) -> None:
    board.with_row(row("Heat and power"))
    board.with_panel(
        lines(
            "Temperature",
            "celsius",
            (gauge("gpu_temperature_celsius"), LEGEND),
            (gauge("gpu_memory_temperature_celsius"), f"{LEGEND} memory"),
            span=THIRD,
        )
    )
    board.with_panel(
        lines(
            "Power and its limit",
            "watt",
            (gauge("gpu_power_draw_watts"), LEGEND),
            (gauge("gpu_power_limit_watts"), f"{LEGEND} limit"),
            span=THIRD,
        )
    )
    board.with_panel(lines("Energy", "watt", (rate("gpu_energy_joules_total"), LEGEND), span=THIRD))
    clocks = gauge("gpu_clock_hertz", ',clock=~"graphics|memory"')
    board.with_panel(lines("Clocks", "hertz", (clocks, f"{LEGEND} {{{{clock}}}}")))
    board.with_panel(lines("Fan", "percent", (gauge("gpu_fan_speed_percent"), LEGEND)))
    board.with_panel(
        states(
            "Clocks held down",
            (f"max by (node, gpu_index, reason) ({gauge('gpu_throttled')})", f"{LEGEND} {{{{reason}}}}"),
            about="Idle and the power cap are normal; heat and power brake are not.",
        )
    )


def add_users(board: Board) -> None:
    board.with_row(row("Whose they are"))
    owners = (
        f"gpu_process_memory_bytes{{{NODE}}}"
        f" * on (node, uuid, pid) group_left (name, namespace, pod, container) gpu_process_info{{{NODE}}}"
    )
    owned = "{{node}} GPU {{gpu_index}} {{namespace}}/{{pod}}/{{container}} {{name}} {{pid}}"
    board.with_panel(lines("Memory by process", "bytes", (owners, owned)))
    share = owners.replace("gpu_process_memory_bytes", "gpu_process_utilization_percent")
    board.with_panel(lines("Utilisation by process", "percent", (share, owned)))
    board.with_panel(
        listing("Given to containers by kubelet", f"gpu_allocated{{{NODE}}}", "Value", "vendor", span=12)
    )
    idle = (
        f"gpu_utilization_percent{{{NODE}}} < 1 and on (node, uuid)"
        f" (gpu_allocated{{{NODE}}} == 1 or gpu_processes{{{NODE}}} > 0)"
    )
    board.with_panel(listing("Held, and idle now", idle, "vendor", span=12))
    used, total = f"gpu_mig_memory_used_bytes{{{NODE}}}", f"gpu_mig_memory_total_bytes{{{NODE}}}"
    part = "{{node}} GPU {{gpu_index}} part {{gpu_instance_id}}"
    board.with_panel(lines("MIG: memory in use", "bytes", (used, part), (total, f"{part} total"), span=24))


def add_errors(board: Board) -> None:
    board.with_row(row("Errors"))
    errors = gauge("gpu_ecc_errors_total")
    board.with_panel(
        lines("ECC errors since the driver's start", "none", (errors, f"{LEGEND} {{{{error}}}}"), span=THIRD)
    )
    rows = gauge("gpu_remapped_rows")
    board.with_panel(lines("Memory rows replaced", "none", (rows, f"{LEGEND} {{{{error}}}}"), span=THIRD))
    board.with_panel(lines("PCIe replays", "cps", (rate("gpu_pcie_replays_total"), LEGEND), span=THIRD))
    last = f"gpu_xid_last_timestamp_seconds{{{NODE}}} * 1000"
    board.with_panel(listing("Driver errors (XID), when last seen", last, "vendor"))


def add_links(board: Board) -> None:
    board.with_row(row("PCIe and NVLink"))
    for way, word in (("transmit", "sent"), ("receive", "received")):
        now = f"{gauge(f'gpu_pcie_{way}_bytes_per_second')} or {rate(f'gpu_pcie_{way}_bytes_total')}"
        board.with_panel(lines(f"PCIe, {word}", "Bps", (now, LEGEND)))
    for way, word in (("transmit", "sent"), ("receive", "received")):
        board.with_panel(lines(f"NVLink, {word}", "Bps", (rate(f"gpu_nvlink_{way}_bytes_total"), LEGEND)))
