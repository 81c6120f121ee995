"""An address of this machine that somebody at another one can open."""

import socket

from nodescope.serve.server import parse_address


def name_reachable(address: str, instead: str) -> str:
    """HOST:PORT to connect to; a server on all addresses is asked on another."""
    host, port = parse_address(address)
    host = instead if host in ("0.0.0.0", "::") else host  # noqa: S104
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def find_own_address() -> str:
    """The address that other machines see; nothing is sent for it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            asked.connect(("192.0.2.1", 9))
            return str(asked.getsockname()[0])
        except OSError:
            return socket.gethostname()
