"""Units by their cgroups; what a bus may answer that is no message."""

import contextlib
import math
import socket
import struct
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.collect.nodes import Node

from nodescope.base.errors import ParseError, SourceAbsent, SourceFailed
from nodescope.base.settings import Settings
from nodescope.collect.sources.systemd.dbus import DbusConnection, DbusReader, split_types, write_call
from nodescope.collect.sources.systemd.source import SystemdSource

V2 = "sys/fs/cgroup"


def add_service(
    node: Node, path: str, *, populated: bool = True, tasks: str = "3", most: str = "max"
) -> None:
    node.write(f"{path}/cgroup.events", f"populated {int(populated)}\nfrozen 0\n")
    node.write(f"{path}/pids.current", f"{tasks}\n")
    node.write(f"{path}/pids.max", f"{most}\n")


def read_units(node: Node, settings: Settings | None = None) -> dict[str, tuple[list[float], list[float]]]:
    source = SystemdSource(node.context(settings))
    states, units, manager, version = source.parse(source.read(), 1)
    assert len(manager.entities) == len(version.entities) == 0, "cgroups do not tell"
    rows = zip(states.entities, states.values.tolist(), units.values.tolist())
    return {dict(entity.labels)["name"]: (state, unit) for entity, state, unit in rows}


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_services_that_run_are_active_and_nothing_is_said_of_others(node: Node) -> None:
    """A service whose last process has left ended well or failed: a cgroup does not tell which."""
    add_service(node, f"{V2}/system.slice/sshd.service")
    add_service(node, f"{V2}/system.slice/system-getty.slice/getty@tty1.service", tasks="1", most="99")
    add_service(node, f"{V2}/system.slice/done.service", populated=False)
    found = read_units(node)
    assert found.keys() == {"sshd.service", "getty@tty1.service"}
    assert found["sshd.service"][0] == [1.0, 0.0, 0.0, 0.0, 0.0]
    assert found["sshd.service"][1][1:3] == [3.0, float("inf")]
    assert found["getty@tty1.service"][1][1:3] == [1.0, 99.0]
    assert all(math.isnan(value) for value in found["sshd.service"][1][3:])


def test_what_is_in_pods_and_services_is_not_a_unit_of_the_node(node: Node) -> None:
    add_service(node, f"{V2}/system.slice/containerd.service")
    add_service(node, f"{V2}/system.slice/containerd.service/nested.service")
    add_service(node, f"{V2}/kubepods.slice/kubepods-pod1.slice/inner.service")
    add_service(node, f"{V2}/user.slice/user-1000.slice/user@1000.service")
    assert read_units(node).keys() == {"containerd.service"}


def test_beside_v1_controllers_tasks_are_counted_in_a_hierarchy_of_their_own(node: Node) -> None:
    node.write(f"{V2}/systemd/system.slice/cron.service/cgroup.procs", "12\n")
    node.write(f"{V2}/systemd/system.slice/gone.service/cgroup.procs", "")
    node.write(f"{V2}/pids/system.slice/cron.service/pids.current", "2\n")
    found = read_units(node)
    assert found.keys() == {"cron.service"}
    assert found["cron.service"][1][1] == 2.0


def test_a_node_without_systemd_and_one_that_is_told_never_say_so(node: Node) -> None:
    with pytest.raises(SourceAbsent, match=r"no system\.slice"):
        read_units(node)
    with pytest.raises(SourceAbsent, match="turned off"):
        read_units(node, Settings(systemd="never"))


@given(
    st.binary(max_size=200),
    st.sampled_from(["a(ssssssouso)", "a{sv}", "v", "aau", "(yv)", "aaaaas", "d", "h"]),
)
def test_bytes_that_are_no_message_are_one_clear_error(data: bytes, signature: str) -> None:
    """Whoever speaks on the bus's socket can neither crash nor hold the agent."""
    reader = DbusReader(data, "<")
    with contextlib.suppress(ParseError):
        assert len([reader.read(one) for one in split_types(signature)]) == 1


def test_values_that_are_nested_without_end_are_refused() -> None:
    variant = b"\x01v\x00"
    with pytest.raises(ParseError, match="nested too deep"):
        DbusReader(variant * 100, "<").read("v")


def test_a_signature_that_never_ends_and_an_unknown_type_are_refused() -> None:
    with pytest.raises(ParseError, match="does not end"):
        list(split_types("a(ss"))
    with pytest.raises(ParseError, match="does not have"):
        DbusReader(b"\0" * 16, "<").read("z")


def test_arguments_stand_at_places_that_their_size_divides() -> None:
    """The second text begins behind three bytes of filling."""
    message = write_call(7, "a.b", "/", "c.d", "Get", "x", "yz")
    body_bytes, number, _ = struct.unpack("<III", message[4:16])
    assert number == 7
    assert message[-body_bytes:] == b"\x01\0\0\0x\0" + b"\0\0" + b"\x02\0\0\0yz\0"


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ((b"REJECTED EXTERNAL\r\n",), "does not let us in"),
        ((b"OK 1234\r\n", b""), "closed the connection"),
        ((b"OK 1234\r\n", b"l\x02\x00\x01" + b"\xff" * 12), "more than"),
        ((b"OK 1234\r\n", b"\x00" * 64), "closed the connection"),
    ],
)
def test_a_bus_that_answers_wrongly_is_a_failure_with_a_reason(
    tmp_path: Path, answers: tuple[bytes, ...], reason: str
) -> None:
    path = str(tmp_path / "bus")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        speaker = threading.Thread(target=speak, args=(server, answers), daemon=True)
        speaker.start()
        with pytest.raises(SourceFailed, match=reason):
            DbusConnection(path)
        speaker.join()


def speak(server: socket.socket, answers: tuple[bytes, ...]) -> None:
    connection, _ = server.accept()
    with connection:
        for answer in answers:
            connection.recv(4096)
            connection.sendall(answer)
        # What the client still sends is read, so that closing does not reset the connection.
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(4096):
            pass
