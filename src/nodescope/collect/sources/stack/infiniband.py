"""
RDMA: state, traffic and errors of each port of InfiniBand, RoCE and iWARP adapters.

Reads   /sys/class/infiniband/DEVICE/{board_id,fw_ver,hca_type},
        /sys/class/infiniband/DEVICE/ports/N/{state,phys_state,rate,counters/*,counters_ext/*,hw_counters/*}
Needs   Linux with a driver of such an adapter; counters_ext is before 4.5
Docs    https://www.kernel.org/doc/Documentation/ABI/stable/sysfs-class-infiniband

    4: ACTIVE
    5: LinkUp
    100 Gb/sec (4X EDR)

A counter may say `N/A (no PMA)`: it is left out. Data are counted in words of
four bytes, one for each lane; names and units are node_exporter's.
"""

from collections.abc import Mapping
from typing import Any

from nodescope.base.block import Info, Table
from nodescope.base.entity import Entity
from nodescope.base.metric import Metric
from nodescope.base.text import clean_text
from nodescope.collect.run.slow_source import Rows, SlowSource, list_names, read_folder, to_number
from nodescope.collect.run.source import Context

FOLDER = "sys/class/infiniband"
WORDS = ("board_id", "fw_ver", "hca_type")
GIGABIT_BYTES = 125_000_000.0
MILLISECOND = 1e-3
LANES = 4.0
# File of the port -> published name, sentence. The number stands before the first colon or blank.
STATES = {
    "state": ("state_id", "State of the port: 1 down, 2 init, 3 armed, 4 active, 5 active and deferred."),
    "phys_state": (
        "physical_state_id",
        "Physical state of the port: 1 sleep, 2 polling, 3 disabled, 4 training, 5 link up, 6 recovery.",
    ),
    "rate": ("rate_bytes_per_second", "Bytes a second that the link can carry."),
}
DATA = frozenset({"port_rcv_data", "port_xmit_data", "port_rcv_data_64", "port_xmit_data_64"})
# File of the port's folder `counters` -> published name, sentence.
COUNTERS = {
    "port_rcv_data": ("port_data_received_bytes_total", "Bytes received."),
    "port_xmit_data": ("port_data_transmitted_bytes_total", "Bytes sent."),
    "port_rcv_packets": ("port_packets_received_total", "Packets received, with errors included."),
    "port_xmit_packets": ("port_packets_transmitted_total", "Packets sent, with errors included."),
    "unicast_rcv_packets": ("unicast_packets_received_total", "Unicast packets received."),
    "unicast_xmit_packets": ("unicast_packets_transmitted_total", "Unicast packets sent."),
    "multicast_rcv_packets": ("multicast_packets_received_total", "Multicast packets received."),
    "multicast_xmit_packets": ("multicast_packets_transmitted_total", "Multicast packets sent."),
    "port_xmit_wait": ("port_transmit_wait_total", "Ticks in which the port had data to send and sent none."),
    "port_rcv_errors": ("port_errors_received_total", "Packets received with an error."),
    "port_rcv_discards": ("port_discards_received_total", "Packets received and discarded."),
    "port_xmit_discards": (
        "port_discards_transmitted_total",
        "Packets not sent: the port is down or congested.",
    ),
    "port_rcv_constraint_errors": (
        "port_constraint_errors_received_total",
        "Packets received that a rule of the switch forbids.",
    ),
    "port_xmit_constraint_errors": (
        "port_constraint_errors_transmitted_total",
        "Packets not sent that a rule of the switch forbids.",
    ),
    "port_rcv_remote_physical_errors": (
        "port_receive_remote_physical_errors_total",
        "Packets received that were marked as bad.",
    ),
    "port_rcv_switch_relay_errors": (
        "port_receive_switch_relay_errors_total",
        "Packets that the switch could not forward.",
    ),
    "link_downed": ("link_downed_total", "Times that the link went down."),
    "link_error_recovery": ("link_error_recovery_total", "Times that the link recovered from an error."),
    "local_link_integrity_errors": (
        "local_link_integrity_errors_total",
        "Times that physical errors exceeded their threshold.",
    ),
    "excessive_buffer_overrun_errors": (
        "excessive_buffer_overrun_errors_total",
        "Times that buffers overran again and again.",
    ),
    "symbol_error": ("symbol_error_total", "Minor errors of the link's lanes."),
    "VL15_dropped": ("vl15_dropped_total", "Management packets dropped for want of room."),
}
# The same of `counters_ext`, which kernels before 4.5 had for 64 bits.
LEGACY = {
    "port_multicast_rcv_packets": ("legacy_multicast_packets_received_total", "Multicast packets received."),
    "port_multicast_xmit_packets": ("legacy_multicast_packets_transmitted_total", "Multicast packets sent."),
    "port_rcv_data_64": ("legacy_data_received_bytes_total", "Bytes received."),
    "port_rcv_packets_64": ("legacy_packets_received_total", "Packets received."),
    "port_unicast_rcv_packets": ("legacy_unicast_packets_received_total", "Unicast packets received."),
    "port_unicast_xmit_packets": ("legacy_unicast_packets_transmitted_total", "Unicast packets sent."),
    "port_xmit_data_64": ("legacy_data_transmitted_bytes_total", "Bytes sent."),
    "port_xmit_packets_64": ("legacy_packets_transmitted_total", "Packets sent."),
}
# The same of `hw_counters`, which drivers of RoCE have.
HARDWARE = {
    "lifespan": ("lifespan_seconds", "Time within which two readings may give the same values."),
    "duplicate_request": (
        "duplicate_requests_packets_total",
        "Requests received that were carried out before.",
    ),
    "implied_nak_seq_err": ("implied_nak_seq_errors_total", "Answers that skipped a packet."),
    "local_ack_timeout_err": (
        "local_ack_timeout_errors_total",
        "Times that an acknowledgement did not come.",
    ),
    "np_cnp_sent": ("np_cnp_packets_sent_total", "Congestion notifications sent."),
    "np_ecn_marked_roce_packets": (
        "np_ecn_marked_roce_packets_received_total",
        "Packets received that were marked for congestion.",
    ),
    "out_of_buffer": ("out_of_buffer_drops_total", "Packets dropped: no receive buffer was posted."),
    "out_of_sequence": ("out_of_sequence_packets_received_total", "Packets received out of sequence."),
    "packet_seq_err": ("packet_sequence_errors_total", "Negative acknowledgements for a sequence error."),
    "req_cqe_error": ("req_cqes_errors_total", "Requests that completed with an error."),
    "req_cqe_flush_error": ("req_cqes_flush_errors_total", "Requests that were flushed."),
    "req_remote_access_errors": ("req_remote_access_errors_total", "Requests refused by the other side."),
    "req_remote_invalid_request": (
        "req_remote_invalid_request_errors_total",
        "Requests that the other side found invalid.",
    ),
    "resp_cqe_error": ("resp_cqes_errors_total", "Responses that completed with an error."),
    "resp_cqe_flush_error": ("resp_cqes_flush_errors_total", "Responses that were flushed."),
    "resp_local_length_error": ("resp_local_length_errors_total", "Responses of a wrong length."),
    "resp_remote_access_errors": ("resp_remote_access_errors_total", "Responses refused for their access."),
    "rnr_nak_retry_err": (
        "rnr_nak_retry_packets_received_total",
        "Answers that the receiver was not ready.",
    ),
    "roce_adp_retrans": ("roce_adp_retransmits_total", "Adaptive retransmissions."),
    "roce_adp_retrans_to": (
        "roce_adp_retransmits_timeout_total",
        "Adaptive retransmissions after a timeout.",
    ),
    "roce_slow_restart": ("roce_slow_restart_used_total", "Times that slow restart was used."),
    "roce_slow_restart_cnps": (
        "roce_slow_restart_cnps_total",
        "Congestion notifications made by slow restart.",
    ),
    "roce_slow_restart_trans": ("roce_slow_restart_total", "Times that slow restart began."),
    "rp_cnp_handled": ("rp_cnp_packets_handled_total", "Congestion notifications that were obeyed."),
    "rp_cnp_ignored": (
        "rp_cnp_ignored_packets_received_total",
        "Congestion notifications that were ignored.",
    ),
    "rx_atomic_requests": ("rx_atomic_requests_total", "Atomic requests received."),
    "rx_dct_connect": ("rx_dct_connect_requests_total", "Requests for a dynamic connection received."),
    "rx_icrc_encapsulated": ("rx_icrc_encapsulated_errors_total", "Packets with a wrong checksum."),
    "rx_read_requests": ("rx_read_requests_total", "Read requests received."),
    "rx_write_requests": ("rx_write_requests_total", "Write requests received."),
}
GAUGES = frozenset({"lifespan", *STATES})
# Folder of the port -> its files, in the order of the columns.
PARTS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "": STATES,
    "counters": COUNTERS,
    "counters_ext": LEGACY,
    "hw_counters": HARDWARE,
}
SCALES = {"lifespan": MILLISECOND, "rate": GIGABIT_BYTES, **dict.fromkeys(DATA, LANES)}
PORTS = Table(
    "infiniband",
    "infiniband",
    ("device",),
    tuple(
        Metric(
            f"infiniband.{file}",
            "gauge" if file in GAUGES else "counter",
            sentence,
            f"node_infiniband_{name}",
            unit=next((unit for unit in ("bytes", "seconds") if unit in name), ""),
            scale=SCALES.get(file, 1.0),
        )
        for files in PARTS.values()
        for file, (name, sentence) in files.items()
    ),
)
DEVICES = Table(
    "infiniband.device",
    "infiniband",
    ("device",),
    (),
    Info(
        "node_infiniband_info", "What an adapter is; always 1.", ("board_id", "firmware_version", "hca_type")
    ),
)


def read(context: Context) -> dict[str, dict[str, Any]] | None:
    """{device: its words and, by port, {folder: {file: text}}}."""
    return {name: read_device(context, f"{FOLDER}/{name}") for name in list_names(context, FOLDER)} or None


def read_device(context: Context, folder: str) -> dict[str, Any]:
    ports = list_names(context, f"{folder}/ports", r"\d+")
    return {
        "words": read_folder(context, folder, WORDS),
        "ports": {port: read_port(context, f"{folder}/ports/{port}") for port in ports},
    }


def read_port(context: Context, folder: str) -> dict[str, dict[str, str]]:
    """Only the files that are there: an adapter has some of the three kinds of counters."""
    found = {}
    for part, files in PARTS.items():
        here = f"{folder}/{part}".rstrip("/")
        offered = files.keys() & set(list_names(context, here))
        found[part] = read_folder(context, here, sorted(offered))
    return found


def parse(found: Mapping[str, Mapping[str, Any]]) -> tuple[Rows, ...]:
    ports: dict[Entity, list[float]] = {}
    devices: dict[Entity, list[float]] = {}
    for name, told in found.items():
        device = clean_text(name)
        devices[name_device(device, told["words"])] = []
        for port, parts in told["ports"].items():
            labels = (("device", device), ("port", port))
            ports[Entity("device", ("infiniband", device, port), labels)] = list_values(parts)
    return ports, devices


def name_device(device: str, words: Mapping[str, str]) -> Entity:
    board, firmware, kind = (clean_text(words.get(word, "")) for word in WORDS)
    details = (("board_id", board), ("firmware_version", firmware), ("hca_type", kind))
    return Entity("device", ("infiniband", device), (("device", device),), details)


def list_values(parts: Mapping[str, Mapping[str, str]]) -> list[float]:
    return [read_first(parts[part].get(file)) for part, files in PARTS.items() for file in files]


def read_first(text: str | None) -> float:
    """The number that a text begins with, as in `4: ACTIVE` and `100 Gb/sec (4X EDR)`."""
    return to_number(text.partition(" ")[0].rstrip(":")) if text else to_number(None)


make = SlowSource(
    "infiniband", (PORTS, DEVICES), read, parse, "nothing in /sys/class/infiniband: no adapter for RDMA"
)
