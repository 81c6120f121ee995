"""Who is let into the waiting room when it is full."""

import asyncio
import socket
from contextlib import ExitStack, suppress

from tests.serve.stalled import come_true

from nodescope.serve.bounds.acceptor import Acceptor, Receiver
from nodescope.serve.bounds.places import STRIKES_EACH, Places, Strikes
from nodescope.serve.connections import WAITING, Connections
from nodescope.serve.server import open_socket

# A round trip on loopback, and the accepting, on a machine that is busy.
MOST_SECONDS = 20.0


def fill(room: Places[str], count: int, addresses: list[str]) -> None:
    for number in range(count):
        room.enter(f"guest {number}", addresses[number % len(addresses)])


def test_the_first_of_the_worst_address_gives_way() -> None:
    """The same as the slower choice that knows ranks."""
    strikes, room = Strikes(100), Places[str](6, 6)
    for address in ("b", "b", "c"):
        strikes.add(address)
    fill(room, 6, ["a", "b", "c"])
    assert room.choose_first(strikes) == room.choose("d", strikes) == "guest 1"


def test_without_strikes_the_address_with_the_most_gives_way() -> None:
    room = Places[str](5, 5)
    fill(room, 5, ["a", "b"])
    assert room.choose_first(Strikes(10)) == room.choose("c", Strikes(10)) == "guest 0"


def test_nobody_gives_way_in_an_empty_room() -> None:
    assert Places[str](1, 1).choose_first(Strikes(10)) is None


def refuse(address: str) -> Receiver:
    raise AssertionError(f"nothing was sent, and yet {address} is served")


def connect(port: int, source: str) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), MOST_SECONDS, (source, 0))
    connection.setblocking(False)
    return connection


async def is_closed(connection: socket.socket) -> bool:
    """Whether the other side has ended it; it has sent nothing."""
    with suppress(ConnectionResetError):
        return await asyncio.get_running_loop().sock_recv(connection, 1) == b""
    return True


def test_a_full_room_refuses_who_was_closed_often_and_lets_in_who_was_not() -> None:
    async def talk() -> tuple[bool, int]:
        connections = Connections()
        with ExitStack() as stack:
            listener = stack.enter_context(open_socket("127.0.0.1:0"))
            acceptor = Acceptor([listener], connections, refuse, None)
            acceptor.start()
            stack.callback(acceptor.close)
            port = listener.getsockname()[1]
            for number in range(WAITING):
                stack.enter_context(connect(port, f"127.0.7.{number % 100 + 1}"))
            await come_true(lambda: len(connections.waiting) == WAITING)
            for _ in range(STRIKES_EACH):
                connections.strikes.add("127.0.8.1")
            bad = stack.enter_context(connect(port, "127.0.8.1"))
            refused = await asyncio.wait_for(is_closed(bad), MOST_SECONDS)
            stack.enter_context(connect(port, "127.0.8.2"))
            await come_true(lambda: connections.waiting.count("127.0.8.2") == 1)
            return refused, len(connections.waiting)

    refused, waiting = asyncio.run(talk())
    assert refused
    assert waiting == WAITING


def test_a_listener_bounds_what_the_kernel_takes_of_answers() -> None:
    """Four MiB of each connection by default, which count as memory of the agent's container."""
    with open_socket("127.0.0.1:0") as listener, socket.socket() as other:
        sizes = [one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) for one in (listener, other)]
    assert sizes[0] <= 2 * 128 * 1024 < 4 * 2**20
