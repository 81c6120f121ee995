"""
TCP and UDP of each pod: segments sent again, resets, connections refused, sockets.

Reads   /proc/PID/net/{snmp,netstat,sockstat} of one process of each pod that has a network of its own
Needs   Linux; the host's pid namespace. Telling host-network pods apart needs CAP_SYS_PTRACE
Docs    https://docs.kernel.org/networking/snmp_counter.html

    Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails EstabResets CurrEstab InSegs
    Tcp: 1 200 120000 -1 1287636 1214037 68839 806668 2 11396066

The kernel counts these per network namespace, and a pod is one. The source `pod`
chooses the process. Three files a pod: every half minute, on a thread of its own.
"""

from collections.abc import Mapping
from typing import Any

from nodescope.base.block import Block, Table, make_block
from nodescope.base.entity import Entity
from nodescope.base.errors import SourceAbsent
from nodescope.base.metric import Kind, Metric
from nodescope.collect.containers.cgroup_path import find_group
from nodescope.collect.containers.live_containers import LiveContainer
from nodescope.collect.run.slow_source import to_number
from nodescope.collect.run.source import CallDefaults, Context
from nodescope.collect.sources.stack.netstat import parse_pairs
from nodescope.collect.sources.stack.sockstat import parse_sockets

FILES = ("snmp", "netstat", "sockstat")
# Key of the file, kind, published name, sentence.
COLUMNS: tuple[tuple[str, Kind, str, str], ...] = (
    ("Tcp_RetransSegs", "counter", "tcp_retransmitted_segments_total", "TCP segments that were sent again."),
    (
        "Tcp_OutSegs",
        "counter",
        "tcp_sent_segments_total",
        "TCP segments that were sent, but for those sent again.",
    ),
    ("Tcp_InSegs", "counter", "tcp_received_segments_total", "TCP segments that were received."),
    ("Tcp_InErrs", "counter", "tcp_receive_errors_total", "TCP segments that were received damaged."),
    ("Tcp_OutRsts", "counter", "tcp_sent_resets_total", "TCP resets that were sent."),
    (
        "Tcp_EstabResets",
        "counter",
        "tcp_reset_connections_total",
        "Established TCP connections that were reset.",
    ),
    (
        "Tcp_AttemptFails",
        "counter",
        "tcp_failed_connections_total",
        "TCP connections that were never established.",
    ),
    ("Tcp_ActiveOpens", "counter", "tcp_opened_connections_total", "TCP connections that the pod opened."),
    (
        "Tcp_PassiveOpens",
        "counter",
        "tcp_accepted_connections_total",
        "TCP connections that the pod accepted.",
    ),
    ("Tcp_CurrEstab", "gauge", "tcp_established_connections", "TCP connections that are established."),
    (
        "TcpExt_ListenOverflows",
        "counter",
        "tcp_listen_overflows_total",
        "Connections refused: a queue was full.",
    ),
    (
        "TcpExt_ListenDrops",
        "counter",
        "tcp_listen_drops_total",
        "SYNs to listening sockets that were dropped.",
    ),
    ("TcpExt_TCPSynRetrans", "counter", "tcp_retransmitted_syns_total", "SYNs that were sent again."),
    ("TcpExt_TCPTimeouts", "counter", "tcp_timeouts_total", "TCP timers of retransmission that ran out."),
    (
        "TcpExt_TCPRcvQDrop",
        "counter",
        "tcp_receive_queue_drops_total",
        "Segments dropped: a socket was full.",
    ),
    ("Udp_InErrors", "counter", "udp_receive_errors_total", "UDP datagrams that could not be delivered."),
    (
        "Udp_RcvbufErrors",
        "counter",
        "udp_receive_buffer_errors_total",
        "UDP datagrams dropped: a socket was full.",
    ),
    ("TCP_inuse", "gauge", "tcp_sockets", "TCP sockets in use."),
    ("TCP_tw", "gauge", "tcp_time_wait_sockets", "TCP sockets that wait for late segments."),
    ("UDP_inuse", "gauge", "udp_sockets", "UDP sockets in use."),
)
TABLE = Table(
    "pod_tcp",
    "pod_tcp",
    ("pod",),
    tuple(
        Metric(f"pod_tcp.{key}", kind, sentence, f"container_network_{name}")
        for key, kind, name, sentence in COLUMNS
    ),
)


class PodTcpSource(CallDefaults):
    """Asks the process that stands for each pod."""

    name = "pod_tcp"
    pace_seconds = 30.0
    absent_pace_seconds = 10.0
    """A node without pods may get one at any time."""
    deadline_seconds = 20.0

    def __init__(self, context: Context) -> None:
        if not context.root.exists("proc/stat"):
            raise SourceAbsent("no /proc: this is not Linux")
        self._context = context

    def read(self) -> Any:
        """[(pod, its container, {key: text})]."""
        networks = self._context.live_containers.networks
        if not networks:
            raise SourceAbsent("no pod with a network of its own")
        return [(pod, member, self._read_pod(pid)) for pod, (pid, member) in networks.items()]

    def _read_pod(self, pid: int) -> dict[str, str]:
        texts = {name: self._context.root.read_text(f"proc/{pid}/net/{name}") for name in FILES}
        return {
            **parse_sockets(texts["sockstat"]),
            **parse_pairs(texts["snmp"]),
            **parse_pairs(texts["netstat"]),
        }

    def parse(self, answer: Any, mono_ns: int) -> tuple[Block, ...]:
        rows = {name_pod(pod, member): list_values(texts) for pod, member, texts in answer if texts}
        kept = dict(list(rows.items())[: self._context.limit("pod")])
        return (make_block(TABLE, kept, mono_ns),)


def list_values(texts: Mapping[str, str]) -> list[float]:
    return [to_number(texts.get(key)) for key, *_ in COLUMNS]


def name_pod(pod: str, member: LiveContainer) -> Entity:
    named = dict(member.entity.labels)
    group = find_group(pod, named["id"])
    labels = (("namespace", named["namespace"]), ("pod", named["pod"]), ("id", group))
    return Entity("pod", (pod,), labels, (("pod_uid", pod),))
