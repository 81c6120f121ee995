"""sd_notify(3): datagrams to the socket that systemd names."""

import socket
from pathlib import Path

from nodescope.commands.system.notify import notify, read_watchdog_seconds, report_in

PATIENCE_SECONDS = 30.0


def listen(address: str) -> socket.socket:
    link = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    link.bind(address)
    link.settimeout(PATIENCE_SECONDS)
    return link


def test_a_state_arrives_under_a_path_and_in_the_abstract_namespace(tmp_path: Path) -> None:
    for bound, named in ((str(tmp_path / "s"), str(tmp_path / "s")), (f"\0{tmp_path}", f"@{tmp_path}")):
        with listen(bound) as link:
            assert notify({"NOTIFY_SOCKET": named}, "READY=1")
            assert link.recv(100) == b"READY=1"


def test_without_systemd_nothing_is_sent(tmp_path: Path) -> None:
    assert not notify({}, "READY=1")
    assert not notify({"NOTIFY_SOCKET": str(tmp_path / "gone")}, "READY=1")


def test_who_is_well_reports_in_and_who_is_not_is_silent(tmp_path: Path) -> None:
    environment = {"NOTIFY_SOCKET": str(tmp_path / "s"), "WATCHDOG_USEC": "20000"}
    assert read_watchdog_seconds(environment) == 0.008
    health = iter([True, False, False, True])
    asked = []

    def is_well() -> bool:
        asked.append(next(health, False))
        return asked[-1]

    with listen(environment["NOTIFY_SOCKET"]) as link:
        end = report_in(environment, is_well)
        assert link.recv(100) == link.recv(100) == b"WATCHDOG=1"
        end.set()
    assert asked[:4] == [True, False, False, True]
    assert read_watchdog_seconds({}) == 0.0
