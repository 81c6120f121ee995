"""
What systemd is told (sd_notify(3)): that we are ready, and that we are still well.

A datagram to the socket that NOTIFY_SOCKET names; nothing where systemd did not start us.
"""

import socket
import threading
from collections.abc import Callable, Mapping

# Twice within the time after which systemd believes that we hang.
SHARE = 0.4


def notify(environment: Mapping[str, str], state: str) -> bool:
    """Whether it was handed over."""
    address = environment.get("NOTIFY_SOCKET", "")
    if not address:
        return False
    # A name in the abstract namespace begins with a zero byte, which systemd writes as @.
    address = f"\0{address[1:]}" if address.startswith("@") else address
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as link:
        try:
            link.sendto(state.encode(), address)
        except OSError:
            return False
    return True


def read_watchdog_seconds(environment: Mapping[str, str]) -> float:
    """How often to report in; 0 where nobody waits for it."""
    text = environment.get("WATCHDOG_USEC", "")
    return int(text) / 1e6 * SHARE if text.isdigit() else 0.0


def report_in(environment: Mapping[str, str], is_well: Callable[[], bool]) -> threading.Event:
    """Reports in for as long as we are well, on a thread of its own; the event ends it."""
    end = threading.Event()
    seconds = read_watchdog_seconds(environment)

    def run() -> None:
        while not end.wait(seconds):
            if is_well():
                notify(environment, "WATCHDOG=1")

    if seconds and environment.get("NOTIFY_SOCKET"):
        threading.Thread(target=run, name="watchdog", daemon=True).start()
    return end
